"""Chooses what drives a run: a named endpoint, the server controller's vLLM, or the built-in literal engine."""

from collections.abc import Callable
from dataclasses import replace

from agent.model import serving
from agent.model.endpoint import Endpoint
from agent.model.engine import ENGINE_NAMES, Engine, EngineChoice
from agent.model.peers.table import peer_of
from agent.model.serving import Ask, CheckStop, Tell
from foundation.addresses import normalize_url
from foundation.errors import UsageError

_WHY_LITERAL = (
    "No endpoint is configured either, so the built-in literal engine is used: it reads the screen's text and follows "
    "literal instructions."
)


def choose_engine(
    choice: EngineChoice,
    literal: Callable[[], Engine],
    tell: Tell = lambda _: None,
    check_stop: CheckStop = lambda: None,
    ask: Ask | None = None,
) -> Engine:
    """The engine to use. `auto` takes the named endpoint, a running server, a graphics card, or the literal engine.

    Args:
        choice: what was asked for.
        literal: starts the literal engine.
        tell: is told, in sentences, how a server's start goes.
        check_stop: raises when the person wants to stop.
        ask: puts a yes-or-no question (may something be installed?) to the person; None where nobody can be asked.

    Raises:
        UsageError: there is no such engine, or it lacks its address.
        EnvironmentLacksError: what was asked for is not there.
    """
    name, remark = _automatic(choice) if choice.name == "auto" else (choice.name, "")
    match name:
        case "endpoint":
            return named_endpoint(choice)
        case "literal":
            return replace(literal(), remark=remark)
        case "vllm":
            return serving.local_server(choice, tell, check_stop, ask)
    raise UsageError(f"There is no engine {name!r}.", f"Engines are: {', '.join(ENGINE_NAMES)}.")


def named_endpoint(choice: EngineChoice) -> Engine:
    """The endpoint that a person named: an OpenAI-compatible one, or a cloud peer.

    Raises UsageError: none is named, or it is no address; EnvironmentLacksError: a peer's library or key is not there.
    """
    if choice.url is None:
        raise UsageError("--engine endpoint needs an address.", "Add --endpoint http://127.0.0.1:8000/v1.")
    if (peer := peer_of(choice.url)) is not None:
        return Engine("endpoint", peer.endpoint(choice), family=peer.family)
    return Engine("endpoint", Endpoint(normalize_url(choice.url), choice.api_key, choice.model))


def _automatic(choice: EngineChoice) -> tuple[str, str]:
    """The engine's name, and why it must be the literal one."""
    if choice.url is not None:
        return "endpoint", ""
    if serving.is_running() or not (reason := serving.why_no_server()):
        return "vllm", ""
    return "literal", f"{reason} {_WHY_LITERAL}"
