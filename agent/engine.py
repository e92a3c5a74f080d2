"""Chooses what drives a run: a named endpoint, the server controller's vLLM, or the built-in literal engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from agent.endpoint import Endpoint, normalize_url
from agent.errors import EnvironmentLacksError, UsageError

EngineName: TypeAlias = Literal["auto", "vllm", "literal", "endpoint"]
ENGINE_NAMES: tuple[str, ...] = get_args(EngineName)


@dataclass(frozen=True, slots=True)
class Engine:
    """An endpoint that is ready, its name for the person, and how to let it go."""

    name: str
    endpoint: Endpoint
    close: Callable[[], None]
    remark: str = ""


def choose_engine(name: str, url: str | None, model: str | None, api_key: str) -> Engine:
    """The engine to use.

    Args:
        name: what was asked for.
        url: a named endpoint.
        model: a named model.
        api_key: for the endpoint.

    Raises:
        UsageError: the wishes contradict each other.
        EnvironmentLacksError: what was asked for is not there.
    """
    if name == "endpoint" and url is None:
        raise UsageError("--engine endpoint needs an address.", "Add --endpoint http://127.0.0.1:8000/v1.")
    if name in ("auto", "endpoint") and url is not None:
        return Engine("endpoint", Endpoint(normalize_url(url), api_key, model), lambda: None)
    if name == "vllm":
        raise EnvironmentLacksError(
            "This version cannot start vLLM by itself yet.",
            "Start a server of your own and name it: --endpoint http://127.0.0.1:8000/v1.",
        )
    if name not in ("auto", "literal"):
        raise UsageError(f"There is no engine {name!r}.", f"Engines are: {', '.join(ENGINE_NAMES)}.")
    from agent.literal.server import LiteralServer

    server = LiteralServer()
    remark = "" if name == "literal" else _WHY_LITERAL
    return Engine("literal", server.endpoint, server.close, remark)


_WHY_LITERAL = (
    "No model endpoint is configured, so the built-in literal engine is used: it reads the screen's text and follows "
    "literal instructions. Name a model's endpoint with --endpoint."
)
