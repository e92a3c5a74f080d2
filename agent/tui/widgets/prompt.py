"""The line where a person types: an instruction, a word to the model, a reply, or a changed action."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from textual import events, getters
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, Static

Purpose: TypeAlias = Literal["instruct", "tell", "reply", "instead", "edit"]

_LABELS: dict[Purpose, tuple[str, str]] = {
    "instruct": ("do", "What shall I do? For example: open settings and enable dark mode"),
    "tell": ("tell", "Tell it something, for example: use the other window"),
    "reply": ("reply", "Your reply to its question"),
    "instead": ("instead", "No. What shall it do instead?"),
    "edit": ("change", "Change it, then press Enter"),
}


class Prompt(Horizontal):
    """An input line that knows what it is for. Up and down go through what was typed before."""

    BINDINGS = [Binding("up", "recall(-1)", "Earlier", show=False), Binding("down", "recall(1)", "Later", show=False)]

    line = getters.query_one(Input)
    purpose: reactive[Purpose] = reactive("instruct")

    @dataclass
    class Submitted(Message):
        """The person pressed Enter."""

        purpose: Purpose
        text: str

    @dataclass
    class Cancelled(Message):
        """The input was cancelled."""

        purpose: Purpose

    def __init__(self, history: list[str]) -> None:
        super().__init__()
        self.history = history
        self._at: int | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="label")
        yield Input(compact=True, select_on_focus=False)

    def open(self, purpose: Purpose, text: str = "") -> None:
        self.purpose = purpose
        self.line.value = text
        self.line.cursor_position = len(text)
        self.line.focus()

    def watch_purpose(self) -> None:
        label, placeholder = _LABELS[self.purpose]
        self.query_one("#label", Static).update(label)
        self.line.placeholder = placeholder
        self._at = None

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip() if self.purpose != "edit" else event.value
        if not text and self.purpose in ("instruct", "tell"):
            return
        self.line.value = ""
        self._at = None
        self.post_message(self.Submitted(self.purpose, text))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.post_message(self.Cancelled(self.purpose))

    def action_recall(self, way: int) -> None:
        if not self.history or self.purpose not in ("instruct", "tell"):
            return
        at = len(self.history) if self._at is None else self._at
        at = min(max(0, at + way), len(self.history))
        self._at = at
        self.line.value = self.history[at] if at < len(self.history) else ""
        self.line.cursor_position = len(self.line.value)
