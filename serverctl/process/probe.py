"""Questions to a running server: health, served model, metrics, requests that run, one token about an image."""

import base64
import io
import json
import socket
from contextlib import suppress
from typing import Any

from serverctl.load.client import Answer, Endpoint
from serverctl.load.metrics import ServerMetrics, parse_metrics

#: The path at which a server's door reports how many client requests run.
INSIDE = "/mai-server/inside"
#: Side of the test image. 65,536 pixels is the smallest image that Qwen3-VL's processor does not enlarge.
PROBE_SIDE = 256


def is_healthy(server: Endpoint, seconds: float = 5.0) -> bool:
    """Return whether /health answers 200. This does not run the model."""
    return server.ask("/health", seconds=seconds).ok


def served_context(server: Endpoint) -> int | None:
    """Return the effective max_model_len from /v1/models; None if it is missing."""
    with suppress(ValueError, TypeError, KeyError):  # invalid or unexpected JSON
        for entry in json.loads(server.ask("/v1/models").body)["data"]:
            if entry["id"] == server.model:
                return int(entry["max_model_len"])
    return None


def read_metrics(server: Endpoint, seconds: float = 3.0) -> ServerMetrics | None:
    """Return a server's metrics; None if it does not answer."""
    page = server.metrics_page(seconds)
    return None if page is None else parse_metrics(page)


def inside(server: Endpoint) -> int | None:
    """Return the number of running client requests; None if it is no server of ours."""
    answer = server.ask(INSIDE, seconds=2.0)
    with suppress(ValueError, TypeError, KeyError):
        found = json.loads(answer.body)["inside"] if answer.ok else None
        return found if isinstance(found, int) else None
    return None


def ask_model(
    server: Endpoint, image: bool = True, seconds: float = 120.0, others: int = 0, system: bool = False
) -> Answer:
    """Request one token about a small image, which runs the whole model including its vision tower.

    The answer contains the log probabilities of the `others` most likely tokens. Some chat templates want a `system`
    message first.
    """
    payload = {"model": server.model, "messages": question(image, system), "max_tokens": 1, "temperature": 0}
    payload |= {"logprobs": True, "top_logprobs": others} if others else {}
    return server.ask("/v1/chat/completions", payload, seconds)


def question(image: bool, system: bool) -> list[dict[str, Any]]:
    """Return the messages that `ask_model` sends."""
    picture = [{"type": "image_url", "image_url": {"url": _picture()}}] if image else []
    message = {"role": "user", "content": [*picture, {"type": "text", "text": "Hi"}]}
    return [{"role": "system", "content": "Be brief."}, message] if system else [message]


def _picture() -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (PROBE_SIDE, PROBE_SIDE), (40, 90, 160)).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as attempt:
        return int(attempt.getsockname()[1])
