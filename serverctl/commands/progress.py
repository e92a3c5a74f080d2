"""Shows what takes long, on standard error: one changing line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from foundation.printing import is_terminal, remark

if TYPE_CHECKING:
    from serverctl.process.state import State
    from serverctl.vllm.packages import Progress

#: Plain lines about the same step come at most this often, seconds.
_PLAIN_EVERY = 15.0


class _Shown:
    """Progress of a long task. Prints nothing if `quiet`."""

    def __init__(self, quiet: bool = False, program: str = "mai-server") -> None:
        self._quiet, self._program = quiet, program
        #: A rich Status or Progress; None if plain lines are printed.
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
        """Print a line that stays."""
        if self._quiet:
            return
        if self._live is not None:
            self._live.console.print(sentence, markup=False, highlight=False)
        else:
            remark(f"{self._program}: {sentence}")


class StartProgress(_Shown):
    """Servers that start."""

    def __init__(self, quiet: bool = False) -> None:
        from serverctl.process.control import Announcer

        super().__init__(quiet)
        self._announcer = Announcer()

    def __enter__(self) -> Self:
        self._go_live(self._spinner)
        return self

    def _spinner(self) -> Any:
        from foundation.rich_console import GatedConsole

        return GatedConsole(stderr=True, highlight=False).status("")

    def update(self, state: "State") -> None:
        """Show the current state of a server."""
        if self._quiet:
            return
        for sentence in self._announcer.events(state):
            self.say(sentence)
        if self._live is not None:
            from rich.markup import escape

            self._live.update(escape(line_of(state)))
        elif self._announcer.stage(state):
            self.say(line_of(state))


def line_of(state: "State") -> str:
    """A start in one line: stage, progress, download, time."""
    parts = [state.stage or state.message or state.phase]
    if state.downloading:
        parts.append(state.downloading)
    if state.started is not None:
        parts.append(f"{time.time() - state.started:.0f} s")
    return f"{state.name}: " + ", ".join(parts)


class BarProgress(_Shown):
    """A task whose amount is known: a bar, or a line for each step and then every 15 seconds.

    The bar appears with the first update: a question may come before.
    """

    _step, _next = "", 0.0
    #: The column of rich that shows the amount.
    _amount = "MofNCompleteColumn"

    def show(self, step: str, described: str, done: float, total: float | None, line: str) -> None:
        """Show how much of a step is done: `described` beside the bar, or `line` where there is no terminal."""
        self._go_live(self._bar)
        if self._live is not None:
            self._live.update(self._live.task_ids[0], description=described, completed=done, total=total)
        elif step != self._step or time.monotonic() >= self._next:
            self._step, self._next = step, time.monotonic() + _PLAIN_EVERY
            self.say(line)

    def _bar(self) -> Any:
        from rich import progress

        from foundation.rich_console import GatedConsole

        described = progress.TextColumn("{task.description}", markup=False)  # foreign text, no markup
        columns = (described, progress.BarColumn(), getattr(progress, self._amount)(), progress.TimeElapsedColumn())
        bar = progress.Progress(*columns, console=GatedConsole(stderr=True))
        bar.add_task("", total=None)
        return bar


class InstallProgress(BarProgress):
    """An installation with its downloads."""

    _amount = "DownloadColumn"

    def report(self, now: "Progress") -> None:
        """Show a step of the installation."""
        share = f", {now.done / now.whole:.0%}" if now.done and now.whole else ""
        self.show(now.what, str(now), now.done or 0, now.whole, f"{now}{share}")
