"""What the compose file and the Kubernetes manifest share: the image, the command inside it, YAML and its templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foundation.configs import configs_dir
from foundation.errors import UsageError
from serverctl.export.common import GATE_FOLDER, Server, Source, filled, notes
from serverctl.process import gate

#: The images' home folders: weights, and what vLLM compiles and measures.
HUB_CACHE = "/root/.cache/huggingface"
VLLM_CACHE = "/root/.cache/vllm"
#: Shared memory between vLLM's processes (NCCL, PyTorch). A limit, not a reservation.
SHM_GIB = 8

_IMAGES = {"nvidia": "vllm/vllm-openai", "cpu": "vllm/vllm-openai-cpu"}


def common_marks(source: Source, server: Server, literal: Callable[[str], str]) -> dict[str, Any]:
    """What both templates are filled with; `literal` keeps a word from being interpreted.

    Raises:
        UsageError: vLLM's project publishes no image for these cards that we know.
    """
    if source.plan.vendor not in _IMAGES:
        raise UsageError(
            f"There is no image of vLLM for {source.plan.gpus[0].name} that this export knows.",
            "`mai-server export systemd` or `script` run a vLLM that is installed.",
        )
    # On every interface of the container, on which nothing but the container's own port is open.
    host = "0.0.0.0"  # noqa: S104
    command = server.command
    lines = tuple(replace(line, value=host) if line.flag == "--host" else line for line in command.lines)
    model = command.model if source.folder is None else f"/models/{source.folder.name}"
    program, subcommand, *arguments = replace(command, lines=lines, model=model, module=False).argv()
    put_gate = f'mkdir -p {GATE_FOLDER} && printf %s "$0" >{GATE_FOLDER}/mai_gate.py && exec "$@"'
    return {
        "IMAGE": f"{_IMAGES[source.plan.vendor]}:v{source.capabilities.version}",
        "PROGRAM": ["/bin/sh", "-c", literal(put_gate), literal(gate.source()), program, subcommand],
        "ARGUMENTS": [literal(word) for word in arguments],
        "PORT": server.port,
        "SHM": SHM_GIB,
    }


def container_notes(source: Source, format_name: str, **values: object) -> list[str]:
    """What a file for containers says of itself."""
    (outside,) = notes(source, f"{format_name}.outside")
    sections = (f"{format_name}.start", "container", f"{format_name}.rest")
    return notes(source, *sections, OUTSIDE=outside, **values)


def yaml_template(name: str, **values: Any) -> list[Any]:
    """The objects of a YAML file in configs/exports/, filled in.

    A mark (@NAME@) that stands alone becomes its value, of whatever kind; None takes the entry away.
    """
    import yaml

    marks = {f"@{mark}@": value for mark, value in values.items()}
    texts = {mark: str(value) for mark, value in marks.items()}

    def fill(part: Any) -> Any:
        match part:
            case dict():
                return {key: value for key, old in part.items() if (value := fill(old)) is not None}
            case list():
                return [fill(one) for one in part]
            case str():
                return marks[part] if part in marks else filled(part, texts)
        return part

    text = (configs_dir() / "exports" / name).read_text(encoding="utf-8")
    return [fill(document) for document in yaml.safe_load_all(text)]


def to_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """YAML as a person would write it: in order, a line an entry, no anchors."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
            return super().increase_indent(flow, False)

        def represent_str(self, data: str) -> Any:
            return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if data.count("\n") > 1 else None)

    Plain.add_representer(str, Plain.represent_str)
    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, width=1000, allow_unicode=True)
