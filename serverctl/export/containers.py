"""The compose file and the Kubernetes manifest: the image, and the command inside it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from foundation.errors import UsageError
from foundation.templates import to_yaml, yaml_template
from serverctl.export.common import GATE_FOLDER, START_SECONDS, Document, Server, Source
from serverctl.hardware.facts import GIB
from serverctl.process import api_key_gate as gate

#: Cache folders in the images: the hub's weights, and what vLLM compiles and measures.
_HUB_CACHE = "/root/.cache/huggingface"
_VLLM_CACHE = "/root/.cache/vllm"
#: Shared memory between vLLM's processes (NCCL, PyTorch). A limit, not a reservation.
_SHM_GIB = 8
#: How long an agent's address stays with the same server after its last request, seconds: Kubernetes' own default.
_AFFINITY_SECONDS = 10_800
#: Main memory of a vLLM process beside the model: images, pinned buffers, compilers. An estimate, for the scheduler.
_BASE_GIB, _CARD_GIB = 8, 4

_IMAGES = {"nvidia": "vllm/vllm-openai", "cpu": "vllm/vllm-openai-cpu"}


def compose_documents(source: Source) -> Sequence[Document]:
    """The compose file: every server of the plan as a service, reachable from this machine only."""
    about = _notes(source, "compose", SHM=_SHM_GIB, LAST_PORT=source.servers()[-1].port)
    data = {
        # No "name" of the project: docker-compose 1.x refuses it. The volumes have names of their own instead.
        "services": {server.name: _service(source, server) for server in source.servers()},
        "volumes": {volume: {"name": f"{source.name}-{volume}"} for volume in ("hub-cache", "vllm-cache")},
    }
    return [Document("compose.yaml", source.header_comment(about) + to_yaml([data]))]


def _service(source: Source, server: Server) -> Any:
    def literal(text: str) -> str:
        return text.replace("$", "$$")  # compose replaces $NAME everywhere else

    volumes = [f"hub-cache:{_HUB_CACHE}", f"vllm-cache:{_VLLM_CACHE}"]
    if source.folder is not None:
        name = source.folder.name
        volumes.append(f"${{MODEL_FOLDER:?the folder with the files of {name}}}:/models/{name}:ro")
    # vLLM's CPU build binds its threads and memory to NUMA nodes (set_mempolicy, move_pages).
    cpu = source.plan.vendor == "cpu"
    environment = {name: literal(value) for name, value in server.unpinned_env.items()}
    (service,) = yaml_template(
        "service.yaml",
        **_common_marks(source, server, literal),
        ENVIRONMENT={"VLLM_API_KEY": "${VLLM_API_KEY:?set a key}", **environment},
        VOLUMES=volumes,
        HEALTH_CHECK=server.health_check,
        START_SECONDS=START_SECONDS,
        CAPABILITIES=["SYS_NICE"] if cpu else None,
        SECURITY=["seccomp=unconfined"] if cpu else None,
        DEPLOY=None if cpu else {"resources": {"reservations": {"devices": [_devices(source, server)]}}},
    )
    return service


def _devices(source: Source, server: Server) -> dict[str, Any]:
    """Name the cards if the plan pins them or there are several servers; otherwise only count them."""
    named = all(card.uuid for card in server.cards)
    which: dict[str, Any] = {"count": len(server.cards)}
    if named or len(source.plan.replicas) > 1:
        which = {"device_ids": [card.uuid if named else str(card.index) for card in server.cards]}
    return {"driver": "nvidia", **which, "capabilities": ["gpu"]}


def kubernetes_documents(source: Source) -> Sequence[Document]:
    """The manifest for a cluster with NVIDIA's device plugin: secret, volume, deployment and service in one file."""
    source.check_portable("A manifest")

    def literal(text: str) -> str:
        return text.replace("$(", "$$(")  # Kubernetes replaces $(NAME) in arguments and values

    plan, server = source.plan, source.servers()[0]
    cpu, cards, several = plan.vendor == "cpu", len(plan.gpus), len(plan.replicas) > 1
    key = {"secretKeyRef": {"name": f"{source.name}-key", "key": "VLLM_API_KEY"}}
    environment = [{"name": name, "value": literal(value)} for name, value in server.unpinned_env.items()]
    weights = plan.model.weight_bytes(plan.model.own_precision) / GIB
    objects = yaml_template(
        "kubernetes.yaml",
        **_common_marks(source, server, literal),
        NAME=source.name,
        ENVIRONMENT=[{"name": "VLLM_API_KEY", "valueFrom": key}, *environment],
        HUB_CACHE=_HUB_CACHE,
        VLLM_CACHE=_VLLM_CACHE,
        SERVERS=len(plan.replicas),
        PORT_TEXT=str(server.port),
        STARTUP_CHECKS=START_SECONDS // 10,
        ACCESS="ReadWriteMany" if several else "ReadWriteOnce",
        # The weights, as much again for another model or revision, and compiled kernels.
        STORAGE=math.ceil(2 * weights + 10),
        MEMORY=math.ceil(plan.budget.requested / GIB) + _SHM_GIB if cpu else _BASE_GIB + _CARD_GIB * cards,
        LIMITS=None if cpu else {"nvidia.com/gpu": str(cards)},
        # As in the compose file.
        CAPABILITIES=["SYS_NICE"] if cpu else None,
        SECCOMP="Unconfined" if cpu else "RuntimeDefault",
        AFFINITY="ClientIP" if several else None,
        AFFINITY_CONFIG={"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}} if several else None,
    )
    about = _notes(source, "kubernetes", MINUTES=START_SECONDS // 60)
    return [Document(f"{source.name}.yaml", source.header_comment(about) + to_yaml(objects))]


def _common_marks(source: Source, server: Server, literal: Callable[[str], str]) -> dict[str, Any]:
    """Return the values for the marks of both templates; `literal` escapes variables in a word.

    Raises UsageError if vLLM's project publishes no image for these cards.
    """
    if source.plan.vendor not in _IMAGES:
        raise UsageError(
            f"There is no image of vLLM for {source.plan.gpus[0].name} that this export knows.",
            "`mai-server export systemd` or `script` run a vLLM that is installed.",
        )
    # Listen on every interface of the container; no other port of the container is open.
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
        "SHM": _SHM_GIB,
    }


def _notes(source: Source, format_name: str, **values: object) -> list[str]:
    (outside,) = source.notes(f"{format_name}.outside")
    sections = (f"{format_name}.start", "container", f"{format_name}.rest")
    return source.notes(*sections, OUTSIDE=outside, **values)
