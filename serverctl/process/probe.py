"""A small blocking HTTP client for servers on loopback: health, served model, metrics, test requests."""

import base64
import http.client
import io
import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from serverctl.load.metrics import ServerMetrics, parse_metrics

#: The controller sends this header with its own requests, which a server's door lets in even while it holds others.
OURS = "x-mai-server"
#: A server's door tells there how many requests of clients run.
INSIDE = "/mai-server/inside"
#: Limit for the size of answers, bytes: another program on the port might send endless data.
_MOST_ANSWER = 16 * 1024**2
#: Side of the test image. 65,536 pixels is the smallest image that Qwen3-VL's processor does not enlarge.
PROBE_SIDE = 256


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer."""

    status: int | None  # HTTP status; None without an answer
    body: str  # or the reason why there is no answer

    @property
    def ok(self) -> bool:
        """True for HTTP status 200."""
        return self.status == 200


def ask(port: int, path: str, key: str = "", payload: object | None = None, seconds: float = 5.0) -> Answer:
    """Send one request to a port on loopback. Never raises; errors are in the answer."""
    return ask_at(f"http://127.0.0.1:{port}", path, key, payload, seconds)


def ask_at(root: str, path: str, key: str = "", payload: object | None = None, seconds: float = 5.0) -> Answer:
    """Send one request to the server at a URL, without proxies and redirections. Never raises."""
    parts = urlsplit(root)
    made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = made(parts.hostname or "", parts.port, timeout=seconds)
    path = f"{parts.path.rstrip('/')}{path}"
    headers = {"Content-Type": "application/json", OURS: "1", **({"Authorization": f"Bearer {key}"} if key else {})}
    method, body = ("GET", None) if payload is None else ("POST", json.dumps(payload))
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(_MOST_ANSWER).decode("utf-8", "replace"))
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Answer(None, f"{type(error).__name__}: {error}")
    finally:
        connection.close()


def is_healthy(port: int, seconds: float = 5.0) -> bool:
    """Return whether /health answers 200. This does not run the model."""
    return ask(port, "/health", seconds=seconds).ok


def served_context(port: int, key: str, model: str) -> int | None:
    """Return the effective max_model_len from /v1/models; None if it is missing."""
    with suppress(ValueError, TypeError, KeyError):  # invalid or unexpected JSON
        for entry in json.loads(ask(port, "/v1/models", key).body)["data"]:
            if entry["id"] == model:
                return int(entry["max_model_len"])
    return None


def read_metrics(port: int, key: str = "", seconds: float = 3.0) -> ServerMetrics | None:
    """Return a server's metrics; None if it does not answer."""
    page = metrics_page(port, key, seconds)
    return None if page is None else parse_metrics(page)


def metrics_page(port: int, key: str = "", seconds: float = 3.0) -> str | None:
    """Return a server's /metrics page in Prometheus' text format; None if it does not answer."""
    answer = ask(port, "/metrics", key, seconds=seconds)
    return answer.body if answer.ok else None


def inside(port: int, key: str) -> int | None:
    """Return the number of running client requests; None if no server of ours listens there."""
    answer = ask(port, INSIDE, key, seconds=2.0)
    try:
        found = json.loads(answer.body)["inside"] if answer.ok else None
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, int) else None


def ask_model(
    port: int, key: str, model: str, image: bool = True, seconds: float = 120.0, others: int = 0, system: bool = False
) -> Answer:
    """Request one token about a small image, which runs the whole model including its vision tower.

    The answer contains the log probabilities of the `others` most likely tokens. Some chat templates want a `system`
    message first.
    """
    messages = question(image, system)
    payload = {"model": model, "messages": messages, "max_tokens": 1, "temperature": 0}
    payload |= {"logprobs": True, "top_logprobs": others} if others else {}
    return ask(port, "/v1/chat/completions", key, payload, seconds)


def question(image: bool, system: bool) -> list[dict[str, Any]]:
    """Return the messages that `ask_model` sends."""
    picture = [{"type": "image_url", "image_url": {"url": _picture()}}] if image else []
    asked = {"role": "user", "content": [*picture, {"type": "text", "text": "Hi"}]}
    return [{"role": "system", "content": "Be brief."}, asked] if system else [asked]


def _picture() -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (PROBE_SIDE, PROBE_SIDE), (40, 90, 160)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as attempt:
        return int(attempt.getsockname()[1])
