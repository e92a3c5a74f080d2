"""The progress of a batch on standard error: a bar on a terminal, an occasional line elsewhere."""

import time
from typing import TYPE_CHECKING

from foundation.printing import is_terminal, remark

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Seconds between lines where there is no terminal.
_EVERY_S = 15.0


def make_progress() -> "Progress":
    """The progress that fits standard error."""
    return BarProgress() if is_terminal("error") else Progress()


class Progress:
    """Shows a line at the beginning, and then one every 15 seconds at most."""

    def __init__(self) -> None:
        self._total = self._before = self._done = self._failed = 0
        self._first = 0.0  # when the first request ended; excluded from the rate, because it includes warm-up

    def start(self, total: int, before: int) -> None:
        """Begin with this many requests; earlier runs answered `before` of them."""
        self._total, self._before = total, before
        self._begin()

    def step(self, *, ok: bool) -> None:
        """Count one more request."""
        self._done += 1
        self._failed += not ok
        if self._done == 1:
            self._first = time.monotonic()
        self._show()

    def say(self, text: str) -> None:
        """Print one sentence."""
        remark(f"mai-server batch: {text}")

    def close(self) -> None:
        """End it."""

    def _begin(self) -> None:
        self._told = time.monotonic()
        self.say(f"{self._total} requests" + (f", {self._before} of them answered before" if self._before else ""))

    def _show(self) -> None:
        if time.monotonic() - self._told >= _EVERY_S:
            self._told = time.monotonic()
            self.say(", ".join(filter(None, (f"{self._before + self._done} of {self._total}", self._state()))))

    def _state(self) -> str:
        parts = [f"{self._failed} failed"] if self._failed else []
        passed = time.monotonic() - self._first
        if self._done > 1 and passed > 0:
            rate = (self._done - 1) / passed
            minutes, seconds = divmod(round((self._total - self._before - self._done) / rate), 60)
            hours, minutes = divmod(minutes, 60)
            left = f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
            parts.append(f"{rate:.2f} a second, about {left} left")
        return ", ".join(parts)


class BarProgress(Progress):
    """Shows a bar with rate and time left."""

    _bar: "Bar | None" = None

    def _begin(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        from foundation.rich_console import GatedConsole

        state = TextColumn("{task.fields[state]}", markup=False)
        columns = (TextColumn("answers"), BarColumn(), MofNCompleteColumn(), state)
        self._bar = Bar(*columns, console=GatedConsole(stderr=True))
        self._task = self._bar.add_task("", total=self._total, completed=self._before, state="")
        self._bar.start()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=1, state=self._state())

    def say(self, text: str) -> None:
        """Tell the person one sentence, above the bar."""
        if self._bar is None:
            remark(text)
        else:
            self._bar.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
