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
    """A ready endpoint with its display name."""

    name: str
    endpoint: Endpoint  # where to send requests
    close: Callable[[], None] = lambda: None  # releases the engine
    remark: str = ""  # a message for the person
    family: str | None = None  # the model's family, if the engine knows it
    condition: Callable[[], ServerCondition] | None = None  # returns the state of our own server; None for others
    client: ModelClient | None = None  # an in-process client; None to ask the endpoint's address
    load: Callable[[], str] | None = None  # describes the load of our own server; None for others


def is_running() -> bool:
    """Return whether a local server runs or is starting."""
    from serverctl.endpoint import running_server

    return running_server(None) is not None


def why_no_server() -> str:
    """Return why no local server can be started here; "" if one can."""
    from serverctl.endpoint import why_no_accelerator

    return why_no_accelerator()


def local_server(choice: EngineChoice, tell: Tell, check_stop: CheckStop, ask: Ask | None) -> Engine:
    """Return the running local server, or start one. Other arguments are as in `choose_engine`.

    Raises MaiError: it could not be started, with the controller's reason.
    """
    from serverctl.endpoint import ready_server, server_load, server_now

    try:
        server = ready_server(choice.model, choice.preset, tell, check_stop, ask, choice.beside)
    except (UsageError, StoppedError):
        raise
    except MaiError as error:  # for a run, any reason means that the server is missing
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
    literal: Callable[[EngineChoice], Engine],
    tell: Tell = lambda _: None,
    check_stop: CheckStop = lambda: None,
    ask: Ask | None = None,
) -> Engine:
    """Return the engine to use.

    `auto` takes the first of these: the named endpoint, a running server, a GPU, the literal engine.

    Args:
        choice: what the person asked for.
        literal: starts the literal engine. It may ask the named endpoint to read sentences that it does not understand.
        tell: receives sentences about a server's start.
        check_stop: raises if the person wants to stop.
        ask: asks the person a yes/no question (may something be installed?); None if nobody can be asked.

    Raises:
        UsageError: there is no such engine, its address is missing, or it would ignore a named model or preset.
        EnvironmentLacksError: the requested engine is not available.
    """
    name, remark = _automatic(choice) if choice.name == "auto" else (choice.name, "")
    _check_used(choice, name)
    match name:
        case "endpoint":
            return named_endpoint(choice)
        case "literal":
            engine = literal(choice)
            return replace(engine, remark=" ".join(filter(None, (remark, engine.remark))))
        case "vllm":
            return local_server(choice, tell, check_stop, ask)
    raise UsageError(f"There is no engine {name!r}.", f"Engines are: {', '.join(ENGINE_NAMES)}.")


def named_endpoint(choice: EngineChoice) -> Engine:
    """Return the endpoint that a person named: an OpenAI-compatible server or a cloud provider.

    Raises UsageError: none is named, or the address is invalid. EnvironmentLacksError: the provider's library or key is
    missing.
    """
    if choice.url is None:
        raise UsageError("--engine endpoint needs an address.", "Add --endpoint http://127.0.0.1:8000/v1.")
    if (peer := peer_of(choice.url)) is not None:
        return Engine("endpoint", peer.endpoint(choice), family=peer.family)
    return Engine("endpoint", Endpoint(normalize_url(choice.url), choice.api_key, choice.model))


def _check_used(choice: EngineChoice, name: str) -> None:
    """Check that the engine uses the named model and preset, so that neither is ignored.

    Raises UsageError; EnvironmentLacksError: only the literal engine is there, and a model is named.
    """
    if name == "literal" and choice.model is not None and choice.url is None:
        if choice.name == "auto":
            raise EnvironmentLacksError(
                f"Nothing serves the model {choice.model!r}: {why_no_server()}",
                "Name the server that has it with --endpoint URL, or leave out the model: the built-in literal engine "
                "follows simple sentences without one.",
            )
        raise UsageError(
            f"The literal engine has no model, so {choice.model!r} means nothing to it.",
            "Leave out --model, or --engine literal; or name the model's server with --endpoint, to help the engine.",
        )
    if choice.preset is not None and name in ("literal", "endpoint"):
        raise UsageError(
            f"The preset {choice.preset!r} is for a server that is started here, and the engine is {name}.",
            "Leave out --preset.",
        )


def _automatic(choice: EngineChoice) -> tuple[str, str]:
    """Return the engine's name, and the reason if it must be the literal one."""
    if choice.url is not None:
        return "endpoint", ""
    if is_running() or not (reason := why_no_server()):
        return "vllm", ""
    return "literal", f"{reason} {_WHY_LITERAL}"
