"""One address for several servers: HAProxy for a plan's replicas, LiteLLM for several models."""

import shlex
from collections.abc import Iterator, Sequence

from foundation.errors import UsageError
from foundation.templates import template, to_yaml, yaml_template
from serverctl.export.common import Document, Source
from serverctl.hardware.catalogue import is_listed
from serverctl.hardware.facts import Gpu
from serverctl.plan.env import pins
from serverctl.plan.goal import Goal

_SHARE = "gpu_memory_utilization"


def haproxy_documents(source: Source) -> Sequence[Document]:
    """The configuration of HAProxy. Raises UsageError for a single server."""
    servers = source.servers()
    if len(servers) == 1:
        raise UsageError(
            "This plan has one server, which needs no balancer.",
            "--preset throughput on several cards has one server a card; vLLM's own batching serves many agents.",
        )
    lines = "".join(f"    server {one.name} 127.0.0.1:{one.port} check inter 2s fall 3 rise 1\n" for one in servers)
    text = template("haproxy.cfg", {"@NAME@": source.name, "@PORT@": str(source.last_port + 1), "@SERVERS@\n": lines})
    ports = ", ".join(str(one.port) for one in servers)
    about = source.notes("haproxy.about", OWN_PORT=source.last_port + 1, PORTS=ports)
    return [Document("haproxy.cfg", source.header_comment(about) + text)]


def litellm_documents(source: Source) -> Sequence[Document]:
    """The configuration of LiteLLM's proxy: each model by its name."""
    models = [
        yaml_template("litellm-model.yml", MODEL=one.model, BASE=f"{server.url}/v1")[0]
        for one in (source, *source.beside)
        for server in one.servers()
    ]
    data = yaml_template("litellm.yml", MODELS=models)
    starts = [line for one in (source, *source.beside) for line in _starts(one)]
    about = [*source.notes("litellm.start"), *starts, *source.notes("litellm.rest", OWN_PORT=source.last_port + 1)]
    return [Document("litellm.yaml", source.header_comment(about) + to_yaml(data))]


def _starts(source: Source) -> Iterator[str]:
    goal = source.goal
    share = goal.adjustments.get(_SHARE)
    values = {**goal.overrides, **({} if share is None else {_SHARE: share})}
    for server in source.servers():
        words = [*_hardware(source, server.cards), "--model", goal.model or source.plan.model.name]
        words += ["--preset", source.plan.preset]
        words += ["--screen", "{}x{}".format(*goal.screen)] if goal.screen != Goal().screen else []
        words += [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        words += ["--name-as", source.served_name] if source.served_name else []
        words += ["--port", str(server.port), "--out", f"serve-{server.port}.sh"]
        words += ["--", *goal.extra] if goal.extra else []
        # These variables override the cards that a script finds by itself.
        found = pins(server.cards, source.capabilities.version) if server.cards else {}
        pinned = "".join(f"{name}={shlex.quote(value)} " for name, (value, _) in found.items())
        found_there = "" if source.hardware.imagined else pinned
        yield f"  {found_there}mai-server export script {shlex.join(words)}"
        yield f"  {pinned}./serve-{server.port}.sh"


def _hardware(source: Source, cards: Sequence[Gpu]) -> list[str]:
    if not source.hardware.imagined:
        return []
    if not cards:
        return ["--gpu", "cpu"]
    card = cards[0]
    words = ["--gpu", card.name, *(["--gpus", str(len(cards))] if len(cards) > 1 else [])]
    if not is_listed(card.name):  # the user described this card
        words += ["--gpu-memory", f"{card.total_gib:g}"]
        words += ["--gpu-capability", ".".join(map(str, card.compute_capability))] if card.compute_capability else []
        words += ["--gpu-bandwidth", f"{card.bandwidth_gb_s:g}"] if card.bandwidth_gb_s else []
    return words
