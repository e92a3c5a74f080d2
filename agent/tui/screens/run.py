"""The run screen: the history on the left, the chosen step on the right, the person's line below."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Footer, Static

from agent.conductor import (
    ApprovalWanted,
    Conductor,
    Progress,
    QuestionOver,
    ReplyWanted,
    Report,
    RunBegan,
    RunClosed,
    RunFailed,
)
from agent.options import RunOptions
from agent.run.control import Hold
from agent.tui import start_page
from agent.tui.remembered import Memory
from agent.tui.screens.answering import AnsweringScreen, quoted_question
from agent.tui.view import RunView
from agent.tui.widgets.approval import GRACE, ApprovalPanel
from agent.tui.widgets.prompt import Prompt
from agent.tui.widgets.status import StatusLine
from foundation.foreign_text import harmless

if TYPE_CHECKING:  # imported when the first run starts, so that the application appears sooner
    from agent.tui.translate import Translator

#: Seconds within which two presses of Escape stop the run.
_DOUBLE = 1.0
#: Seconds that a short message stays.
_SAID = 3.0
#: Seconds between two questions to the server about its load.
_LOAD = 3.0
#: Least seconds between two drawings of a streaming answer: nobody reads faster.
_STREAM = 0.05
#: Seconds between two movements of a step's mark while the model thinks.
_BEAT = 0.2
#: If a key was pressed less than this many seconds before a run's end, the first Enter starts no new run: the person
#: may still mean the run that has ended.
_AT_WORK = 10.0


class RunScreen(AnsweringScreen):
    """The screen on which a person watches, steers and stops runs."""

    AUTO_FOCUS = ""
    BINDINGS = [
        Binding("escape", "escape", "Stop", key_display="esc esc"),
        Binding("space", "pause", "Pause/go on"),
        Binding("s", "single", "Single step"),
        Binding("t", "tell", "Tell"),
        Binding("o", "runs", "Runs"),
        Binding("w", "app.browser", "In a browser", show=False),
        Binding("tab", "example", "Example", show=False, priority=True),
        Binding("f2", "sandbox", "Use a sandbox"),
        Binding("ctrl+r", "search", "Search past instructions", show=False),
    ]

    def __init__(self, conductor: Conductor, memory: Memory, options: RunOptions, clock: Callable[[], float]) -> None:
        super().__init__(RunView(dry_run=options.dry_run, sandbox=options.sandbox), clock)
        self._conductor = conductor
        self._memory = memory
        self._options = options
        self._stop_key_told = False
        self._translator: Translator | None = None
        self._reply: ReplyWanted | None = None
        self._reply_since = 0.0
        self._purpose_since = -_AT_WORK  # when the line's purpose changed while the person was typing
        self._escaped = (-_DOUBLE, 0)  # when, and after how many keys
        self._stale: int | None = None
        self._load = ""
        self._applied: tuple[object, ...] = ()
        self._said, self._said_until = "", 0.0
        self._here = start_page.Here()

    def compose(self) -> ComposeResult:
        yield from self.compose_steps()
        yield ApprovalPanel(self._clock)
        yield Prompt(self._memory.instructions)
        yield StatusLine()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.set_interval(1.0, self.show_status)
        self.set_interval(_STREAM, self._show_stream)
        self.set_interval(_BEAT, self._beat)
        self.set_interval(_LOAD, self._ask_load)
        self.show_rows(-1)
        self.show_status()
        self.prompt.open("instruct")
        if not self._options.instruction:
            self._look_here()

    # Before the first run

    def start_words(self) -> Content:
        return start_page.words(self._here)

    @work(exclusive=True, group="here")
    async def _look_here(self) -> None:
        self._here = await asyncio.to_thread(start_page.look, self._options)
        if not self.is_attached:  # the application ended meanwhile
            return
        if not self.view.instruction:
            self.show_rows(-1)
        self.show_status()
        self.refresh_bindings()

    def action_example(self) -> None:
        """Put the next example on the line, unless something else is written there."""
        examples, line = start_page.EXAMPLES, self.prompt.line
        if not line.value or line.value in examples:
            at = examples.index(line.value) + 1 if line.value else 0
            self.prompt.open("instruct", examples[at % len(examples)])

    def action_sandbox(self) -> None:
        self._options = replace(self._options, sandbox=True)
        self.app.use_options(self._options)  # type: ignore[attr-defined]  # the application's own
        self.view.sandbox = True
        self.show_status()
        self._look_here()

    # What comes in

    def start(self, instruction: str) -> None:
        from agent.tui.translate import Translator

        self._memory.add_instruction(instruction)
        self.prompt.history = self._memory.instructions
        options = self._options
        earlier = [*(row for row in self.view.rows if row.earlier), *self.view.heading]
        self.view = RunView(instruction, "preparing", earlier, dry_run=options.dry_run, sandbox=options.sandbox)
        self._translator = Translator(self.view, self._clock)
        self.show_rows(len(self.view.rows) - 1)
        self.show_row(len(self.view.rows) - 1)
        self._conductor.start(instruction)
        self._leave_line()
        self.show_status()

    def take(self, report: "Report", step: dict[str, Any]) -> None:
        """Process a report. `step` is the step that an event belongs to, as it is recorded."""
        from agent.events.run_events import ModelDelta, StepFinished

        translator = self._translator
        if translator is None:
            return
        match report:
            case RunBegan(_, max_steps):
                self.view.max_steps = max_steps
                self._tell_stop_key()
            case Progress(text):
                self._changed(translator.progress(text))
            case RunFailed(message, status):
                self._changed(translator.failed(message, status))
                self._look_here()
            case ApprovalWanted():
                translator.asks()
                self._asked(report)
            case ReplyWanted(question):
                self._reply, self._reply_since = report, self._clock()
                translator.asks(question)
                if not (self.prompt.line.has_focus and self.prompt.line.value):  # never take a half-typed line away
                    self.prompt.open("reply")
                self.app.bell()
            case QuestionOver():
                translator.answered()
                self._nothing_wanted()
            case RunClosed():
                if not self.view.active:  # the next one may have been started meanwhile
                    self._invite()
            case ModelDelta():  # many per second
                self._stale = translator.apply(report, step)
                return
            case _:
                self._changed(translator.apply(report, step), finished=isinstance(report, StepFinished))
        self.show_status()

    def _tell_stop_key(self) -> None:
        """Say once how to stop a run on the person's own desktop while another window has the focus."""
        from agent.desktop.factory import has_stop_key
        from agent.desktop.protocol.desktop import DEFAULT_CHORD

        was_shown, self._stop_key_told = self._stop_key_told, True
        chord, elsewhere = self._options.stop_key or DEFAULT_CHORD, self._options.sandbox or self._options.dry_run
        if not was_shown and chord != "none" and has_stop_key(os.environ) and not elsewhere:
            self.say(f"{chord} stops it from anywhere.", 8)

    def _changed(self, index: int | None, finished: bool = False) -> None:
        if index is None:
            return
        self.history.changed(index)
        if self.history.cursor == index and not finished:
            self.show_row(index)
        self._stale = None

    def _beat(self) -> None:
        if self.view.state in ("preparing", "running") and self._translator is not None:
            elapsed = self._translator.elapsed
            self.history.beat(int(elapsed / _BEAT), elapsed)

    def _show_stream(self) -> None:
        self._changed(self._stale)

    # What is shown

    def say(self, text: str, seconds: float = _SAID) -> None:
        self._said, self._said_until = text, self._clock() + seconds
        self.show_status()
        self.set_timer(seconds, self.show_status)

    def show_status(self) -> None:
        view, running = self.view, self.view.active
        elapsed = self._translator.elapsed if self._translator else 0.0
        note = harmless(self._said) if self._clock() < self._said_until else ""
        self.query_one(StatusLine).show(view, elapsed, self._load if running else "", self.held_by, note)
        self.show_card()
        stage = self.query_one("#stage", Static)
        words, hint = self.stage_words(), "  (space: go on)" if view.state == "paused" else ""
        stage.display = bool(words or hint) and not self.asking.display
        stage.update(Content.assemble(words, (hint, "$text-muted")))
        applies = (view.state, self.asking.wanted is None, self.can_undo)
        if applies != self._applied:  # rebuilding the footer costs more than all the rest
            self._applied = applies
            self.refresh_bindings()

    def stage_words(self) -> Content:
        view = self.view
        if self._reply is None:
            text = "" if view.state in ("preparing", "ended") else harmless(view.stage)  # a row or the card shows it
            return Content.styled(text, "$text-warning" if view.state in ("paused", "asking") else "$text-accent")
        return Content.styled(quoted_question(self.view.stage, self.size.width), "$text-warning")

    def next_keys(self) -> list[str]:
        keys = [*super().next_keys(), *([] if self._here.has_desktop else ["F2 use a sandbox"]), "o runs"]
        return ["say what is next, or Esc and then", *keys] if self.prompt.line.has_focus else ["t what is next", *keys]

    @property
    def held_by(self) -> Hold:
        run, asks = self._conductor.run, self.view.state == "asking" and not self.asking.held
        return "" if run is None or not self.view.active or asks else run.steering.held_by

    @work(exclusive=True, group="load")
    async def _ask_load(self) -> None:
        if self.view.engine == "vllm" and self.view.active:
            self._load = await asyncio.to_thread(self._conductor.server_load)
            self.show_status()

    def _invite(self) -> None:
        """Focus the line for the next instruction, so that letters typed now do not act on a run."""
        if self._clock() - self._key_times[0] < _AT_WORK:
            self._purpose_since = self._clock()
        self.prompt.open("instruct", self.prompt.line.value)

    # Approval

    def _asked(self, wanted: ApprovalWanted) -> None:
        self.history.cursor = len(self.view.rows) - 1
        self.app.clear_notifications()
        self.ask(wanted)
        self.app.bell()

    def _nothing_wanted(self) -> None:
        self._reply = None
        self.asking.settle()
        self.remove_class("-asking")
        if self.prompt.purpose in ("reply", "instead", "edit"):
            self.prompt.line.value = ""
            self._leave_line()

    def _leave_line(self) -> None:
        self.prompt.purpose = "tell"
        self.history.focus()

    # The person's line

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        run = self._conductor.run
        if event.purpose == "reply" and self._clock() - self._reply_since < GRACE:  # keys that were in flight
            self.say("That was too fast to be a reply: press Enter once more.")
            self.prompt.open("reply", event.text)
            return
        if event.purpose == "instruct" and self._clock() - self._purpose_since < _AT_WORK:  # meant for the ended run
            self._purpose_since = -_AT_WORK
            self.say("The run is over. Enter once more starts this.")
            self.prompt.open("instruct", event.text)
            return
        self.written()
        match "tell" if event.purpose == "instruct" and self.view.active else event.purpose:
            case "instruct":
                self.start(event.text)
                return
            case "tell" if run is not None and self.view.active:
                run.steering.tell(event.text)
                self.say("It gets this with its next request.")
                if self._reply is not None:  # the model asked while the person typed
                    self._reply_since = self._clock()
                    self.prompt.open("reply")
                    return
            case "reply" if self._reply is not None:
                self._reply.answer(event.text)
            case "instead":
                self.asking.answer(False, note=event.text)
            case "edit":
                if not self.answer_changed(event.text):
                    return
        self._leave_line()

    def on_prompt_cancelled(self, event: Prompt.Cancelled) -> None:
        self.written()
        if event.purpose in ("instead", "edit"):
            self.prompt.purpose = "tell"
        self.history.focus()
        self.action_escape()

    # Steering

    def action_pause(self) -> None:
        run, translator = self._conductor.run, self._translator
        if run is None or translator is None or not self.view.active:
            return
        if self.asking.held or run.steering.hold:
            self._go_on(run.steering.resume)
            return
        run.steering.pause()
        translator.pausing()
        self.show_status()

    def action_single(self) -> None:
        run = self._conductor.run
        if run is not None and self.view.active:
            self._go_on(run.steering.step)

    def _go_on(self, how: Callable[[], None]) -> None:
        """Continue; this approves an action that is asked about only because of a pause."""
        if self.asking.held:
            self.action_answer("yes", how)
        else:
            how()
        self.show_status()

    def action_tell(self) -> None:
        self.write("reply" if self._reply is not None else "tell" if self.view.active else "instruct")

    def action_escape(self) -> None:
        now = self._clock()
        since, keys = self._escaped
        if now - since < _DOUBLE and self._keys <= keys + 1:  # no other key between them
            self._escaped = (-_DOUBLE, 0)
            self.stop("Esc Esc")
            return
        self._escaped = (now, self._keys)
        if self.view.active:
            self.say("Press Esc once more to stop.", _DOUBLE)

    def stop(self, reason: str) -> None:
        self._conductor.stop(reason)
        self.app.clear_notifications()

    def action_search(self) -> None:
        past = [(text, partial(self.use_instruction, text)) for text in reversed(self._memory.instructions)]
        self.app.search_commands(past, placeholder="Search past instructions")

    def action_runs(self) -> None:
        self.app.action_runs()  # type: ignore[attr-defined]  # the application's own

    def use_instruction(self, text: str) -> None:
        self.write("tell" if self.view.active else "instruct", text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if not self.is_mounted:
            return True
        asking = self.asking.wanted
        if action in ("answer", "instead", "edit"):
            return asking is not None and (parameters != ("always",) or bool(self.asking.scope))
        if action in ("example", "sandbox"):
            return (
                not self.view.instruction if action == "example" else not (self.view.active or self._here.has_desktop)
            )
        if action in ("pause", "single", "escape"):
            return self.view.active
        if action == "undo":
            return self.can_undo
        return action != "runs" or asking is None  # a letter of a word must not hide the question
