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
from serverctl.hardware.nvml import GpuUse, gpu_use
from serverctl.load.health import Judged, judge
from serverctl.load.metrics import ServerMetrics, parse_metrics, parse_window
from serverctl.process import probe
from serverctl.process.control import name_of_model
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
    """Watches one server. Keeps the metrics of the last 30 s for the current window.

    Args:
        name: of the server.
        gpus: returns the use of cards.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self,
        name: str,
        gpus: Callable[[tuple[str, ...]], tuple[GpuUse, ...]] = gpu_use,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = Folder(name)
        self._gpus = gpus
        self._pages = _Pages(clock)

    def look(self) -> Look:
        """Return the current condition of the server."""
        state = current_state(self._folder)
        if not state.is_ready or state.port is None:
            self._pages.clear()
            return Look(state)
        page = probe.ask(state.port, "/metrics", self._folder.key(), seconds=1.0)
        if not page.ok:
            return Look(state)
        cards: tuple[str, ...] = ()
        with suppress(MaiError):
            cards = read_request(self._folder.request_file).cards
        return self._pages.look(state, page.body, self._gpus(cards))


class _Pages:
    """The /metrics pages of the last 30 s."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pages: deque[tuple[float, str]] = deque()  # with their times

    def clear(self) -> None:
        self._pages.clear()

    def look(self, state: State, page: str, gpus: tuple[GpuUse, ...]) -> Look:
        """Take one more page, and judge the window, or else the time since the start."""
        now = self._clock()
        metrics = parse_metrics(page)
        self._pages.append((now, page))
        while now - self._pages[0][0] > _WINDOW_SECONDS:
            self._pages.popleft()
        began, first = self._pages[0]
        if now > began:
            window, seconds = parse_window(first, page), now - began
            if by_clients(window) and window.ttft is not None:
                speed = (window.generation_tokens or 0) / seconds
                return Look(state, metrics, gpus, judge(window, gpus, speed), round(seconds, 1))
        return Look(state, metrics, gpus, judge(metrics, gpus) if by_clients(metrics) else ())


def by_clients(metrics: ServerMetrics) -> bool:
    """Return whether clients asked: one token per request means only our probe and heartbeats."""
    unknown = metrics.generation_tokens is None or metrics.finished is None
    return unknown or (metrics.generation_tokens or 0) > (metrics.finished or 0) or bool(metrics.running)


class ForeignWatch:
    """Watches a server that somebody else runs, by its API alone.

    Args:
        url: the base URL of its API.
        key: its key; "" without one.
    """

    def __init__(self, url: str, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._key = url, key
        self._root = url.removesuffix("/v1")
        self._pages = _Pages(clock)

    def look(self) -> Look:
        """Return the current condition of the server."""
        parts = urlsplit(self._url)
        name = name_of_model(f"{parts.hostname}-{parts.port or parts.scheme}")
        state = State(name=name, address=self._url)
        listed = probe.ask_at(self._root, "/v1/models", self._key, seconds=3.0)
        if not listed.ok:
            self._pages.clear()
            said = f"HTTP {listed.status}" if listed.status else listed.body
            state.phase, state.message = "failed", f"It does not list its models ({said})."
            state.failure = failure_json("NO_ANSWER", state.message, remedy=_remedy(listed))
            return Look(state)
        state.phase = "ready"
        with suppress(ValueError, LookupError, TypeError):
            first = json.loads(listed.body)["data"][0]
            state.model, state.source = str(first["id"]), str(first.get("root") or first["id"])
            state.limits = {"context": first.get("max_model_len")}
        version = probe.ask_at(self._root, "/version", self._key, seconds=3.0)
        with suppress(ValueError, LookupError, TypeError):
            state.vllm = str(json.loads(version.body)["version"]) if version.ok else ""
        page = probe.ask_at(self._root, "/metrics", self._key, seconds=3.0)
        gpus = gpu_use(()) if is_loopback(self._url) else ()
        return self._pages.look(state, page.body, gpus) if page.ok else Look(state, gpus=gpus)


def _remedy(answer: probe.Answer) -> str:
    if answer.status in (401, 403):
        return "Give its key with --key, or in the variable MAI_AGENT_API_KEY."
    return "Is that the address of an OpenAI-compatible API, and does the server run?"
