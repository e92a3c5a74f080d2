"""A shell script that starts, watches and cleans up the plan's server without `mai-server`."""

import shlex
from collections.abc import Sequence

from serverctl.export.common import Document, Server, Source, commented, flag_groups, header, program_words, template
from serverctl.plan.render import COMMON
from serverctl.process import api_key_gate as gate


def documents(source: Source) -> Sequence[Document]:
    """A script for each server."""
    return [Document(f"{server.name}.sh", _script(source, server), True) for server in source.servers()]


def _script(source: Source, server: Server) -> str:
    command = server.command
    own = ("--host", "--port", "--served-model-name")
    groups = [group for group in flag_groups(command) if group[0] not in own]
    model = shlex.quote(command.model)
    if source.folder is not None:
        model = f'"${{MODEL_FOLDER:?the folder with the files of {source.folder.name}}}"'
    plan = [
        *(
            f'export {name}="${{{name}:-{_inside(value)}}}"'
            for name, value in command.env.items()
            if name != "PYTHONPATH"
        ),
        f"plan_model() {{ model={model}; }}",
        f"plan_port={server.port}",
        f"plan_name={shlex.quote(source.model)}",
        _array("plan_flags", groups),
        "# Of every plan, also for another model: they do not depend on the card.",
        _array("common_flags", [group for group in groups if group[0] in (*COMMON, "--middleware")]),
        _array("program", [program_words(command)[:-1]]),
    ]
    return template(
        "launch.sh",
        {
            "# @HEADER@\n": commented(header(source)),
            "@NAME@": f"{server.name}.sh",
            "# @PLAN@": "\n".join(plan),
            "# @GATE@\n": gate.source(),
        },
    )


def _array(name: str, groups: Sequence[Sequence[str]]) -> str:
    lines = "".join(f"  {' '.join(map(_element, group))}\n" for group in groups)
    return f"{name}=(\n{lines})"


def _element(word: str) -> str:
    """A word in an array; commas are quoted, so that they do not look like separators."""
    quoted = shlex.quote(word)
    return f"'{word}'" if "," in word and quoted == word else quoted


def _inside(text: str) -> str:
    for mark in ("\\", '"', "$", "`", "}"):
        text = text.replace(mark, "\\" + mark)
    return text
