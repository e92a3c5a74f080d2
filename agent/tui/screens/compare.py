"""Two recorded runs side by side, the steps that belong together on one line, from their first difference on."""

import asyncio
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from agent.tui.comparing import Compared, compare
from agent.tui.recorded import read_view
from agent.tui.view import RunView
from agent.tui.widgets.detail import Detail
from agent.tui.widgets.history import History
from foundation.foreign_text import harmless


class CompareScreen(Screen[None]):
    """Shows two bundles; the cursor moves in both."""

    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]
    CSS = """
    CompareScreen {
        #sides { height: 1fr; }
        .side { width: 1fr; }
        .side > Static { height: 2; background: $panel; padding: 0 1; }
        .side > History { height: 1fr; }
        .side > Detail { height: 2fr; }
        #right { border-left: solid $panel; }
        #told { height: 1; padding: 0 1; background: $boost; text-style: bold; }
        &.-low .side > Detail { display: none; }
        &.-low .side > Static { height: 1; }
    }
    """
    AUTO_FOCUS = "#left History"
    BINDINGS = [
        Binding("n", "differing(1)", "Next difference"),
        Binding("N", "differing(-1)", "Previous one", show=False),
        Binding("z", "zoom", "Zoom", show=False),
        Binding("v", "page", "Thought, answer, details", show=False),
        Binding("escape,q", "app.pop_screen", "Back"),
    ]

    def __init__(self, left: Path, right: Path) -> None:
        super().__init__()
        self._paths = {"left": left, "right": right}
        self._compared = Compared([], [], [])

    def compose(self) -> ComposeResult:
        with Horizontal(id="sides"):
            for side in self._paths:
                with Vertical(id=side, classes="side"):
                    yield Static()
                    yield History([])
                    yield Detail()
        yield Static(id="told")
        yield Footer(compact=True)

    @work
    async def on_mount(self) -> None:
        views = [await asyncio.to_thread(read_view, path) for path in self._paths.values()]
        self._compared = compared = await asyncio.to_thread(compare, views[0].rows, views[1].rows)
        self.query_one("#told", Static).update(Content(compared.words))
        first = compared.differing[0] if compared.differing else 0
        for side, view, rows in zip(self._paths, views, (compared.left, compared.right), strict=True):
            self.query_one(f"#{side} > Static", Static).update(_title(view))
            self.query_one(f"#{side} History", History).show(rows, first if rows else -1)

    def on_history_chosen(self, event: History.Chosen) -> None:
        """Show the step on both sides."""
        for side, rows in (("left", self._compared.left), ("right", self._compared.right)):
            self.query_one(f"#{side} History", History).cursor = event.index
            shown = rows[event.index] if 0 <= event.index < len(rows) else None
            self.query_one(f"#{side} Detail", Detail).show(shown)

    def action_differing(self, way: int) -> None:
        """Go to another step that differs, around the end if need be."""
        places = self._compared.differing
        history = self.query_one("#left History", History)
        further = [place for place in places if (place - history.cursor) * way > 0] or places
        if further:
            history.cursor = min(further) if way > 0 else max(further)

    def action_zoom(self) -> None:
        for detail in self.query(Detail):
            detail.whole = not detail.whole

    def action_page(self) -> None:
        for detail in self.query(Detail):
            detail.next_page()


def _title(view: RunView) -> Content:
    steps = sum(row.number is not None for row in view.rows)
    with_what = " · ".join(filter(None, (view.outcome.replace("_", " "), view.engine, view.model)))
    return Content.assemble(
        (f"{view.title}\n", "bold"), (f"{harmless(with_what)} · {steps} steps · {view.seconds:.1f} s", "$text-muted")
    )
