"""A compose file: every server of the plan as a service of its own, reachable from this machine only."""

from collections.abc import Sequence
from typing import Any

from serverctl.export.common import START_SECONDS, Document, Server, Source, header_comment
from serverctl.export.container import (
    HUB_CACHE,
    SHM_GIB,
    VLLM_CACHE,
    common_marks,
    container_notes,
    to_yaml,
    yaml_template,
)


def documents(source: Source) -> Sequence[Document]:
    """The compose file."""
    about = container_notes(source, "compose", SHM=SHM_GIB, LAST_PORT=source.servers()[-1].port)
    return [Document("compose.yaml", header_comment(source, about) + to_yaml([data(source)]))]


def data(source: Source) -> dict[str, Any]:
    """The file as values."""
    return {
        # No "name" of the project: docker-compose 1.x refuses it. The volumes have names of their own instead.
        "services": {server.name: _service(source, server) for server in source.servers()},
        "volumes": {volume: {"name": f"{source.name}-{volume}"} for volume in ("hub-cache", "vllm-cache")},
    }


def _literal(text: str) -> str:
    """Text that compose takes as it is: it replaces $NAME everywhere else."""
    return text.replace("$", "$$")


def _service(source: Source, server: Server) -> Any:
    volumes = [f"hub-cache:{HUB_CACHE}", f"vllm-cache:{VLLM_CACHE}"]
    if source.folder is not None:
        name = source.folder.name
        volumes.append(f"${{MODEL_FOLDER:?the folder with the files of {name}}}:/models/{name}:ro")
    # vLLM's CPU build binds its threads and memory to the processor's nodes (set_mempolicy, move_pages).
    cpu = source.plan.vendor == "cpu"
    environment = {name: _literal(value) for name, value in server.unpinned_env.items()}
    (service,) = yaml_template(
        "service.yaml",
        **common_marks(source, server, _literal),
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
    """The cards: by name where the plan pins them or servers must be kept apart, by number of cards otherwise."""
    named = all(card.uuid for card in server.cards)
    which: dict[str, Any] = {"count": len(server.cards)}
    if named or len(source.plan.replicas) > 1:
        which = {"device_ids": [card.uuid if named else str(card.index) for card in server.cards]}
    return {"driver": "nvidia", **which, "capabilities": ["gpu"]}
