"""Asks a server on loopback: is it there, what does it serve, does it answer a picture. Blocking and small."""

import base64
import http.client
import io
import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from serverctl.load.metrics import ServerMetrics, parse_metrics
from serverctl.process.in_vllm.mai_gate import OURS

#: Nothing that is asked for is longer; another program on the port may talk without end, bytes.
_MOST_ANSWER = 16 * 1024**2
#: 65,536 pixels: the smallest image that Qwen3-VL's processor keeps as it is.
PROBE_SIDE = 256


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int | None  # of HTTP; None where nothing answered
    body: str  # or why there is none

    @property
    def ok(self) -> bool:
        """Whether it answered as it should."""
        return self.status == 200


def ask(port: int, path: str, key: str = "", payload: object | None = None, seconds: float = 5.0) -> Answer:
    """One request. Never raises: what went wrong is in the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
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
    """Whether /health says 200: the engine lives. It does not run the model."""
    return ask(port, "/health", seconds=seconds).ok


def served_context(port: int, key: str, model: str) -> int | None:
    """Return the effective max_model_len from /v1/models; None if it is missing."""
    with suppress(ValueError, TypeError, KeyError):  # no JSON, or of another shape
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


def ask_model(port: int, key: str, model: str, image: bool = True, seconds: float = 120.0, others: int = 0) -> Answer:
    """One token about a small picture: the whole way through the model, its vision tower included.

    With it come as many `others`: the likeliest tokens, and how likely each was.
    """
    content = text_of_question()
    if image:
        content.insert(0, {"type": "image_url", "image_url": {"url": _picture()}})
    payload = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 1, "temperature": 0}
    payload |= {"logprobs": True, "top_logprobs": others} if others else {}
    return ask(port, "/v1/chat/completions", key, payload, seconds)


def text_of_question() -> list[dict[str, Any]]:
    """What `ask_model` says beside the picture, as the content of a message."""
    return [{"type": "text", "text": "Hi"}]


def _picture() -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (PROBE_SIDE, PROBE_SIDE), (40, 90, 160)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as attempt:
        return int(attempt.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Whether a port on loopback is free. vLLM itself may share a port silently, so this is checked first."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
