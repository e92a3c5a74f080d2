"""Chooses what drives a run: a named endpoint, the server controller's vLLM, or the built-in literal engine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.model.asking import ModelClient, ServerCondition
from agent.model.endpoint import Endpoint, EngineChoice, Limits
from agent.model.peers.table import peer_of
from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError, MaiError, StoppedError, UsageError

Tell: TypeAlias = Callable[[str], None]
CheckStop: TypeAlias = Callable[[], None]
Ask: TypeAlias = Callable[[str], bool]


ENGINE_NAMES = ("auto", "vllm", "literal", "endpoint")


@dataclass(frozen=True, slots=True)
class Engine:
    """An endpoint that is ready, its name for the person, and how to let it go."""

    name: str
    endpoint: Endpoint  # what is asked
    close: Callable[[], None] = lambda: None  # lets it go
    remark: str = ""  # what the person should know
    family: str | None = None  # the model's family, where the engine knows it
    condition: Callable[[], ServerCondition] | None = None  # asks after a server of ours; None for others
    client: ModelClient | None = None  # asks it, where that is in this process; None for what is asked at its address
    load: Callable[[], str] | None = None  # how busy a server of ours is, in a few words; None for others


def is_running() -> bool:
    """Whether a local server runs or is on its way."""
    from serverctl.endpoint import running_server

    return running_server(None) is not None


def why_no_server() -> str:
    """Why no local server can be started here; "" where one can."""
    from serverctl.endpoint import why_no_accelerator

    return why_no_accelerator()


def local_server(choice: EngineChoice, tell: Tell, check_stop: CheckStop, ask: Ask | None) -> Engine:
    """The local server that runs, or one that is started now; the rest is as in `choose_engine`.

    Raises MaiError: it could not be started; with the controller's own words.
    """
    from serverctl.endpoint import ready_server, server_load, server_now

    try:
        server = ready_server(choice.model, choice.preset, tell, check_stop, ask, choice.beside)
    except (UsageError, StoppedError):
        raise
    except MaiError as error:  # whatever kept it from starting: for a run, it is a server that is lacking
        raise EnvironmentLacksError(error.what, error.remedy) from error

    def condition() -> ServerCondition:
        return ServerCondition(*server_now(server.name))

    limits = Limits(images=server.images, context=server.context, max_pixels=server.max_pixels)
    return Engine(
        "vllm",
        Endpoint(server.base_url, server.api_key, server.model, "vllm", limits),
        remark="The server stays for the next run; `mai-server down` stops it." if server.started else "",
        family=server.family,
        condition=condition,
        load=lambda: server_load(server.name),
    )


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
            return local_server(choice, tell, check_stop, ask)
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
    if is_running() or not (reason := why_no_server()):
        return "vllm", ""
    return "literal", f"{reason} {_WHY_LITERAL}"
