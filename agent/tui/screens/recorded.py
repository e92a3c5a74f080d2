"""A recorded run, to look through: the run screen without anything to steer."""

from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Footer, Static

from agent.safety.text import harmless
from agent.tui.recorded import read_view
from agent.tui.screens.steps import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.history import History
from agent.tui.widgets.status import StatusLine


class RecordedScreen(StepsScreen):
    """Shows the run in a bundle.

    Args:
        path: the bundle.
    """

    AUTO_FOCUS = "History"
    BINDINGS = [
        Binding("escape,q", "app.pop_screen", "Back"),
    ]

    def __init__(self, path: Path) -> None:
        super().__init__(RunView())
        self._path = path

    def compose(self) -> ComposeResult:
        """History and step, as in the run screen."""
        yield Static(id="title")
        yield from self.compose_steps()
        yield Static(id="stage")
        yield StatusLine(id="status")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Read it, without holding the keys up."""
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        self.app.call_from_thread(self._show, read_view(self._path))

    def _show(self, view: RunView) -> None:
        self._view = view
        self.query_one("#title", Static).update(
            Content.styled(f" {harmless(' '.join(view.instruction.split()))}", "bold")
        )
        self.query_one("#stage", Static).update(Content(f" {harmless(view.stage)}"))
        self.query_one(History).show(view.rows, 0 if view.rows else -1)
        self.query_one(StatusLine).show(view, view.seconds)
