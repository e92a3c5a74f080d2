"""The recorded runs: look at one in short, search, open, compare, run again, replay dry."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import DataTable, Footer, Input, Static

from agent.core.actions import points_of
from agent.core.geometry import Region
from agent.tui.pictures.picture import Picture
from agent.tui.screens.steps import SizedScreen
from agent.tui.view import Row, RunView
from agent.tui.widgets.status import card_words
from agent.web.browser import open_browser
from foundation.errors import MaiError
from foundation.foreign_text import harmless, on_one_line
from foundation.printing import counted

if TYPE_CHECKING:
    from agent.record.read import Bundle

#: Seconds that the cursor rests on a run before its steps are read.
_REST = 0.12
#: The size of the area shown around the last point if no window is known, in desktop units.
_WIDTH, _HEIGHT = 480, 300
#: Lines of a receipt and of the evidence that are shown.
_MOST_LINES = 6


class RunPreview(Container):
    """Shows one run in short."""

    def compose(self) -> ComposeResult:
        yield Picture()
        with VerticalScroll(can_focus=False):
            yield Static(id="short")

    @work(exclusive=True)
    async def show(self, bundle: "Bundle | None") -> None:
        """Show a run once the cursor rests on it; reading it must not block the keys."""
        from agent.tui.recorded import view_of

        await asyncio.sleep(_REST)
        if bundle is None:
            self.query_one(Picture).show(None)
            self.query_one("#short", Static).update("")
            return
        view = await asyncio.to_thread(view_of, bundle)
        if not self.query("#short"):  # its screen was left meanwhile
            return
        self.query_one(Picture).show(_last_picture(view))
        self.query_one("#short", Static).update(_words(bundle, view))


def _last_picture(view: RunView) -> Row | None:
    """The last screenshot, around the last point or window that the run used."""
    rows = [row for row in reversed(view.rows) if row.number is not None]
    last = next((row for row in rows if row.image is not None), None)
    if last is None:
        return None
    about = next((place for row in rows if (place := row.about or _around(row)) is not None), None)
    return Row(last.number, "note", "", viewport=last.viewport, image=last.image, about=about)


def _around(row: Row) -> Region | None:
    points = () if row.target is None else points_of(row.target)
    if not points:
        return None
    x, y = points[-1].rounded()
    return Region(x - _WIDTH // 2, y - _HEIGHT // 2, _WIDTH, _HEIGHT)


def _words(bundle: "Bundle", view: RunView) -> Content:
    run = bundle.run
    desktop = "sandbox" if run.sandbox or run.sandbox_name else "this desktop"
    facts = [
        ("with", " · ".join(filter(None, (view.engine, view.model, run.family)))),
        ("where", desktop + (", dry run" if run.dry_run else "")),
        ("steps", str(sum(row.number is not None for row in view.rows))),
        ("asked", asked_words(bundle)),
    ]
    lines = [(f"{name:8}{harmless(value)}\n", "$text-muted") for name, value in facts if value]
    title = (f"{harmless(view.title)}\n", "bold")
    return Content.assemble(title, card_words(view, _MOST_LINES), "\n", *lines).rstrip()


def asked_words(bundle: "Bundle") -> str:
    """How often approval was asked, and the answers, as in `3 times: 2 allowed, 1 refused`."""
    approvals = [action.approval for step in bundle.steps for action in step.each_action if action.approval is not None]
    if not approvals:
        return "nothing"
    answers = Counter(approval.answer or "not answered" for approval in approvals)
    times = "once" if len(approvals) == 1 else f"{len(approvals)} times"
    return f"{times}: " + ", ".join(f"{count} {answer}" for answer, count in answers.most_common())


_COLOURS = {
    "done": "$text-success",
    "stopped": "$text-warning",
    "unverified": "$text-warning",
    "running": "$text-accent",
    "dry run": "$text-primary",
}
#: Least columns of a screen that shows the preview beside the table.
_WIDE = 110
#: The filters that the key f goes through: all runs, those not done, those done.
_FILTERS = ("all", "not done", "done")


class RunsScreen(SizedScreen):
    """A table of the runs in a folder; `again` receives the instruction of a run to repeat."""

    AUTO_FOCUS = "DataTable"
    BINDINGS = [
        Binding("enter", "open", "Open", priority=True),
        Binding("slash", "search", "Search"),
        Binding("f", "filter", "Filter"),
        Binding("c", "compare", "Compare two"),
        Binding("ctrl+r", "again", "Again"),
        Binding("p", "replay", "Replay dry"),
        Binding("h", "report", "Report"),
        Binding("j", "cursor('down')", "Down", show=False),
        Binding("k", "cursor('up')", "Up", show=False),
        Binding("escape,q,o", "back", "Back"),
    ]

    def __init__(self, folder: Path, again: Callable[[str], None]) -> None:
        super().__init__()
        self._folder = folder
        self._again = again
        self._runs: list[Bundle] | None = None  # None until they have been read
        self._marked: Path | None = None
        self._filter = _FILTERS[0]

    def compose(self) -> ComposeResult:
        yield Static("recorded runs", id="title")
        yield Input(placeholder="/ search: words of the instruction, outcome, engine, model", id="search", compact=True)
        with Container(id="body"):
            yield DataTable(cursor_type="row", zebra_stripes=True)
            yield RunPreview()
        yield Static(id="told")
        yield Footer(compact=True, show_command_palette=False)

    @work
    async def on_mount(self) -> None:
        """Fill the table; reading a thousand runs must not block the keys."""
        from agent.record.read import list_bundles

        self._runs = await asyncio.to_thread(list_bundles, self._folder)
        self._fill()

    def on_resize(self) -> None:
        self._fill()

    def _columns(self) -> dict[str, int]:
        """The columns that fit, with their widths; the instruction gets the rest."""
        room = self.size.width * 3 // 5 if self.size.width >= _WIDE else self.size.width
        wanted = {"": 1, "when": 11, "outcome": 11, "steps": 5, "seconds": 7}
        kept = wanted if room >= 70 else {"": 1, "outcome": 11}
        taken = sum(width + 2 for width in kept.values())
        return kept | {"instruction": max(12, room - taken - 4)}

    def _fill(self) -> None:
        table: DataTable[Content] = self.query_one(DataTable)
        wanted = self.query_one("#search", Input).value.casefold().split()
        at, chosen = table.cursor_row, self._chosen()
        table.clear(columns=True)
        columns = self._columns()
        for name, width in columns.items():
            table.add_column(name, width=width)
        runs = self._runs or []
        for bundle in runs:
            run, outcome = bundle.run, bundle.outcome
            outcome = "dry run" if run.dry_run and outcome == "done" else outcome
            searched = f"{run.instruction} {outcome} {run.engine} {run.model} {bundle.path.name}".casefold()
            left_out = self._filter != "all" and (outcome == "done") != (self._filter == "done")
            if left_out or not all(word in searched for word in wanted):
                continue
            cells = {
                "": Content("●" if bundle.path == self._marked else " "),
                "when": Content(harmless(run.started[5:16].replace("T", " "))),
                "outcome": Content.styled(harmless(outcome.replace("_", " ")), _COLOURS.get(outcome, "$text-error")),
                "steps": Content("" if run.steps is None else f"{run.steps:>4}"),
                "seconds": Content("" if run.seconds is None else f"{run.seconds:>6.1f}"),
                "instruction": Content(on_one_line(run.instruction)),
            }
            table.add_row(*(cells[name] for name in columns), key=str(bundle.path))
        if chosen is not None and table.row_count:
            keys = [row.value for row in table.rows]
            table.move_cursor(row=keys.index(str(chosen.path)) if str(chosen.path) in keys else min(at, len(keys) - 1))
        which = "" if self._filter == "all" else f", only those {self._filter}"
        summary = f"{table.row_count} of {counted(len(runs), 'run')}{which}"
        if not runs:
            summary = (
                "reading ..." if self._runs is None else f"There are no runs in {self._folder} yet: esc, and give one."
            )
        self.query_one("#told", Static).update(Content(harmless(summary)))
        self.query_one(RunPreview).show(self._chosen())

    def on_data_table_row_highlighted(self, _: DataTable.RowHighlighted) -> None:
        self.query_one(RunPreview).show(self._chosen())

    def action_cursor(self, way: str) -> None:
        table: DataTable[Content] = self.query_one(DataTable)
        table.action_cursor_down() if way == "down" else table.action_cursor_up()

    def action_filter(self) -> None:
        self._filter = _FILTERS[(_FILTERS.index(self._filter) + 1) % len(_FILTERS)]
        self._fill()

    def on_input_changed(self, _: Input.Changed) -> None:
        self._fill()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.query_one(DataTable).focus()

    def _chosen(self) -> "Bundle | None":
        table: DataTable[Content] = self.query_one(DataTable)
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return next((bundle for bundle in self._runs or () if str(bundle.path) == key), None)

    def action_open(self) -> None:
        if self.query_one("#search", Input).has_focus:
            self.query_one(DataTable).focus()
            return
        from agent.tui.screens.recorded import RecordedScreen

        if (bundle := self._chosen()) is not None:
            self.app.push_screen(RecordedScreen(bundle.path))

    def action_search(self) -> None:
        self.query_one("#search", Input).focus()

    def action_compare(self) -> None:
        """Mark a run; if one is marked, compare the two."""
        from agent.tui.screens.recorded import CompareScreen

        if (bundle := self._chosen()) is None:
            return
        if self._marked is None or self._marked == bundle.path:
            self._marked = None if self._marked == bundle.path else bundle.path
            self._fill()
            self.notify("Choose another run, and press c again." if self._marked else "Not marked any more.")
            return
        marked, self._marked = self._marked, None
        self._fill()
        self.app.push_screen(CompareScreen(marked, bundle.path))

    def action_again(self) -> None:
        from agent.record.redactor import is_masked

        if (bundle := self._chosen()) is None:
            return
        if is_masked(bundle.run.instruction):
            self.notify("Its instruction held a secret, which was not recorded: type it anew.", severity="warning")
            return
        self.app.pop_screen()
        self._again(bundle.run.instruction)

    def action_replay(self) -> None:
        from agent.tui.screens.recorded import ReplayScreen

        if (bundle := self._chosen()) is not None:
            self.app.push_screen(ReplayScreen(bundle))

    @work(exclusive=True)
    async def action_report(self) -> None:
        from agent.record.report.page import write_report

        if (bundle := self._chosen()) is None:
            return
        report = bundle.path / "report.html"
        try:
            if not report.is_file():
                report = (await asyncio.to_thread(write_report, bundle.path)).path
        except (MaiError, OSError) as error:
            self.notify(str(error), severity="error")
            return
        opened = await asyncio.to_thread(open_browser, report.as_uri(), self.app.environ)  # type: ignore[attr-defined]
        words = f"Its report opens in your browser: {report}" if opened else f"No browser here; the report is {report}"
        self.notify(words, severity="information" if opened else "warning")

    def on_screen_suspend(self) -> None:
        self.app.clear_notifications()

    def action_back(self) -> None:
        search = self.query_one("#search", Input)
        if search.has_focus:
            search.value = ""
            self.query_one(DataTable).focus()
            return
        self.app.pop_screen()
