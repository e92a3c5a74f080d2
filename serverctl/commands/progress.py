"""Shows a start: one changing line on a terminal, plain lines elsewhere, on standard error."""

import sys
import time
from types import TracebackType
from typing import Any

from serverctl.process.state import State

#: On a pipe a line that only changes its percentage is repeated at most this often, seconds.
_PLAIN_EVERY = 10.0


class Progress:
    """Progress of servers that start.

    Args:
        quiet: say nothing at all.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        self._status: Any = None
        self._said = ""
        self._told: dict[str, float] = {}
        self._next = 0.0

    def __enter__(self) -> "Progress":
        if self._terminal:
            from rich.console import Console

            self._status = Console(stderr=True, highlight=False).status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, sentence: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        if self._status is not None:
            from rich.markup import escape

            self._status.console.print(escape(sentence))
            return
        print(f"mai-server: {sentence}", file=sys.stderr, flush=True)

    def update(self, state: State) -> None:
        """A server's state now."""
        if self._quiet:
            return
        for when, sentence in state.events:
            if when > self._told.get(state.name, 0.0):
                self._told[state.name] = when
                self.say(sentence)
        text = line_of(state)
        if self._status is not None:
            from rich.markup import escape

            self._status.update(escape(text))
            return
        now = time.monotonic()
        plain = state.stage
        if plain and (plain.split(",")[0] != self._said.split(",")[0] or (plain != self._said and now >= self._next)):
            self._said, self._next = plain, now + _PLAIN_EVERY
            self.say(text)


def line_of(state: State) -> str:
    """A start in one line: stage, progress, download, time."""
    parts = [state.stage or state.message or state.phase]
    if state.downloading:
        parts.append(state.downloading)
    if state.started is not None:
        parts.append(f"{time.time() - state.started:.0f} s")
    return f"{state.name}: " + ", ".join(parts)
