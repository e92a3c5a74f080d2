"""The line that says at a glance what is going on: dry or live, engine, step, time."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent.run.control.steering import Hold
from agent.tui.view import RunView, State
from foundation.foreign_text import harmless

_COLOURS: dict[State, str] = {
    "idle": "$text-muted", "preparing": "$text-accent", "running": "$text-success", "asking": "$text-warning",
    "paused": "$text-warning", "ended": "$text-error",
}  # fmt: skip
_GROUNDS = {"DRY RUN": "primary", "SANDBOX": "success", "LIVE": "error"}
_ENDED = {"DONE": "$text-success", "STOPPED": "$text-warning", "NOT CONFIRMED": "$text-warning"}


class StatusLine(Static):
    """One line about a run."""

    DEFAULT_CSS = "StatusLine { height: 1; background: $panel; padding: 0 1; }"

    def show(self, view: RunView, seconds: float, server: str = "", held_by: Hold = "", said: str = "") -> None:
        """Show how the run stands; with `said`, a sentence in place of the numbers, or alone where both do not fit."""
        word = view.state_name(held_by)
        colour = "$text-warning" if held_by else _ENDED.get(word, _COLOURS[view.state])
        mode = "DRY RUN" if view.dry_run else "SANDBOX" if view.sandbox else "LIVE"
        parts = [(f" {mode} ", f"bold $text on ${_GROUNDS[mode]}-muted")]
        parts += [(" ✓", "$success")] if word == "DONE" else []  # green in 16 colours, too
        parts.append((f" {word} ", f"bold {colour}"))
        if said:
            room = self.size.width - sum(cell_len(text) for text, _ in parts) - 3
            self.update(
                Content.assemble(*(parts if cell_len(said) <= room else []), (f" {said}", "bold $text-warning"))
            )
            return
        if view.step:
            limit = f" of {view.max_steps}" if view.max_steps is not None and view.active else ""
            parts.append((f" step {view.step}{limit} ", ""))
        if view.active or view.seconds:
            shown = seconds if view.active else view.seconds
            parts.append((f" {int(shown) // 60}:{int(shown) % 60:02} ", "dim"))
        if view.engine:
            model = "" if view.model in ("", view.engine) else f" · {harmless(view.model)}"
            parts.append((f" {harmless(view.engine)}{model} ", "dim"))
        if server:
            parts.append((f" {harmless(server)} ", "dim"))
        elif view.tokens:
            parts.append((f" {view.tokens:,} tokens ", "dim"))
        self.update(Content.assemble(*parts))


class ReceiptPanel(VerticalScroll, can_focus=False):
    """The receipt of a run that has ended."""

    DEFAULT_CSS = """
    ReceiptPanel {
        height: auto; max-height: 8; padding: 0 1; background: $surface; border-top: solid $panel; display: none;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static()

    def show(self, view: RunView) -> None:
        ended = view.state == "ended"
        lines = (*view.receipt, "", *view.evidence) if ended else ()
        self.display = ended and bool(view.receipt)
        if not self.display or lines == self._shown:
            return
        self._shown = lines
        parts = [("what changed\n", "bold"), *((f"  {_line(line)}\n", "") for line in view.receipt)]
        if view.evidence:
            colour = "$text-warning" if view.outcome == "unverified" else ""
            parts += [("evidence\n", "bold"), *((f"  {_line(line)}\n", colour) for line in view.evidence)]
        self.query_one(Static).update(Content.assemble(*parts).rstrip())


def _line(text: str) -> str:
    return harmless(" ".join(text.split()))
