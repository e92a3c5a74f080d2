"""How far a batch is, on standard error: a bar on a terminal, an occasional line elsewhere."""

import time
from typing import TYPE_CHECKING

from foundation.printing import is_terminal, remark

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Seconds between lines where there is no terminal.
_EVERY_S = 15.0


def make_progress() -> "Progress":
    """What fits standard error."""
    return BarProgress() if is_terminal("error") else Progress()


class Progress:
    """Is told how far a batch is, and shows it: a line at the beginning, and then one every 15 seconds at most."""

    def __init__(self) -> None:
        self._total = self._before = self._done = self._failed = 0
        self._first = 0.0  # when the first request was over: what loads before it is no measure of the rest

    def start(self, total: int, before: int) -> None:
        """The batch begins: so many requests, so many of them answered in earlier runs."""
        self._total, self._before = total, before
        self._begin()

    def step(self, *, ok: bool) -> None:
        """One more is over."""
        self._done += 1
        self._failed += not ok
        if self._done == 1:
            self._first = time.monotonic()
        self._show()

    def say(self, text: str) -> None:
        """One sentence for the person."""
        remark(f"mai-server batch: {text}")

    def close(self) -> None:
        """Nothing more comes."""

    def _begin(self) -> None:
        self._told = time.monotonic()
        self.say(f"{self._total} requests" + (f", {self._before} of them answered before" if self._before else ""))

    def _show(self) -> None:
        if time.monotonic() - self._told >= _EVERY_S:
            self._told = time.monotonic()
            done = f"{self._before + self._done} of {self._total}"
            self.say(", ".join(filter(None, (done, self._state()))))

    def _state(self) -> str:
        """Failures, rate and time left, as far as they are known."""
        parts = [f"{self._failed} failed"] if self._failed else []
        passed = time.monotonic() - self._first
        if self._done > 1 and passed > 0:
            rate = (self._done - 1) / passed
            left = (self._total - self._before - self._done) / rate
            parts.append(f"{rate:.2f} a second, about {_duration(left)} left")
        return ", ".join(parts)


class BarProgress(Progress):
    """A bar with rate and time left."""

    _bar: "Bar | None" = None

    def _begin(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        from foundation.rich_console import GatedConsole

        columns = (
            TextColumn("answers"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}", markup=False),
        )
        self._bar = Bar(*columns, console=GatedConsole(stderr=True))
        self._task = self._bar.add_task("", total=self._total, completed=self._before, state="")
        self._bar.start()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=1, state=self._state())

    def say(self, text: str) -> None:
        """As `Progress.say`."""
        if self._bar is None:
            remark(text)
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
