"""Watches one server over time: its metrics, its cards, and the comparison with the targets."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from foundation.errors import MaiError
from serverctl.hardware.nvml import GpuUse, gpu_use
from serverctl.load.health import Judged, judge
from serverctl.load.metrics import ServerMetrics, parse_metrics, parse_window
from serverctl.process import probe
from serverctl.process.request import read_request
from serverctl.process.state import Folder, State, current_state

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
        self._clock = clock
        self._pages: deque[tuple[float, str]] = deque()  # of /metrics, with their times

    def look(self) -> Look:
        """Return the current condition of the server."""
        state = current_state(self._folder)
        if not state.is_ready or state.port is None:
            self._pages.clear()
            return Look(state)
        page = probe.ask(state.port, "/metrics", self._folder.key(), seconds=1.0)
        if not page.ok:
            return Look(state)
        now = self._clock()
        cards: tuple[str, ...] = ()
        with suppress(MaiError):
            cards = read_request(self._folder.request_file).cards
        gpus = self._gpus(cards)
        metrics = parse_metrics(page.body)
        self._pages.append((now, page.body))
        while now - self._pages[0][0] > _WINDOW_SECONDS:
            self._pages.popleft()
        began, first = self._pages[0]
        if now > began:
            window, seconds = parse_window(first, page.body), now - began
            tokens = window.generation_tokens or 0
            # One token per request means only heartbeats, which say nothing about an agent's requests.
            if tokens > (window.finished or 0) and window.ttft is not None:
                return Look(state, metrics, gpus, judge(window, gpus, tokens / seconds), round(seconds, 1))
        return Look(state, metrics, gpus, judge(metrics, gpus))
