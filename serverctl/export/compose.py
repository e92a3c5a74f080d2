"""A compose file: every server of the plan as a service of its own, reachable from this machine only."""

from collections.abc import Sequence
from typing import Any

from serverctl.export.common import START_SECONDS, Document, Server, Source, header_comment
from serverctl.export.container import HUB_CACHE, LISTENS, SHM_GIB, VLLM_CACHE, about_image, argv, image, to_yaml


def documents(source: Source) -> Sequence[Document]:
    """The compose file."""
    return [Document("compose.yaml", header_comment(source, *_about(source)) + to_yaml([data(source)]))]


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


def _about(source: Source) -> list[str]:
    servers = source.servers()
    first, last = servers[0].port, servers[-1].port
    lines = [
        "Start:",
        "  export VLLM_API_KEY=$(openssl rand -hex 24)",
        "  docker compose up -d && docker compose logs -f",
        "The key is in no file: compose refuses to start without the variable. An .env file beside this one (mode "
        "0600) works too.",
        "",
        *about_image(source),
        f"{LISTENS} Outside it the port is bound to 127.0.0.1, so only this machine reaches it; a reverse proxy with "
        "TLS is the way to share it.",
        f"shm_size: a limit of {SHM_GIB} GiB, not a reservation. `ipc: host` would do as well, and share more than "
        "memory.",
        "start_period: the first start downloads the model; until then no failed check counts.",
        "restart: also after exit status 0, because vLLM's server exits with it when its engine dies.",
    ]
    if source.folder is not None:
        lines.append(f"Model: export MODEL_FOLDER=/path/to/{source.folder.name}, the folder with its files.")
    if source.plan.vendor == "cpu":
        lines.append("cap_add and security_opt let vLLM bind its threads and memory to the processor's nodes.")
    if len(servers) > 1:
        lines.append(
            f"Ports {first} to {last}: {len(servers)} independent servers, each on its own cards. Keep an agent with "
            "one of them: its screenshots and history are then in that server's caches."
        )
    return lines
