"""Shows what takes long, on standard error: one changing line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from typing import Any, Self

from foundation.printing import is_terminal, remark
from serverctl.process import control
from serverctl.process.state import State
from serverctl.vllm.packages import Progress

#: Plain lines about the same step come at most this often, seconds.
_PLAIN_EVERY = 15.0


class _Shown:
    """Progress of a long task. Prints nothing if `quiet`."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        #: A rich Status or Progress; None where plain lines do.
        self._live: Any = None

    def __enter__(self) -> Self:
        return self

    def _go_live(self, make: Callable[[], Any]) -> None:
        if self._live is None and is_terminal("error") and not self._quiet:
            self._live = make()
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, sentence: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        if self._live is not None:
            self._live.console.print(sentence, markup=False, highlight=False)
        else:
            remark(f"mai-server: {sentence}")


class StartProgress(_Shown):
    """Servers that start."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._announcer = control.Announcer()

    def __enter__(self) -> Self:
        self._go_live(self._spinner)
        return self

    def _spinner(self) -> Any:
        from foundation.rich_console import GatedConsole

        return GatedConsole(stderr=True, highlight=False).status("")

    def update(self, state: State) -> None:
        """A server's state now."""
        if self._quiet:
            return
        for sentence in self._announcer.events(state):
            self.say(sentence)
        if self._live is not None:
            from rich.markup import escape

            self._live.update(escape(line_of(state)))
        elif self._announcer.stage(state):
            self.say(line_of(state))


def line_of(state: State) -> str:
    """A start in one line: stage, progress, download, time."""
    parts = [state.stage or state.message or state.phase]
    if state.downloading:
        parts.append(state.downloading)
    if state.started is not None:
        parts.append(f"{time.time() - state.started:.0f} s")
    return f"{state.name}: " + ", ".join(parts)


class InstallProgress(_Shown):
    """An installation: its downloads are a bar, from the first report on; a question may come before."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet)
        self._task: Any = None
        self._said = ""
        self._next = 0.0

    def _bar(self) -> Any:
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as ProgressBar

        from foundation.rich_console import GatedConsole

        # What is fetched is named by others: no markup.
        described = TextColumn("{task.description}", markup=False)
        columns = (described, BarColumn(), DownloadColumn(), TimeElapsedColumn())
        bar = ProgressBar(*columns, console=GatedConsole(stderr=True))
        self._task = bar.add_task("", total=None)
        return bar

    def report(self, now: Progress) -> None:
        """How far it is."""
        self._go_live(self._bar)
        if self._live is not None:
            self._live.update(self._task, description=str(now), completed=now.done or 0, total=now.whole)
            return
        if now.what == self._said and time.monotonic() < self._next:
            return
        self._said, self._next = now.what, time.monotonic() + _PLAIN_EVERY
        self.say(f"{now}, {now.done / now.whole:.0%}" if now.done and now.whole else str(now))
