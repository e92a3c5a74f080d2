"""The application: makes the screens, passes reports on, remembers the look, and stops a run before it exits.

The outcome is printed on the ordinary terminal.
"""

import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.color import Color
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen

from agent.conductor import ApprovalWanted, Conductor, QuestionOver, ReplyWanted, Report, RunBegan
from agent.options import RunOptions
from agent.safety.stop import StopSwitch, stop_signals
from agent.tui.contrast import readable
from agent.tui.remembered import Memory
from agent.tui.screens.run import RunScreen
from agent.tui.view import RunView
from foundation.errors import ExitStatus
from foundation.foreign_text import harmless, printable
from foundation.printing import remark
from foundation.stray_output import session_log

if TYPE_CHECKING:
    from agent.web.start import PageBeside
    from agent.workplace import Workplace

#: Kitty's graphics protocol draws a picture where this character stands, with marks after it.
_PLACEHOLDER = "\U0010eeee"


class Gate(LineFilter):
    """The last filter before the terminal: text of widgets cannot control it, be hidden or be a link.

    Widgets escape foreign text with `foundation.foreign_text`. If widgets do not, or a library reads text as markup,
    this filter replaces each such character by a placeholder, so that lines keep their width. Control sequences of
    libraries stay.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 -- Textual's
        if all(_is_clean(segment) for segment in segments):
            return segments
        return [segment if _is_clean(segment) else _cleaned(segment) for segment in segments]


def _is_clean(segment: Segment) -> bool:
    text, style, control = segment
    if control:
        return True
    if style is not None and style.link:
        return False
    return (text.isprintable() and (text.isascii() or printable(text) == text)) or _is_picture(text)


def _is_picture(text: str) -> bool:
    return text.startswith(_PLACEHOLDER) and all(
        char in (_PLACEHOLDER, "\n") or unicodedata.category(char) == "Mn" for char in text
    )


def _cleaned(segment: Segment) -> Segment:
    text, style, _ = segment
    kept = text if _is_picture(text) else "".join(
        char if printable(char) == char else "�" * cell_len(char) for char in text
    )  # fmt: skip
    return Segment(kept, style.update_link(None) if style is not None and style.link else style)


#: Textual's default actions, left out of the command palette.
UNSOUGHT = frozenset({"app.focus_next", "app.focus_previous", "page_left", "page_right"})


class MaiApp(App[int]):
    """`mai-agent` in a terminal; conductor, memory and clock may be replaced."""

    CSS_PATH = "app.tcss"
    TITLE = "mai-agent"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [
        Binding("ctrl+c", "stop_or_quit", "Stop", priority=True, show=False),
        Binding("ctrl+q", "leave", "Quit", priority=True),
    ]

    def __init__(
        self,
        options: RunOptions,
        conductor: Conductor | None = None,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._gate = Gate()
        self._key: events.Key | None = None
        self._options = options
        self.environ = dict(os.environ)  # the person's, before a sandbox is started
        self._page: PageBeside | None = None
        self._question: Report = QuestionOver()  # what the run asks now
        self.memory = memory or Memory()
        self.conductor = conductor or Conductor(self._make_workplace, self.report)
        self._run_screen = RunScreen(self.conductor, self.memory, options, clock)

    def get_driver_class(self) -> type[Driver]:
        usual = super().get_driver_class()
        if usual.__name__ != "LinuxDriver":  # Windows, a browser, or what TEXTUAL_DRIVER names
            return usual
        from agent.tui.escape_key_driver import PromptDriver

        return PromptDriver

    def _make_workplace(self, tell: Callable[[str], None], ask: Callable[[str], bool]) -> "Workplace":
        from agent.workplace import Workplace

        return Workplace(self._options, tell, ask)

    def use_options(self, options: RunOptions) -> None:
        """Use other options for the runs of this session; only before the first run."""
        self._options = options

    async def on_event(self, event: events.Event) -> None:
        """Note every key before it acts, so that fast typing is not taken for an answer."""
        if isinstance(event, events.Key) and event is not self._key:  # it bubbles up to here once more
            self._key = event
            self._run_screen.key_pressed()
        await super().on_event(event)

    def get_css_variables(self) -> dict[str, str]:
        self.theme_variables = variables = readable(super().get_css_variables())
        return variables

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self._gate]

    def notify(self, message: str, *, markup: bool = True, **more: Any) -> None:  # noqa: ARG002 -- widgets pass it
        """Show a message for a moment; it may hold foreign text, so markup is off."""
        super().notify(harmless(message), markup=False, **more)

    def report(self, report: Report) -> None:
        """Pass a report to the run screen, even if another screen is in front; callable from any thread.

        The events of steps come from the thread that records them.
        """
        from agent.events.run_events import StepEvent

        if isinstance(report, ApprovalWanted | ReplyWanted | QuestionOver):
            self._question = report
        recorder = self.conductor.recorder
        step = recorder.latest if recorder is not None and isinstance(report, StepEvent) else {}
        self.call_later(self._run_screen.take, report, step)
        if self._page is not None:
            self._page.post(report)

    def get_default_screen(self) -> Screen[None]:
        return self._run_screen

    def on_mount(self) -> None:
        self.theme = self.memory.theme or "textual-dark"
        self.theme_changed_signal.subscribe(self, lambda theme: self.memory.keep_theme(theme.name))
        instruction = (self._options.instruction or "").strip()
        if instruction:
            self.call_after_refresh(self._run_screen.start, instruction)

    def action_stop_or_quit(self) -> None:
        """Stop the run at once (Ctrl-C), or quit if there is none."""
        if self._run_screen.view.active:
            self._run_screen.stop("Ctrl-C")
        else:
            self.action_leave()

    def action_leave(self) -> None:
        self.conductor.stop("the program was left")
        self.exit(self.conductor.status)

    def leave_from_signal(self) -> None:
        self.call_later(self.exit, None)

    @property
    def last_view(self) -> RunView | None:
        return self._run_screen.view if self._run_screen.view.instruction else None

    def action_runs(self) -> None:
        from agent.tui.screens.runs import RunsScreen

        self.push_screen(RunsScreen(self._options.runs, self._run_screen.use_instruction))

    def action_browser(self) -> None:
        """Show this session in a browser, too. If the page exists already, show its link again."""
        from agent.web.start import PageBeside

        view = self._run_screen.view
        begun = [RunBegan(view.instruction, view.max_steps or 0)] if view.active else []
        try:
            self._page = self._page or PageBeside(
                self.conductor, partial(self.call_later, self._run_screen.start), [*begun, self._question]
            )
        except OSError as error:
            self.notify(f"The page cannot be served: {error}", severity="error")
            return
        self.notify(
            f"{self._page.link}\nIt works once. The browser that opens it can answer, as you do here.", timeout=60
        )

    def close_page(self) -> None:
        if self._page is not None:
            self._page.close()

    def get_system_commands(self, screen: Screen[None]) -> Iterable[SystemCommand]:
        """List every possible action for the palette: those with a key in the current screen, and the others."""
        does: dict[str, tuple[list[str], Callable[[], Any]]] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            if active.enabled and binding.description and not binding.system and binding.action not in UNSOUGHT:
                keys, _ = does.setdefault(
                    binding.description, ([], partial(self.run_action, binding.action, active.node))
                )
                keys.append(self.get_key_display(binding))
        for description, (keys, do) in does.items():
            yield SystemCommand(description, " ".join(keys), do)
        yield SystemCommand("Theme: choose the colours", "Dark, light, or the terminal's own", self.action_change_theme)
        yield SystemCommand("Keys of this screen", "Beside what is shown", self.action_show_help_panel)


def run_application(options: RunOptions) -> int:
    """Run the application until the person leaves. Return the exit status of the last run."""
    from agent.tui.pictures.picture import ask_terminal

    ask_terminal(options.settings.get("images"))
    app = MaiApp(options)
    stop = StopSwitch()

    def stopped() -> None:
        app.conductor.stop(stop.reason)
        app.leave_from_signal()

    stop.on_stop(stopped)
    with stop_signals(stop):
        left = app.run()
        app.conductor.end()
        app.close_page()
    view = app.last_view
    if view is not None:
        remark(f"{view.title}: {app.conductor.message or view.stage}")
        if view.bundle is not None:
            remark(f"recorded in {view.bundle}")
    if app.return_code and left is None and not stop.stopped:
        remark(f"The application made a mistake itself. Please report it. The details are in {session_log()}.")
        return ExitStatus.NOT_DONE
    if stop.stopped:
        return ExitStatus.STOPPED
    status = app.conductor.status if left is None else left
    return ExitStatus.DONE if status is None else status
