"""A recorded run to look through, its replay, and two runs side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Footer, Static

from agent.core.actions import describe, map_points
from agent.core.geometry import DesktopPoint
from agent.record.read import Bundle
from agent.tui.recorded import read_view, replayed_view
from agent.tui.screens.steps import SizedScreen, StepsScreen
from agent.tui.view import Row, RunView
from agent.tui.widgets.detail import Detail
from agent.tui.widgets.history import History
from agent.tui.widgets.status import StatusLine
from foundation.errors import MaiError
from foundation.foreign_text import harmless
from foundation.printing import counted


class RecordedScreen(StepsScreen):
    """Shows the run in a bundle."""

    AUTO_FOCUS = "History"
    BINDINGS = [Binding("escape,q", "app.pop_screen", "Back")]

    def __init__(self, path: Path, view: RunView | None = None) -> None:
        super().__init__(view or RunView())
        self._path = path

    def compose(self) -> ComposeResult:
        yield from self.compose_steps()
        yield StatusLine()
        yield Footer(compact=True, show_command_palette=False)

    @work
    async def on_mount(self) -> None:
        await self.fill()

    async def fill(self) -> None:
        self.view = view = await asyncio.to_thread(read_view, self._path)
        if not self.is_attached:  # the screen was closed meanwhile
            return
        self.show_rows(0 if view.rows else -1)
        self.show_card()
        self.query_one(StatusLine).show(view, view.seconds)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 -- Textual's
        return action != "undo" or self.can_undo


class ReplayScreen(RecordedScreen):
    """Shows the decisions of a bundle, replayed: nothing ended, and nothing can be undone."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle.path, RunView(instruction=bundle.run.instruction, stage="replaying ..."))
        self._bundle = bundle

    async def fill(self) -> None:
        self.query_one(StatusLine).display = False
        self.show_rows(-1)
        try:
            self.view = view = await asyncio.to_thread(replayed_view, self._bundle)
            message, colour = view.stage, "$text-success" if view.status == 0 else "$text-warning"
            self.show_rows(0 if view.rows else -1)
        except MaiError as error:
            message, colour = str(error), "$text-error"
        self.query_one("#stage", Static).update(Content.styled(harmless(message), colour))


#: Points that differ by less than about this are the same place, in desktop units: half of a small button.
_SAME_PLACE = 24


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows of two runs, aligned: rows that belong together have the same index."""

    left: list[Row]
    right: list[Row]
    differing: list[int]  # the indices of the rows that differ

    @property
    def words(self) -> str:
        if not self.differing:
            return "Every step is the same." if self.left else "Neither has a step."
        first, count = self.differing[0], len(self.differing)
        alike = ("They differ from the first step on", "The first step is the same")
        same = alike[first] if first < 2 else f"The first {first} steps are the same"
        return f"{same}; {count} {'differs' if count == 1 else 'differ'}. n goes to the next."


def compare(left: Sequence[Row], right: Sequence[Row]) -> Compared:
    """Align the steps of two runs; a step that one of them lacks becomes an empty row."""
    lefts, rights = ([row for row in rows if row.number is not None] for rows in (left, right))
    alike = SequenceMatcher(None, [*map(_key, lefts)], [*map(_key, rights)], autojunk=False)
    found = Compared([], [], [])
    for kind, start, end, other_start, other_end in alike.get_opcodes():
        for at in range(max(end - start, other_end - other_start)):
            pair = (
                lefts[start + at] if start + at < end else None,
                rights[other_start + at] if other_start + at < other_end else None,
            )
            if kind != "equal":
                found.differing.append(len(found.left))
            found.left.append(_shown(pair[0], kind != "equal"))
            found.right.append(_shown(pair[1], kind != "equal"))
    return found


def _key(row: Row) -> str:
    """Return a key that is equal for the same action at roughly the same place, if both or neither was carried out."""
    carried = row.mark in ("done", "dry")
    if row.target is None:
        return f"{carried} {row.words}"
    return f"{carried} {describe(map_points(row.target, _rough))}"


def _rough(point: DesktopPoint) -> DesktopPoint:
    return DesktopPoint(round(point.x / _SAME_PLACE) * _SAME_PLACE, round(point.y / _SAME_PLACE) * _SAME_PLACE)


def _shown(row: Row | None, differs: bool) -> Row:
    if row is None:
        return Row(None, "note", "no such step here")
    return replace(row, words=f"≠ {row.words}") if differs else row


class CompareScreen(SizedScreen):
    """Shows two bundles; the cursor moves in both."""

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
        yield Footer(compact=True, show_command_palette=False)

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
        for side, rows in (("left", self._compared.left), ("right", self._compared.right)):
            self.query_one(f"#{side} History", History).cursor = event.index
            shown = rows[event.index] if 0 <= event.index < len(rows) else None
            self.query_one(f"#{side} Detail", Detail).show(shown)

    def action_differing(self, way: int) -> None:
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
    with_what = " · ".join(filter(None, (view.ending[0], view.engine, view.model)))
    return Content.assemble(
        (f"{view.title}\n", "bold"),
        (f"{harmless(with_what)} · {counted(steps, 'step')} · {view.seconds:.1f} s", "$text-muted"),
    )
