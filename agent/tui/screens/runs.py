"""The recorded runs: search them, open one, lay two side by side, run one again, or replay its decisions dry."""

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from agent.safety.text import harmless
from foundation.errors import MaiError

if TYPE_CHECKING:
    from agent.record.read import Bundle

_COLOURS = {"done": "$text-success", "stopped": "$text-warning", "running": "$text-accent"}


class RunsScreen(Screen[None]):
    """A table of the runs in a folder; `again` takes the instruction of one that is to be run again."""

    CSS = """
    RunsScreen {
        #title { height: 1; background: $panel; text-style: bold; padding: 0 1; }
        #search { border: none; height: 1; padding: 0 1; background: $boost; }
        DataTable { height: 1fr; }
        #told { height: auto; padding: 0 1; color: $text-muted; }
    }
    """
    AUTO_FOCUS = "DataTable"
    BINDINGS = [
        Binding("enter", "open", "Open", priority=True),
        Binding("slash", "search", "Search"),
        Binding("c", "compare", "Compare two"),
        Binding("r", "again", "Run again"),
        Binding("p", "replay", "Replay dry"),
        Binding("h", "report", "Report"),
        Binding("escape,q,o", "back", "Back"),
    ]

    def __init__(self, folder: Path, again: Callable[[str], None]) -> None:
        super().__init__()
        self._folder = folder
        self._again = again
        self._runs: list[Bundle] = []
        self._marked: Path | None = None

    def compose(self) -> ComposeResult:
        yield Static("recorded runs", id="title")
        yield Input(placeholder="/ search", id="search", compact=True)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Static(id="told")
        yield Footer(compact=True)

    @work
    async def on_mount(self) -> None:
        """Fill the table; reading a thousand runs must not hold the keys up."""
        from agent.record.read import list_bundles

        table = self.query_one(DataTable)
        widths = {"": 1, "when": 19, "outcome": 13, "steps": 5, "seconds": 8}
        for name, width in (widths | {"instruction": max(20, self.app.size.width - 60)}).items():
            table.add_column(name, width=width)
        self._runs = await asyncio.to_thread(list_bundles, self._folder)
        self._fill()

    def _fill(self) -> None:
        table: DataTable[Content] = self.query_one(DataTable)
        wanted = self.query_one("#search", Input).value.casefold().split()
        table.clear()
        for bundle in self._runs:
            run, outcome = bundle.run, bundle.outcome
            searched = f"{run.instruction} {outcome} {bundle.path.name}".casefold()
            if not all(word in searched for word in wanted):
                continue
            table.add_row(
                Content("●" if bundle.path == self._marked else " "),
                Content(run.started[:19].replace("T", " ")),
                Content.styled(outcome, _COLOURS.get(outcome, "$text-error")),
                Content("" if run.steps is None else f"{run.steps:>4}"),
                Content("" if run.seconds is None else f"{run.seconds:>7.1f}"),
                Content(harmless(" ".join(run.instruction.split()))),
                key=str(bundle.path),
            )
        self.query_one("#told", Static).update(Content(f"{table.row_count} of {len(self._runs)} runs"))

    def on_input_changed(self, _: Input.Changed) -> None:
        self._fill()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        self.query_one(DataTable).focus()

    def _chosen(self) -> "Bundle | None":
        table: DataTable[Content] = self.query_one(DataTable)
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return next((bundle for bundle in self._runs if str(bundle.path) == key), None)

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
        """Mark a run; with one marked, lay the two side by side."""
        from agent.tui.screens.compare import CompareScreen

        if (bundle := self._chosen()) is None:
            return
        if self._marked is None or self._marked == bundle.path:
            self._marked = None if self._marked == bundle.path else bundle.path
            self._fill()
            self.notify("Choose another run, and press c again." if self._marked else "Not marked any more.")
            return
        marked, self._marked = self._marked, None
        self._fill()
        self.app.clear_notifications()
        self.app.push_screen(CompareScreen(marked, bundle.path))

    def action_again(self) -> None:
        """Put its instruction on the line of the run screen."""
        from agent.record.redact import is_masked

        if (bundle := self._chosen()) is None:
            return
        if is_masked(bundle.run.instruction):
            self.notify("Its instruction held a secret, which was not recorded: type it anew.", severity="warning")
            return
        self.app.pop_screen()
        self._again(bundle.run.instruction)

    @work(exclusive=True)
    async def action_replay(self) -> None:
        """Run its decisions through parser, map and policy again, without a model and without touching anything."""
        from agent.record.replay import replay_as_recorded

        if (bundle := self._chosen()) is None:
            return
        try:
            steps = await asyncio.to_thread(lambda: list(replay_as_recorded(bundle)))
        except MaiError as error:
            self.notify(str(error), severity="error")
            return
        other = [step.step for step in steps if not step.same]
        asks = sum(step.reason_to_ask is not None for step in steps)
        text = f"{len(steps)} decisions replayed; {asks} would be asked about. " + (
            f"These come out otherwise now: {', '.join(map(str, other))}." if other else "All come out the same."
        )
        self.notify(text, title=bundle.path.name)

    @work(exclusive=True)
    async def action_report(self) -> None:
        """Open its report in a browser."""
        from agent.record.report import write_report

        if (bundle := self._chosen()) is None:
            return
        report = bundle.path / "report.html"
        try:
            if not report.is_file():
                report = (await asyncio.to_thread(write_report, bundle.path)).path
        except (MaiError, OSError) as error:
            self.notify(str(error), severity="error")
            return
        graphical = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
        # A browser in this terminal would draw over us.
        opened = graphical and await asyncio.to_thread(webbrowser.open, report.as_uri())
        words = f"Its report opens in your browser: {report}" if opened else f"No browser here; the report is {report}"
        self.notify(words, severity="information" if opened else "warning")

    def action_back(self) -> None:
        """From the search line to the table, from the table to the run."""
        search = self.query_one("#search", Input)
        if search.has_focus:
            search.value = ""
            self.query_one(DataTable).focus()
            return
        self.app.pop_screen()
