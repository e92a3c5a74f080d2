"""What is new in the states of servers that start, as sentences for whoever waits."""

import time

from serverctl.process.state import State

#: A stage that only counts percents or bytes is told again at most this often, seconds.
_AGAIN_EVERY = 10.0


class News:
    """Tells each event since a time (seconds since the epoch) once, and each stage when it begins."""

    def __init__(self, since: float = 0.0) -> None:
        self._since = since
        self._told: dict[str, float] = {}
        self._stages: dict[str, str] = {}
        self._next = 0.0

    def events(self, state: State) -> list[str]:
        """What happened since the last look; that a start failed is not among it: whoever waits is told in the end."""
        told = self._told.get(state.name, self._since)
        self._told[state.name] = max([told, *(when for when, _ in state.events)])
        last = state.message if state.phase == "failed" else None
        return [sentence for when, sentence in state.events if when > told and sentence != last]

    def stage(self, state: State) -> str:
        """The stage in words, with its download; "" where it was told a moment ago."""
        words = state.stage
        if state.downloading:
            words = f"{words or 'downloading'}: {state.downloading} downloaded"
        stage = words.split(",")[0].split(":")[0]
        now = time.monotonic()
        is_new = stage != self._stages.get(state.name)
        counts_on = now >= self._next and ("%" in words or "GiB" in words)
        if not words or not (is_new or counts_on):
            return ""
        self._stages[state.name], self._next = stage, now + _AGAIN_EVERY
        return words
