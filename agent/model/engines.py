"""Chooses what drives a run: a named endpoint, the server controller's vLLM, or the built-in literal engine.

An endpoint may be a cloud provider of `configs/peers.toml`.
"""

import importlib.util
import os
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.model.asking import ModelClient, ServerCondition
from agent.model.endpoint import Api, Endpoint, EngineChoice, Limits
from agent.screen.outline import Outline
from foundation.configs import load_config
from foundation.endpoints import normalize_url
from foundation.errors import EnvironmentLacksError, MaiError, StoppedError, UsageError

Tell: TypeAlias = Callable[[str], None]
CheckStop: TypeAlias = Callable[[], None]
Ask: TypeAlias = Callable[[str], bool]


ENGINE_NAMES = ("auto", "vllm", "literal", "endpoint")


@dataclass(frozen=True, slots=True)
class Peer:
    """A cloud provider."""

    name: Api
    base_url: str  # address of its API
    key: str  # the environment variable of its key
    library: str  # the library that its client uses
    extra: str  # our package extra that installs the library; "" if it is always installed
    family: str  # the family of its models

    def endpoint(self, choice: EngineChoice) -> Endpoint:
        """Return the provider's endpoint: its own address, or another one with the same API.

        The key comes from the provider's own variable, then from the choice. Raises EnvironmentLacksError: the library
        is missing, or the key for the provider's own address.
        """
        url = _own_address(self, choice.url or "") or self.base_url
        key = os.environ.get(self.key) or choice.api_key
        if not _is_installed(self.library):
            raise EnvironmentLacksError(
                f"Asking {self.name} needs the library {self.library.replace('.', '-')}, which is not installed.",
                f'Install the extra that brings it: pip install "mai-agent[{self.extra or self.name}]".',
            )
        if not key and url == self.base_url:
            raise EnvironmentLacksError(f"There is no key for {self.name}.", f"Set it in the variable {self.key}.")
        return Endpoint(url, key, choice.model, api=self.name, key_variable=self.key)


PEERS: Mapping[str, Peer] = {name: Peer(name=name, **data) for name, data in load_config("peers.toml").items()}  # type: ignore[arg-type]
#: The environment variables that hold keys.
KEY_VARIABLES = (
    "MAI_AGENT_API_KEY", "MAI_AGENT_PLANNER_API_KEY", "MAI_AGENT_GROUNDER_API_KEY",
    *(peer.key for peer in PEERS.values()),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Engine:
    """A ready endpoint with its display name."""

    name: str
    endpoint: Endpoint  # where to send requests
    remark: str = ""  # a message for the person
    family: str | None = None  # the model's family, if the engine knows it
    condition: Callable[[], ServerCondition] | None = None  # returns the state of our own server; None for others
    client: ModelClient | None = None  # an in-process client; None to ask the endpoint's address
    load: Callable[[], str] | None = None  # describes the load of our own server; None for others
    #: returns a check for the expected effect of the last step; None if no effect is awaited
    awaited: Callable[[], Callable[[Outline], bool] | None] = lambda: None


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
    except MaiError as error:  # a run reports every failure as a missing server
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

    `literal` starts the literal engine, which may ask the named endpoint to read sentences that it does not understand.
    `tell` receives sentences about a server's start, `check_stop` raises if the person wants to stop, `ask` asks the
    person a yes/no question (may something be installed?); None if nobody can be asked.

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


def peer_of(address: str) -> Peer | None:
    """Return the provider that an address means: its name, its bare host name, or NAME+URL for any server with its API.

    Its host with a path means no provider: that is a chat completions API, for planners and other models without
    computer use.
    """
    plain = address.strip().lower()
    for peer in PEERS.values():
        if plain == peer.name or plain.startswith(f"{peer.name}+http"):
            return peer
        if plain.rstrip("/").removeprefix("https://") == urllib.parse.urlsplit(peer.base_url).hostname:
            return peer
    return None


def _own_address(peer: Peer, address: str) -> str:
    """Return what stands behind the + of NAME+URL, without a trailing slash; "" without a URL."""
    name, plus, url = address.strip().partition("+")
    if not plus or name.lower() != peer.name:
        return ""
    path = urllib.parse.urlsplit(url).path.strip("/")
    return normalize_url(url) if path else normalize_url(url).removesuffix("/v1")


def _is_installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:  # not even the parent package is installed
        return False
