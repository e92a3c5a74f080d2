"""How far a batch is, on standard error: a bar on a terminal, an occasional line elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Seconds between lines where there is no terminal.
_EVERY_S = 15.0


class Progress(Protocol):
    """Is told how far a batch is."""

    def start(self, total: int, before: int) -> None:
        """The batch begins: so many requests, so many of them answered in earlier runs."""

    def step(self, *, ok: bool) -> None:
        """One more is over."""

    def say(self, text: str) -> None:
        """One sentence for the person."""

    def close(self) -> None:
        """Nothing more comes."""


def make_progress() -> Progress:
    """What fits standard error."""
    return BarProgress() if sys.stderr.isatty() else LineProgress()


class _Rate:
    """Requests a second, from the first one that was over: what loads before it is no measure of the rest."""

    def __init__(self) -> None:
        self.done = 0
        self._first = 0.0

    def step(self) -> None:
        self.done += 1
        if self.done == 1:
            self._first = time.monotonic()

    @property
    def per_second(self) -> float | None:
        """None while too little is known."""
        passed = time.monotonic() - self._first
        return (self.done - 1) / passed if self.done > 1 and passed > 0 else None


class LineProgress:
    """A line at the beginning, and then one every 15 seconds at most."""

    def __init__(self) -> None:
        self._total = self._before = self._failed = 0
        self._rate = _Rate()
        self._told = time.monotonic()

    def start(self, total: int, before: int) -> None:
        """As `Progress.start`."""
        self._total, self._before = total, before
        self._told = time.monotonic()
        known = f", {before} of them answered before" if before else ""
        self.say(f"{total} requests{known}")

    def step(self, *, ok: bool) -> None:
        """As `Progress.step`."""
        self._rate.step()
        self._failed += not ok
        if time.monotonic() - self._told >= _EVERY_S:
            self._told = time.monotonic()
            self.say(self._state())

    def _state(self) -> str:
        done = self._before + self._rate.done
        failed = f", {self._failed} failed" if self._failed else ""
        rate = self._rate.per_second
        if rate is None:
            return f"{done} of {self._total}{failed}"
        left = _duration((self._total - done) / rate)
        return f"{done} of {self._total}{failed}, {rate:.2f} a second, about {left} left"

    def say(self, text: str) -> None:
        """As `Progress.say`."""
        print(f"mai-server batch: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """As `Progress.close`."""


class BarProgress:
    """A bar with rate and time left."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._failed = 0
        self._left = 0
        self._rate = _Rate()

    def start(self, total: int, before: int) -> None:
        """As `Progress.start`."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("answers"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
        self._left = total - before
        self._bar = Bar(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task("", total=total, completed=before, state="")
        self._bar.start()

    def step(self, *, ok: bool) -> None:
        """As `Progress.step`."""
        self._rate.step()
        self._failed += not ok
        self._left -= 1
        if self._bar is None or self._task is None:
            return
        rate = self._rate.per_second
        state = "" if rate is None else f"{rate:.2f}/s, {_duration(self._left / rate)} left"
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(self._task, advance=1, state=state + failed)

    def say(self, text: str) -> None:
        """As `Progress.say`."""
        if self._bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """As `Progress.close`."""
        if self._bar is not None:
            self._bar.stop()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
