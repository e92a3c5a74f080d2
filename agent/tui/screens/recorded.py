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

    def __init__(self, path: Path) -> None:
        super().__init__(RunView())
        self._path = path

    def compose(self) -> ComposeResult:
        yield from self.compose_steps()
        yield StatusLine()
        yield Footer(compact=True, show_command_palette=False)

    @work
    async def on_mount(self) -> None:
        self.view = view = await asyncio.to_thread(read_view, self._path)
        self.show_rows(0 if view.rows else -1)
        self.show_card()
        self.query_one(StatusLine).show(view, view.seconds)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 -- Textual's
        return action != "undo" or self.can_undo


class ReplayScreen(StepsScreen):
    """Shows the decisions of a bundle, replayed."""

    AUTO_FOCUS = "History"
    BINDINGS = [Binding("escape,q", "app.pop_screen", "Back")]

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(RunView(instruction=bundle.run.instruction, stage="replaying ..."))
        self._bundle = bundle

    def compose(self) -> ComposeResult:
        yield from self.compose_steps()
        yield Footer(compact=True, show_command_palette=False)

    @work
    async def on_mount(self) -> None:
        self.show_rows(-1)
        try:
            self.view = view = await asyncio.to_thread(replayed_view, self._bundle)
        except MaiError as error:
            self.query_one("#stage", Static).update(Content.styled(harmless(str(error)), "$text-error"))
            return
        self.show_rows(0 if view.rows else -1)
        colour = "$text-success" if view.status == 0 else "$text-warning"
        self.query_one("#stage", Static).update(Content.styled(harmless(view.stage), colour))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 -- Textual's
        return action != "undo"
