"""A recorded run, to look through: the run screen without anything to steer."""

import asyncio
from pathlib import Path

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Footer, Static

from agent.record.read import Bundle
from agent.tui.recorded import read_view, replayed_view
from agent.tui.screens.steps import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.status import StatusLine
from foundation.errors import MaiError
from foundation.foreign_text import harmless


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
