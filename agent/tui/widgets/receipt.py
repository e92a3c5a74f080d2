"""What a run left behind it: what changed on the computer, and what shows that the task is done."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent.tui.view import RunView
from foundation.foreign_text import harmless


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
        """Show a run's receipt; nothing as long as it goes on."""
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
    """One line of what comes from the computer."""
    return harmless(" ".join(text.split()))
