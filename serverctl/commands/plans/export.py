"""`mai-server export`: the plan for other supervisors and other machines."""

import argparse
import getpass
import importlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foundation.command_line import Parser, port_number
from foundation.configs import load_config
from foundation.errors import ExitStatus, UsageError
from foundation.files import cannot_write
from foundation.printing import put, put_json, put_text
from serverctl.commands.options import add_beside, add_goal, add_hardware, hardware_of, resolve_options, split_flags
from serverctl.export.common import Document, Source, check_secrets
from serverctl.plan.goal import Plan
from serverctl.planning import Resolved
from serverctl.process import control
from serverctl.process.state import Folder, current_state

#: The formats of `configs/exports/formats.toml` by name.
FORMATS: Mapping[str, Mapping[str, Any]] = load_config("exports/formats.toml")
_EXAMPLES = """formats:
{formats}

Every file says at its top how it was made and what to do with it. Flags are those of `mai-server plan` for the same
options, so read that first: it has the reason of every one. None of the files holds a key: each says where it goes.

examples:
  mai-server export systemd --out mai-vllm.service       this machine, as a service
  mai-server export systemd --user --model MAI-UI-2B
  mai-server export compose --gpu H100 --gpus 8 --preset throughput --out deploy/
  mai-server export kubernetes --gpu L40S --name gui-model --out gui-model.yaml
  mai-server export script --gpu "RTX 4090" --out serve.sh
  mai-server export multi-node --gpu L40S --gpus 8 --nodes 2 --model Qwen3-VL-32B-Instruct --out cluster/
  mai-server export notebook --gpu T4 --out mai-ui-t4.ipynb    (T4, L4, A100-40, A100-80, H100, B200, ...)
  mai-server export haproxy --gpu H100 --gpus 8 --preset throughput --out haproxy.cfg
  mai-server export litellm --model MAI-UI-2B --beside Qwen3-VL-8B-Instruct --gpu L40S --out litellm.yaml
  mai-server export script -- --seed 0                   vLLM's own flags after --"""

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
#: Options that a file's first line repeats as they are.
_MADE_BY = (
    "gpu", "gpus", "gpu_memory", "gpu_capability", "gpu_bandwidth", "model", "preset", "max_model_len", "screen",
    "port", "name", "name_as", "nodes",
)  # fmt: skip
#: This machine's variables that say where models and compiled kernels are.
_CARRIED = ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "VLLM_CACHE_ROOT")


def main(arguments: list[str]) -> int:
    """Write an export."""
    own, flags = split_flags(arguments)
    parser = Parser(
        "mai-server export",
        description="The plan as files for other supervisors and other machines. Starts nothing.",
        epilog=_EXAMPLES.format(formats="\n".join(f"  {name:<12}{entry['about']}" for name, entry in FORMATS.items())),
    )
    parser.add_argument("format", metavar="FORMAT", choices=list(FORMATS), help=", ".join(FORMATS))
    add_hardware(parser)
    add_goal(parser)
    add_beside(parser)
    group = parser.add_argument_group("the export").add_argument
    group("--out", metavar="PATH", help="write to this file, or folder (a/); existing files are kept unless --force")
    group("--port", type=port_number, metavar="N", help="where the server listens (default 8000)")
    group("--name", default="mai-vllm", help="of the unit, service or job (default mai-vllm)")
    group("--name-as", metavar="NAME", help="what clients call the model (default: its own name)")
    group("--user", action="store_true", help="systemd: a unit for your own account's manager")
    group("--nodes", type=int, metavar="N", help="multi-node: how many machines (--gpus: cards of each)")
    group("--json", action="store_true", help="print the files as JSON")
    options = parser.parse_args(own)
    _check(options)
    source = make_source(options, flags)
    module, _, function = FORMATS[options.format]["function"].partition(".")
    documents: Sequence[Document] = getattr(importlib.import_module(f"serverctl.export.{module}"), function)(source)
    paths = _write(documents, Path(options.out), options) if options.out else None
    if options.json:
        put_json(_json(options.format, source, documents, paths), indent=1)
    elif paths is not None:
        put(*(f"Wrote {path}." for path in paths))
        put_text(f"Next: {FORMATS[options.format]['then']}")
    elif len(documents) == 1:
        put_text(documents[0].text)
    else:
        put_text("\n".join(f"# ==> {document.name} <==\n{document.text}" for document in documents))
    return ExitStatus.DONE


def _check(options: argparse.Namespace) -> None:
    if not _NAME.fullmatch(options.name):
        raise UsageError(
            f"{options.name!r} is no name for a service.",
            "Use up to 40 small letters, digits and hyphens, a letter first.",
        )
    if options.user and options.format != "systemd":
        raise UsageError("--user is for the format systemd.", "Leave it out.")
    if options.beside and options.format != "litellm":
        raise UsageError(
            f"--beside goes with the format litellm, not {options.format}.",
            "Export each model by itself; `mai-server plan --beside` tells its --set gpu_memory_utilization.",
        )
    if (options.nodes is not None) != (options.format == "multi-node"):
        raise UsageError(
            "--nodes N goes with the format multi-node, and that needs it.",
            "For example: export multi-node --nodes 2 --gpu H100 --gpus 8.",
        )


