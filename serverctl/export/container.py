"""What the compose file and the Kubernetes manifest share: the image, the command inside it, its environment, YAML."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foundation.errors import UsageError
from serverctl.export.common import Server, Source, notes

#: The images' home folders: weights, and what vLLM compiles and measures.
HUB_CACHE = "/root/.cache/huggingface"
VLLM_CACHE = "/root/.cache/vllm"
#: Shared memory between vLLM's processes (NCCL, PyTorch). A limit, not a reservation.
SHM_GIB = 8


def image(source: Source) -> str:
    """The image of the plan's vLLM. Raises UsageError where vLLM's project publishes none that we know."""
    vendor = source.plan.vendor
    version = source.capabilities.version
    if vendor == "nvidia":
        return f"vllm/vllm-openai:v{version}"
    if vendor == "cpu":
        return f"vllm/vllm-openai-cpu:v{version}"
    raise UsageError(
        f"There is no image of vLLM for {source.plan.gpus[0].name} that this export knows.",
        "`mai-server export systemd` or `script` run a vLLM that is installed.",
    )


def container_notes(source: Source, format_name: str, **values: object) -> list[str]:
    """What a file for containers says of itself."""
    (outside,) = notes(source, f"{format_name}.outside")
    sections = (f"{format_name}.start", "container", f"{format_name}.rest")
    return notes(source, *sections, OUTSIDE=outside, **values)


def argv(source: Source, server: Server) -> list[str]:
    """The command inside the container, program first: on every interface of the container."""
    model = server.command.model if source.folder is None else f"/models/{source.folder.name}"
    host = "0.0.0.0"  # noqa: S104
    lines = tuple(replace(line, value=host) if line.flag == "--host" else line for line in server.command.lines)
    return replace(server.command, lines=lines, model=model, module=False).argv()


def to_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """YAML as a person would write it: in order, a line an entry, no anchors."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
            return super().increase_indent(flow, False)

    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, width=1000, allow_unicode=True)
