"""A compose file: every server of the plan as a service of its own, reachable from this machine only."""

from collections.abc import Sequence
from typing import Any

from serverctl.export.common import START_SECONDS, Document, Server, Source, header_comment
from serverctl.export.container import HUB_CACHE, SHM_GIB, VLLM_CACHE, argv, container_notes, image, to_yaml


def documents(source: Source) -> Sequence[Document]:
    """The compose file."""
    about = container_notes(source, "compose", SHM=SHM_GIB, LAST_PORT=source.servers()[-1].port)
    return [Document("compose.yaml", header_comment(source, about) + to_yaml([data(source)]))]


def data(source: Source) -> dict[str, Any]:
    """The file as values."""
    return {
        "name": source.name,
        "services": {server.name: _service(source, server) for server in source.servers()},
        "volumes": {"hub-cache": {}, "vllm-cache": {}},
    }


def literal(text: str) -> str:
    """Text that compose takes as it is: it replaces $NAME everywhere else."""
    return text.replace("$", "$$")


def _service(source: Source, server: Server) -> dict[str, Any]:
    program, subcommand, *arguments = argv(source, server)
    volumes = [f"hub-cache:{HUB_CACHE}", f"vllm-cache:{VLLM_CACHE}"]
    if source.folder is not None:
        name = source.folder.name
        volumes.append(f"${{MODEL_FOLDER:?the folder with the files of {name}}}:/models/{name}:ro")
    service: dict[str, Any] = {
        "image": image(source),
        "entrypoint": [program, subcommand],
        "command": [literal(word) for word in arguments],
        "environment": {
            "VLLM_API_KEY": "${VLLM_API_KEY:?set a key}",
            **{name: literal(value) for name, value in server.unpinned_env.items()},
        },
        "ports": [f"127.0.0.1:{server.port}:{server.port}"],
        "volumes": volumes,
        "shm_size": f"{SHM_GIB}gb",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", server.health_check],
            "start_period": f"{START_SECONDS}s",
            "interval": "30s",
            "timeout": "10s",
            "retries": 5,
        },
        "stop_grace_period": "20s",
        "restart": "unless-stopped",
    }
    if source.plan.vendor == "cpu":
        # vLLM's CPU build binds its threads and memory to the processor's nodes (set_mempolicy, move_pages).
        service |= {"cap_add": ["SYS_NICE"], "security_opt": ["seccomp=unconfined"]}
    else:
        service["deploy"] = {"resources": {"reservations": {"devices": [_devices(source, server)]}}}
    return service


def _devices(source: Source, server: Server) -> dict[str, Any]:
    """The cards: by name where the plan pins them or servers must be kept apart, by number of cards otherwise."""
    named = all(card.uuid for card in server.cards)
    which: dict[str, Any] = {"count": len(server.cards)}
    if named or len(source.plan.replicas) > 1:
        which = {"device_ids": [card.uuid if named else str(card.index) for card in server.cards]}
    return {"driver": "nvidia", **which, "capabilities": ["gpu"]}