def make_source(options: argparse.Namespace, flags: list[str]) -> Source:
    """The input of an export. Raises MaiError if there is no plan."""
    if options.format == "notebook" and not options.gpu:
        raise UsageError(
            "A notebook is for a card elsewhere.", "Name it: --gpu T4, L4, A100-40, A100-80, H100 or B200."
        )
    request, *others = resolve_options(options, flags + options.flags, hardware_of(options)).beside(options.beside)
    if options.format == "multi-node":
        from serverctl.export.scripts import plan_nodes

        plan = plan_nodes(request.hardware, request.goal, request.capabilities.version, options.nodes)
    else:
        plan = request.plan()
    here = not request.hardware.imagined
    port = options.port or request.config.port or 8000
    source = Source(
        plan=plan,
        hardware=request.hardware,
        capabilities=request.capabilities,
        goal=request.goal,
        made_by=_made_by(options, request),
        port=port,
        running=_running(plan) if here and options.format == "haproxy" and options.port is None else (),
        name=options.name,
        served_name=options.name_as,
        python=request.vllm.python if request.vllm is not None else None,
        environ={name: os.environ[name] for name in _CARRIED if os.environ.get(name)} if here else {},
        account=_account() if here else "vllm",
        user_unit=options.user,
        nodes=options.nodes or 1,
    )
    check_secrets(source.servers()[0].command)
    for other in others:
        beside = replace(
            source, plan=other.plan(), goal=other.goal, hardware=other.hardware, port=source.last_port + 1,
            served_name=None, beside=(),
        )  # fmt: skip
        source = replace(source, beside=(*source.beside, beside))
    routers = 1 if options.format in ("haproxy", "litellm") else 0  # they listen on the port after the last server's
    if (count := source.last_port + routers - port + 1) > 65_536 - port:
        raise UsageError(f"{count} ports are needed from port {port} on.", "Start lower with --port.")
    return source


def _running(plan: Plan) -> tuple[int, ...]:
    """Return the ports of running servers for this plan: one `up` started them with its model, one per replica."""
    for state in control.live_servers(plan.model.source):
        states = [current_state(Folder(name)) for name in control.as_before(state.name).together]
        ports = tuple(each.port for each in states if each.port is not None and each.source == plan.model.source)
        if len(ports) == len(plan.replicas):
            return ports
    return ()


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "vllm"


def _made_by(options: argparse.Namespace, request: Resolved) -> str:
    """Return the command line that makes this export again, without paths of this machine."""
    model = options.model
    if model and Path(model).expanduser().is_dir():
        model = Path(model).expanduser().resolve().name
    values = vars(options) | {"model": model, "name": None if options.name == "mai-vllm" else options.name}
    pairs = [(f"--{name.replace('_', '-')}", values[name]) for name in _MADE_BY if values[name] is not None]
    pairs += [("--beside", name) for name in options.beside] + [("--set", text) for text in options.assignments]
    words = ["mai-server", "export", options.format, *(str(word) for pair in pairs for word in pair)]
    words += ["--user"] if options.user else []
    return shlex.join([*words, "--", *request.goal.extra] if request.goal.extra else words)


def _write(documents: Sequence[Document], out: Path, options: argparse.Namespace) -> list[Path]:
    """Write all files. Raises UsageError if a file exists or is no folder, EnvironmentLacksError on failure."""
    out = out.expanduser()
    folder = out.is_dir() or options.out.endswith("/") or len(documents) > 1
    if folder and out.exists() and not out.is_dir():
        raise UsageError(
            f"{out} is a file, and this export has {len(documents)} files.", "Name a folder: --out FOLDER/."
        )
    paths = [out / document.name for document in documents] if folder else [out]
    existing = [path for path in paths if path.exists()]
    if existing and not options.force:
        raise UsageError(f"{existing[0]} is there already.", "Choose another --out, or overwrite it with --force.")
    try:
        for path, document in zip(paths, documents, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document.text, encoding="utf-8")
            if document.executable:
                path.chmod(path.stat().st_mode | ((path.stat().st_mode & 0o444) >> 2))
    except OSError as error:
        raise cannot_write(Path(error.filename or out), error) from error
    return paths


def _json(name: str, source: Source, documents: Sequence[Document], paths: list[Path] | None) -> dict[str, object]:
    return {
        "format": name,
        "made_by": source.made_by,
        "model": source.model,
        "vllm": source.capabilities.version,
        "endpoints": [f"{server.url}/v1" for one in (source, *source.beside) for server in one.servers()],
        "files": [
            {"name": document.name, "path": None if paths is None else str(paths[number]), **asdict(document)}
            for number, document in enumerate(documents)
        ],
    }
