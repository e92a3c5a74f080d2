"""Two recorded runs side by side, step by step."""

import asyncio
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from agent.safety.text import harmless
from agent.tui.recorded import read_view
from agent.tui.view import RunView
from agent.tui.widgets.detail import Detail
from agent.tui.widgets.history import History


class CompareScreen(Screen[None]):
    """Shows two bundles; the cursor moves in both."""

    CSS = """
    CompareScreen {
        #sides { height: 1fr; }
        .side { width: 1fr; }
        .side > Static { height: 2; background: $panel; padding: 0 1; }
        .side > History { height: 1fr; }
        .side > Detail { height: 2fr; }
        #right { border-left: solid $panel; }
    }
    """
    AUTO_FOCUS = "#left History"
    BINDINGS = [Binding("escape,q", "app.pop_screen", "Back")]

    def __init__(self, left: Path, right: Path) -> None:
        super().__init__()
        self._paths = {"left": left, "right": right}
        self._views = {"left": RunView(), "right": RunView()}

    def compose(self) -> ComposeResult:
        with Horizontal(id="sides"):
            for side, view in self._views.items():
                with Vertical(id=side, classes="side"):
                    yield Static()
                    yield History(view.rows)
                    yield Detail()
        yield Footer(compact=True)

    @work
    async def on_mount(self) -> None:
        for side, path in self._paths.items():
            self._views[side] = view = await asyncio.to_thread(read_view, path)
            words = f"{view.title}\n{harmless(view.stage)} · {len(view.rows)} steps · {view.seconds:.1f} s"
            self.query_one(f"#{side} > Static", Static).update(Content(words))
            self.query_one(f"#{side} History", History).show(view.rows, 0 if view.rows else -1)

    def on_history_chosen(self, event: History.Chosen) -> None:
        """Show the step on its side, and go to the same step on the other."""
        for side, view in self._views.items():
            history = self.query_one(f"#{side} History", History)
            if history.has_focus or history.cursor == event.index or not view.rows:
                shown = view.rows[history.cursor] if 0 <= history.cursor < len(view.rows) else None
                self.query_one(f"#{side} Detail", Detail).show(shown)
            else:
                history.cursor = min(event.index, len(view.rows) - 1)
