"""The run screen: the history on the left, the chosen step on the right, the person's line below."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Footer, Static

from agent.safety.text import harmless
from agent.tui.conduct import (
    ApprovalWanted,
    Began,
    Broken,
    Conductor,
    Heard,
    NothingWanted,
    ReplyWanted,
    Report,
    Rested,
    Said,
)
from agent.tui.memory import Memory
from agent.tui.screens.base import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.asking import Asking
from agent.tui.widgets.detail import Detail
from agent.tui.widgets.history import History
from agent.tui.widgets.prompt import Prompt
from agent.tui.widgets.status import StatusLine

if TYPE_CHECKING:  # imported by the first run: the application is on the screen before that
    from agent.tui.translate import Translator

#: Two presses of Escape within so many seconds stop the run.
_DOUBLE = 1.0
#: An answer is a key by itself: so many seconds pass before and after it without another.
_ALONE = 0.2
#: The server is asked how busy it is every so many seconds.
_LOAD = 3.0
#: The screen of a streaming answer is drawn at most so often, in seconds: more nobody can read.
_STREAM = 0.05


class RunScreen(StepsScreen):
    """Watch, steer and stop."""

    AUTO_FOCUS = ""
    BINDINGS = [
        Binding("escape", "escape", "Stop", key_display="esc esc"),
        Binding("space", "pause", "Pause/go on"),
        Binding("s", "single", "Single step"),
        Binding("t", "tell", "Tell"),
        Binding("y", "yes", "Yes, once", show=False),
        Binding("a", "always", "Always, in this scope", show=False),
        Binding("n", "no", "No", show=False),
        Binding("i", "instead", "No, do this instead", show=False),
        Binding("e", "edit", "Change it", show=False),
        Binding("x", "skip", "Skip it", show=False),
        Binding("o", "runs", "Runs"),
        Binding("ctrl+r", "search", "Search past instructions", show=False),
    ]

    def __init__(
        self,
        conductor: Conductor,
        memory: Memory,
        base: RunView,
        clock: Callable[[], float] = time.monotonic,
        stop_key: str | None = None,
    ) -> None:
        super().__init__(RunView(dry_run=base.dry_run, sandbox=base.sandbox))
        self._conductor = conductor
        self._memory = memory
        self._base = base
        self._clock = clock
        self._stop_key = stop_key
        self._translator: Translator | None = None
        self._reply: ReplyWanted | None = None
        self._escaped = -_DOUBLE
        self._keys = 0
        self._key_times = (-_ALONE, -_ALONE)  # of the last key, and of the one before
        self._stale: int | None = None
        self._load = ""
        self._applied: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """All parts, the panel for approvals hidden."""
        yield Static(id="title")
        yield from self.compose_steps()
        yield Static(id="stage")
        yield Asking(self._clock, id="asking")
        yield Prompt(self._memory.instructions, id="prompt")
        yield StatusLine(id="status")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to tick."""
        self.set_interval(1.0, self._show_status)
        self.set_interval(_STREAM, self._show_stream)
        self.set_interval(_LOAD, self._ask_load)
        self._show_status()
        self._title()
        self.query_one(Prompt).open("instruct")

    @property
    def past(self) -> list[str]:
        """Past instructions, oldest first."""
        return self._memory.instructions

    # What comes in

    def start(self, instruction: str) -> None:
        """Begin a run."""
        from agent.tui.translate import Translator

        self._memory.add_instruction(instruction)
        self.query_one(Prompt).history = self._memory.instructions
        self._view = RunView(
            instruction=instruction, state="preparing", dry_run=self._base.dry_run, sandbox=self._base.sandbox
        )
        self._translator = Translator(self._view, self._clock)
        self.query_one(History).show(self._view.rows, -1)
        self.query_one(Detail).show(None)
        self._conductor.start(instruction)
        prompt = self.query_one(Prompt)
        prompt.purpose = "tell"
        self.query_one(History).focus()
        self._title()
        self._show_status()

    def take(self, report: Report) -> None:
        """Take in what the run reports."""
        from agent.run.events import ModelDelta, StepFinished

        translator = self._translator
        if translator is None:
            return
        match report:
            case Began(_, max_steps):
                self._view.max_steps = max_steps
                self._tell_stop_key()
            case Heard(event):
                changed = translator.apply(event)
                if isinstance(event, ModelDelta):
                    self._stale = changed
                elif changed is not None:
                    self._changed(changed, finished=isinstance(event, StepFinished))
            case Said(text) if self._view.state == "preparing":
                self._view.stage = text
            case Said(text):
                self._changed(translator.note(text))
            case Broken(message, status):
                self._changed(translator.failed(message, status))
            case ApprovalWanted():
                self._asked(report)
            case ReplyWanted(question):
                self._reply = report
                self._view.state, self._view.stage = "asking", question
                self.query_one(Prompt).open("reply")
                self.app.bell()
            case NothingWanted():
                self._nothing_wanted()
            case Rested() if not self._view.active:  # the next one may have been started meanwhile
                self.query_one(Prompt).open("instruct")
        if not isinstance(report, Heard) or not isinstance(report.event, ModelDelta):
            self._show_status()

    def _tell_stop_key(self) -> None:
        """Once: how a run on the person's own desktop is stopped while another window has the focus."""
        from agent.safety.hotkey import DEFAULT_CHORD

        chord, self._stop_key = self._stop_key or DEFAULT_CHORD, "none"
        if chord != "none" and sys.platform.startswith("linux") and not (self._base.sandbox or self._base.dry_run):
            self.notify(f"{chord} stops it from anywhere, and so does `mai-agent stop`.", title="live", timeout=8)

    def _changed(self, index: int, finished: bool = False) -> None:
        history = self.query_one(History)
        history.changed(index)
        if history.cursor == index and not finished:
            self.show_row(index)
        self._stale = None

    def _show_stream(self) -> None:
        if self._stale is None:
            return
        index, self._stale = self._stale, None
        self._changed(index)

    # What is shown

    def _title(self) -> None:
        words = harmless(" ".join(self._view.instruction.split())) or "mai-agent"
        self.query_one("#title", Static).update(Content.assemble((f" {words}", "bold")))

    def _show_status(self) -> None:
        view = self._view
        self.query_one(StatusLine).show(
            view, self._translator.elapsed if self._translator else 0.0, self._load if view.active else ""
        )
        stage = self.query_one("#stage", Static)
        colour = "$text-error" if view.state == "ended" and view.status not in (0, None) else "$text-accent"
        colour = "$text-warning" if view.state in ("paused", "asking") else colour
        hint = "  (space: go on)" if view.state == "paused" else ""
        if view.state == "idle":
            hint = " ↑ past instructions · Esc, then o: recorded runs · ctrl+p: everything there is"
        stage.display = bool(view.stage or hint) and not self.query_one(Asking).display
        stage.update(Content.assemble((f" {harmless(view.stage)}" if view.stage else "", colour), (hint, "dim")))
        applies = (view.state, self.query_one(Asking).wanted is None)
        if applies != self._applied:  # making the footer anew costs more than all the rest
            self._applied = applies
            self.refresh_bindings()

    def _ask_load(self) -> None:
        if self._view.engine == "vllm" and self._view.active:
            self._read_load()

    @work(thread=True, exclusive=True)
    def _read_load(self) -> None:
        load = self._conductor.server_load()
        self.app.call_from_thread(self._show_load, load)

    def _show_load(self, load: str) -> None:
        self._load = load
        self._show_status()

    # Approval

    def _asked(self, wanted: ApprovalWanted) -> None:
        rows = self._view.rows
        history = self.query_one(History)
        self.query_one(Asking).ask(wanted, rows[-1] if rows else None)
        history.cursor = len(rows) - 1
        prompt = self.query_one(Prompt)
        if not (prompt.line.has_focus and prompt.line.value):  # never take a half-typed line away
            history.focus()
        self._view.state = "asking"
        self.app.bell()

    def _nothing_wanted(self) -> None:
        self._reply = None
        self.query_one(Asking).settle()
        prompt = self.query_one(Prompt)
        if prompt.purpose in ("reply", "instead", "edit"):
            prompt.line.value = ""
            prompt.purpose = "tell"
            self.query_one(History).focus()
        if self._view.state == "asking":
            self._view.state, self._view.stage = "running", ""

    def _answer(self, allowed: bool, **more: Any) -> None:
        self.query_one(Asking).answer(allowed, **more)
        self._show_status()

    def key_pressed(self) -> None:
        """A key is about to do whatever it does."""
        self._keys += 1
        self._key_times = (self._clock(), self._key_times[0])

    def _takes_answers(self) -> bool:
        """Whether a key answers now; says why where it does not."""
        now, before = self._key_times
        if not self.query_one(Asking).takes_keys or now - before < _ALONE:
            self.notify("That was too fast to be an answer: press one key.", timeout=2)
            return False
        return True

    def _answer_alone(self, allowed: bool, **more: Any) -> None:
        """Answer, unless another key follows at once."""
        if not self._takes_answers():
            return
        asking, keys = self.query_one(Asking), self._keys
        wanted = asking.wanted

        def answer() -> None:
            if self._keys == keys and asking.wanted is wanted:
                self._answer(allowed, **more)

        self.set_timer(_ALONE, answer)

    def action_yes(self) -> None:
        """Allow it, this once."""
        self._answer_alone(True)

    def action_always(self) -> None:
        """Allow it, and everything of the same scope."""
        asking = self.query_one(Asking)
        if asking.wanted is not None and asking.wanted.question.scope:
            self._answer_alone(True, always=True)

    def action_no(self) -> None:
        """Do not allow it."""
        self._answer_alone(False)

    def action_skip(self) -> None:
        """Go on without it."""
        self._answer_alone(False, note="Skip it and go on with the next part.")

    def action_instead(self) -> None:
        """Do not allow it, and say what to do."""
        if self._takes_answers():
            self.query_one(Prompt).open("instead")

    def action_edit(self) -> None:
        """Change it before it is done."""
        asking = self.query_one(Asking)
        if self._takes_answers() and asking.wanted is not None:
            from agent.tui.words import editable

            self.query_one(Prompt).open("edit", editable(asking.wanted.target))

    # The person's line

    def on_prompt_said(self, event: Prompt.Said) -> None:
        """Do what the line was for."""
        run, prompt = self._conductor.run, self.query_one(Prompt)
        match "tell" if event.purpose == "instruct" and self._view.active else event.purpose:
            case "instruct":
                self.start(event.text)
                return
            case "tell" if run is not None and self._view.active:
                run.steering.tell(event.text)
                self.notify("It gets this with its next request.", title="told")
            case "reply" if self._reply is not None:
                self._reply.answer(event.text)
            case "instead":
                self._answer(False, note=event.text)
            case "edit":
                if not self._edit(event.text):
                    return
        prompt.purpose = "tell"
        self.query_one(History).focus()

    def _edit(self, written: str) -> bool:
        wanted = self.query_one(Asking).wanted
        if wanted is None:
            return True
        try:
            from agent.tui.words import edited

            viewport = self._view.rows[-1].viewport if self._view.rows else None
            action = edited(wanted.target, written, viewport.region if viewport is not None else None)
        except ValueError as error:
            self.query_one(Asking).complain(str(error))
            self.query_one(Prompt).open("edit", written)
            return False
        self._answer(True, instead=None if action == wanted.target else action)
        return True

    def on_prompt_left(self, event: Prompt.Left) -> None:
        """Back to the history; a question stays."""
        if event.purpose in ("instead", "edit"):
            self.query_one(Prompt).purpose = "tell"
        self.query_one(History).focus()
        self.action_escape()

    # Steering

    def action_pause(self) -> None:
        """Pause, or go on."""
        run = self._conductor.run
        if run is None or not self._view.active:
            return
        if run.steering.hold:
            run.steering.resume()
            self._let_held_go()
        else:
            run.steering.pause()
            self._view.stage = "pausing before the next step"
        self._show_status()

    def action_single(self) -> None:
        """Go on until the next action, and ask before that."""
        run = self._conductor.run
        if run is None or not self._view.active:
            return
        run.steering.step()
        self._let_held_go()

    def _let_held_go(self) -> None:
        """Do what was held only by the pause; what a rule asks about takes an answer of its own."""
        asking = self.query_one(Asking)
        if asking.wanted is not None and asking.wanted.question.held and asking.takes_keys:
            self._answer(True)

    def action_tell(self) -> None:
        """Say something to the model, or give the next instruction."""
        prompt = self.query_one(Prompt)
        prompt.open("reply" if self._reply is not None else "tell" if self._view.active else "instruct")

    def action_escape(self) -> None:
        """Twice within a second: stop."""
        now = self._clock()
        if now - self._escaped < _DOUBLE:
            self._escaped = -_DOUBLE
            self.stop("Esc Esc")
            return
        self._escaped = now
        if self._view.active:
            self.notify("Press Esc once more to stop.", timeout=_DOUBLE)

    def stop(self, reason: str) -> None:
        """Stop the run at once."""
        self._conductor.stop(reason)
        self.app.clear_notifications()

    def action_search(self) -> None:
        """Search past instructions."""
        from textual.command import CommandPalette

        from agent.tui.palette import past_instructions

        self.app.push_screen(CommandPalette([past_instructions(self)], placeholder="Search past instructions"))

    def action_runs(self) -> None:
        """Show the recorded runs."""
        self.app.action_runs()  # type: ignore[attr-defined]  # the application's own

    def use_instruction(self, text: str) -> None:
        """Put an instruction on the line."""
        self.query_one(Prompt).open("tell" if self._view.active else "instruct", text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Keys are shown and taken only where they apply."""
        if not self.is_mounted:
            return True
        asking = self.query_one(Asking).wanted
        if action == "always":
            return asking is not None and bool(asking.question.scope)
        if action in ("yes", "no", "instead", "edit", "skip"):
            return asking is not None
        if action in ("pause", "single", "escape"):
            return self._view.active
        if action in ("runs", "search"):  # a letter of a word must not hide the question
            return asking is None
        return True
