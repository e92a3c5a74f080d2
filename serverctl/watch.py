"""Watches one server over time: its metrics, its cards, and the comparison with the targets."""

import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from foundation.endpoints import is_loopback
from foundation.errors import MaiError
from serverctl.hardware.nvidia import GpuUse, gpu_use
from serverctl.load.client import Endpoint
from serverctl.load.health import Judged, judge
from serverctl.load.metrics import ServerMetrics, parse_metrics, parse_window
from serverctl.process.control import endpoint_of, name_of_model
from serverctl.process.request import read_request
from serverctl.process.state import Folder, State, current_state, failure_json

#: Length of the window of current metrics, seconds: several steps of an agent.
_WINDOW_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Look:
    """The condition of a server at one moment."""

    state: State
    metrics: ServerMetrics | None = None  # since its start; None if it does not answer
    gpus: tuple[GpuUse, ...] = ()  # its cards; () without NVML
    judged: tuple[Judged, ...] = ()  # for the window, or since its start if there were no recent requests
    window_s: float | None = None  # length of the window; None for since its start


class Watch:
    """Watches a server of ours by its name, or a foreign one. Keeps the metrics of the last 30 s for the window."""

    def __init__(self, server: str | Endpoint, clock: Callable[[], float] = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._pages: deque[tuple[float, str]] = deque()  # of /metrics, with their times

    def look(self) -> Look:
        """Return the current condition of the server."""
        server = self._server
        if isinstance(server, str):
            state = current_state(Folder(server))
            page = endpoint_of(state).metrics_page(1.0) if state.is_ready else None
            cards: tuple[str, ...] | None = ()
            with suppress(MaiError):
                cards = read_request(Folder(server).request_file).cards
        else:
            state = _foreign_state(server)
            page = server.metrics_page() if state.is_ready else None
            cards = () if is_loopback(server.base_url) else None
        if not state.is_ready:
            self._pages.clear()
            return Look(state)
        gpus = () if cards is None else gpu_use(cards)
        return Look(state, gpus=gpus) if page is None else self._judged(state, page, gpus)

    def _judged(self, state: State, page: str, gpus: tuple[GpuUse, ...]) -> Look:
        """Keep one more page, and judge the window, or else the time since the start."""
        now = self._clock()
        metrics = parse_metrics(page)
        self._pages.append((now, page))
        while now - self._pages[0][0] > _WINDOW_SECONDS:
            self._pages.popleft()
        began, first = self._pages[0]
        if now > began:
            window, seconds = parse_window(first, page), now - began
            if has_client_requests(window) and window.ttft is not None:
                speed = (window.generation_tokens or 0) / seconds
                return Look(state, metrics, gpus, judge(window, gpus, speed), round(seconds, 1))
        return Look(state, metrics, gpus, judge(metrics, gpus) if has_client_requests(metrics) else ())


def has_client_requests(metrics: ServerMetrics) -> bool:
    """Return whether clients asked: one token per request means only our probe and heartbeats."""
    unknown = metrics.generation_tokens is None or metrics.finished is None
    return unknown or (metrics.generation_tokens or 0) > (metrics.finished or 0) or bool(metrics.running)


def _foreign_state(server: Endpoint) -> State:
    """Return the state of a server that somebody else runs, as its API reports it."""
    parts = urlsplit(server.base_url)
    name = name_of_model(f"{parts.hostname}-{parts.port or parts.scheme}")
    state = State(name=name, address=server.base_url, phase="ready")
    listed = server.ask("/v1/models", seconds=3.0)
    if not listed.ok:
        reason = f"HTTP {listed.status}" if listed.status else listed.body
        remedy = "Is that the address of an OpenAI-compatible API, and does the server run?"
        if listed.status in (401, 403):
            remedy = "Give its key with --key, or in the variable MAI_AGENT_API_KEY."
        state.phase, state.message = "failed", f"It does not list its models ({reason})."
        state.failure = failure_json("NO_ANSWER", state.message, remedy=remedy)
        return state
    with suppress(ValueError, LookupError, TypeError):
        first = json.loads(listed.body)["data"][0]
        state.model, state.source = str(first["id"]), str(first.get("root") or first["id"])
        state.limits = {"context": first.get("max_model_len")}
    version = server.ask("/version", seconds=3.0)
    with suppress(ValueError, LookupError, TypeError):
        state.vllm = str(json.loads(version.body)["version"]) if version.ok else ""
    return state
