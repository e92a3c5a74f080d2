"""Chooses what drives a run: a named endpoint, the server controller's vLLM, or the built-in literal engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from agent.model.endpoint import Endpoint
from agent.model.serving import Ask, CheckStop, ServerCondition, Tell
from foundation.addresses import normalize_url
from foundation.errors import UsageError

EngineName: TypeAlias = Literal["auto", "vllm", "literal", "endpoint"]
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)


@dataclass(frozen=True, slots=True)
class Engine:
    """An endpoint that is ready, its name for the person, and how to let it go.

    Args:
        name: for the person.
        endpoint: what is asked.
        close: lets it go.
        remark: what the person should know.
        family: the model's family, where the engine knows it.
        condition: asks after a server of ours; None for others.
        load: how busy a server of ours is, in a few words; None for others.
    """

    name: str
    endpoint: Endpoint
    close: Callable[[], None]
    remark: str = ""
    family: str | None = None
    condition: Callable[[], ServerCondition] | None = None
    load: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for.

    Args:
        name: the engine.
        url: a named endpoint.
        model: a named model.
        api_key: for a named endpoint.
        preset: for a server of ours.
    """

    name: str = "auto"
    url: str | None = None
    model: str | None = None
    api_key: str = field(default="", repr=False)
    preset: str | None = None


def choose_engine(
    wish: Wish, tell: Tell = lambda _: None, check_stop: CheckStop = lambda: None, ask: Ask | None = None
) -> Engine:
    """The engine to use. `auto` takes the named endpoint, a running server, a graphics card, or the literal engine.

    Args:
        wish: what was asked for.
        tell: is told, in sentences, how a server's start goes.
        check_stop: raises when the person wants to stop.
        ask: puts a yes-or-no question to the person; None where nobody can be asked.

    Raises:
        UsageError: the wishes contradict each other.
        EnvironmentLacksError: what was asked for is not there.
    """
    name, url = wish.name, wish.url
    if name not in ENGINE_NAMES:
        raise UsageError(f"There is no engine {name!r}.", f"Engines are: {', '.join(ENGINE_NAMES)}.")
    if name == "endpoint" and url is None:
        raise UsageError("--engine endpoint needs an address.", "Add --endpoint http://127.0.0.1:8000/v1.")
    if name in ("auto", "endpoint") and url is not None:
        return Engine("endpoint", Endpoint(normalize_url(url), wish.api_key, wish.model), lambda: None)
    if name == "literal":
        return _literal("")
    from agent.model import serving

    if name == "auto" and not serving.is_running(None) and (reason := serving.why_no_server()):
        return _literal(f"{reason} {_WHY_LITERAL}")
    server = serving.local_server(wish.model, wish.preset, tell, check_stop, ask)
    return Engine("vllm", server.endpoint, lambda: None, server.remark, server.family, server.condition, server.load)


def _literal(remark: str) -> Engine:
    from agent.literal.server import LiteralServer

    server = LiteralServer()
    return Engine("literal", server.endpoint, server.close, remark)


_WHY_LITERAL = (
    "No endpoint is configured either, so the built-in literal engine is used: it reads the screen's text and follows "
    "literal instructions."
)
