"""Sends requests to a server: single questions, and the client of `bench` and `batch` for many. Never retries."""

import asyncio
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from foundation.endpoints import is_loopback, list_models
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.refusals import RefusalKind, refusal_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: Maximum number of concurrent requests; each needs a connection and a file descriptor.
MOST_CONNECTIONS = 900

#: Header of the controller's own requests. A server's door (its proxy) lets them in even while it holds others.
OURS = "x-mai-server"
#: Limit for the size of answers, bytes: another program on the port might send endless data.
_MOST_ANSWER = 16 * 1024**2

#: Transient failures. A timeout is not one of them: the request would time out again.
TRANSIENT: frozenset[RefusalKind] = frozenset({"unreachable", "overloaded", "server_error", "broken"})

#: Messages for people.
_SENTENCES: dict[RefusalKind, str] = {
    "silent": "The server did not answer in time.",
    "unreachable": "There is no connection to the server ({reason}).",
    "bad_key": "The server refuses the key: {reason}.",
    "overloaded": "The server has no room ({status}): {reason}.",
    "server_error": "The server failed ({status}): {reason}.",
    "broken": "The server sent something that is no answer ({reason}).",
    "no_images": "The model takes no images: {reason}.",
    "too_many_images": (
        "The server takes at most {limit} images in a request: start it with a higher --limit-mm-per-prompt."
    ),
    "context_too_long": "The request is longer than the model's context: {reason}.",
    "unknown_model": "The server does not know what was asked for: {reason}.",
    "refused": "The server refuses the request ({status}): {reason}.",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer to one question."""

    status: int | None  # HTTP status; None without an answer
    body: str  # or the reason why there is no answer

    @property
    def ok(self) -> bool:
        """True for HTTP status 200."""
        return self.status == 200


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server and how to call it."""

    base_url: str  # with the API's path, for example http://127.0.0.1:8000/v1
    api_key: str = field(default="", repr=False)  # sent as a bearer token; "" for servers without one
    model: str = ""  # the served model's name
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every request

    @property
    def is_local(self) -> bool:
        """True if requests stay on this machine."""
        return is_loopback(self.base_url)

    @property
    def root_url(self) -> str:
        """The server's own address, without the API's path: where /health and /metrics are."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    def ask(self, path: str, payload: object | None = None, seconds: float = 5.0) -> Answer:
        """Send one request below `root_url`, without proxies and redirections. Never raises."""
        parts = urlsplit(self.root_url)
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = made(parts.hostname or "", parts.port, timeout=seconds)
        key = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        method, body = ("GET", None) if payload is None else ("POST", json.dumps(payload))
        try:
            headers = {"Content-Type": "application/json", OURS: "1", **key}
            connection.request(method, f"{parts.path}{path}", body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read(_MOST_ANSWER).decode("utf-8", "replace"))
        except (OSError, ValueError, http.client.HTTPException) as error:
            return Answer(None, f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    def metrics_page(self, seconds: float = 3.0) -> str | None:
        """Return the /metrics page in Prometheus' text format; None if there is none."""
        answer = self.ask("/metrics", seconds=seconds)
        return answer.body if answer.ok else None


def on_loopback(port: int, key: str = "", model: str = "") -> Endpoint:
    """Return the server on a port of this machine."""
    return Endpoint(f"http://127.0.0.1:{port}/v1", key, model)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer."""

    kind: RefusalKind  # for programs
    message: str  # one sentence for people
    status: int | None = None  # the HTTP status of a refusal


class ServerGoneError(EnvironmentLacksError):
    """A server that was there no longer answers."""


def connect(endpoint: Endpoint, timeout_s: float) -> "AsyncOpenAI":
    """A client of the server for one event loop, without retries; it waits `timeout_s` seconds for each piece."""
    from openai import DEFAULT_CONNECTION_LIMITS, AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    # vLLM's HTTP server closes a connection that is idle for 5 seconds, and the library keeps it just as long: a
    # request in that moment failed. So we close idle connections earlier.
    limits = type(DEFAULT_CONNECTION_LIMITS)(
        max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS, keepalive_expiry=2.0
    )
    return AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key or "none",
        max_retries=0,
        timeout=Timeout(timeout_s, connect=5.0),
        default_headers=endpoint.headers,
        # No proxy of the environment for requests that stay on this machine, and no redirection of screenshots.
        http_client=DefaultAsyncHttpxClient(trust_env=not endpoint.is_local, follow_redirects=False, limits=limits),
    )


async def find_endpoint(base_url: str, api_key: str, model: str | None) -> Endpoint:
    """Ask the server at an address for its models.

    Raises EnvironmentLacksError without a server that takes the key, UsageError if it is not clear which model to ask.
    """
    async with connect(Endpoint(base_url, api_key, model or ""), timeout_s=20) as client:
        try:
            names = list(await list_models(client))
        except Exception as error:  # a foreign server may answer anything
            failure = explain(error)
            if model and failure.kind in ("refused", "unknown_model", "broken"):
                return Endpoint(base_url, api_key, model)  # a server without /v1/models can still chat
            raise _unusable(base_url, failure) from error
    choice = ", ".join(names[:8])
    if model is None and not names:
        raise EnvironmentLacksError(f"{base_url} serves no model.", "Start one with `mai-server up`.")
    if model is None and len(names) > 1:
        raise UsageError(f"{base_url} serves several models: {choice}.", "Choose one with --model.")
    if model is not None and names and model not in names:
        raise UsageError(f"{base_url} does not serve {model!r}.", f"It serves: {choice}.")
    return Endpoint(base_url, api_key, names[0] if model is None else model)


def _unusable(base_url: str, failure: Failure) -> EnvironmentLacksError:
    message = f"{base_url} does not list its models ({failure.message})"
    remedy = "Is that the address of an OpenAI-compatible API? Its model can be named with --model."
    if failure.kind == "bad_key":
        message = f"{base_url} refuses the key."
        remedy = "Give the right one with --api-key, or in the variable MAI_AGENT_API_KEY."
    elif failure.kind in ("unreachable", "silent", "overloaded"):
        message, remedy = f"There is no server at {base_url} ({failure.message})", "`mai-server up` starts one."
    return EnvironmentLacksError(message, remedy)


async def is_alive(endpoint: Endpoint) -> bool:
    """Whether the server still answers. vLLM's /health gives 503 once its engine is dead."""
    return (await asyncio.to_thread(endpoint.ask, "/health", None, 10.0)).status not in (None, 503)


def explain(error: BaseException) -> Failure:
    """Describe any exception of a request as a failure with a kind and a sentence."""
    refusal = refusal_of(error)
    sentence = _SENTENCES[refusal.kind]
    if refusal.kind == "server_error" and refusal.status is None:
        sentence = "The server broke off the answer: {reason}."
    message = sentence.format(reason=refusal.reason, status=refusal.status, limit=refusal.limit)
    return Failure(refusal.kind, message, refusal.status)
