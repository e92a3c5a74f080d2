"""What all screens that show one run share: the history, the chosen step, and the boxes over them."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import getters, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from agent.tui.view import RunView
from agent.tui.widgets.detail import Detail
from agent.tui.widgets.history import History
from agent.tui.widgets.keys import TextScroll
from agent.tui.widgets.status import EndCard
from foundation.configs import load_config
from foundation.errors import MaiError
from foundation.foreign_text import harmless, on_one_line

if TYPE_CHECKING:
    from agent.record.undo_run import RunUndo

#: On screens with fewer lines, the receipt makes room for the picture while the person looks back at a step.
_HIGH = 36


class SizedScreen(Screen[None]):
    """A screen whose layout depends on the terminal's size."""

    HORIZONTAL_BREAKPOINTS = [(0, "-small"), (60, "-normal"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]


class StepsScreen(SizedScreen):
    """Shows a run under a title."""

    BINDINGS: ClassVar = [
        Binding("z", "zoom", "Zoom", show=False),
        Binding("v", "page", "Thought, answer, details", show=False),
        Binding("enter", "detail", "Step or history (small terminals)", show=False),
        Binding("J,shift+down", "read(3)", "Read on in the step", show=False),
        Binding("K,shift+up", "read(-3)", "Read back in the step", show=False),
        Binding("u", "undo", "Undo"),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    history = getters.query_one(History)
    detail = getters.query_one(Detail)

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view

    def compose_steps(self) -> ComposeResult:
        yield Static(id="title")
        with Horizontal(id="body"):
            yield History(self.view.rows)
            yield Detail()
        yield EndCard()
        yield Static(id="stage")

    def show_rows(self, cursor: int) -> None:
        """Show the run with the cursor on a row; -1 for none."""
        self.query_one("#title", Static).update(Content.styled(f" {self.view.title or 'mai-agent'}", "bold"))
        self.history.show(self.view.rows, cursor)
        self.set_class(not self.view.instruction, "-idle")
        self.detail.idle = None if self.view.instruction else self.start_words()

    def start_words(self) -> Content:
        """Return the text that is shown while there is no run."""
        return Content("")

    def show_card(self) -> None:
        self.query_one(EndCard).show(self.view, "  ".join(self.next_keys()))

    def next_keys(self) -> list[str]:
        return ["u undo"] if self.can_undo else []

    @property
    def can_undo(self) -> bool:
        view = self.view
        return view.state == "ended" and view.bundle is not None and any(change.undo for change in view.changes)

    @work(exclusive=True, group="undo")
    async def action_undo(self) -> None:
        from agent.record.read import read_bundle
        from agent.record.undo_run import RunUndo

        view = self.view
        if view.bundle is None:
            return
        try:
            undoing = await asyncio.to_thread(RunUndo, await asyncio.to_thread(read_bundle, view.bundle))
            if not await self.app.push_screen_wait(UndoScreen(undoing)):
                return
            results = await asyncio.to_thread(undoing.carry_out)
        except MaiError as error:
            self.notify(harmless(str(error)), title="not undone", severity="error")
            return
        view.undone = [
            f"{'' if result.done else 'not undone: '}{result.item.change.what}: {result.words}" for result in results
        ]
        view.taken_back = tuple(result.item.change for result in results)
        view.changes = tuple(change for change in view.changes if change not in view.taken_back)
        title = "undone" if all(result.done for result in results) else "not all is undone"
        self.notify("\n".join(view.undone[-2:]), title=title)  # a low screen has no card
        self.show_card()
        self.refresh_bindings()

    def on_history_chosen(self, event: History.Chosen) -> None:
        self.show_row(event.index)

    def show_row(self, index: int) -> None:
        """Show a row; an event between steps gets the screenshot of the step before it."""
        rows = self.view.rows
        self.set_class(index < len(rows) - 1 and self.size.height < _HIGH, "-back")
        if not 0 <= index < len(rows):
            self.detail.show(None)
            return
        steps = (row for row in reversed(rows[: index + 1]) if row.number is not None)
        self.detail.show(rows[index], next(steps, None))

    def action_zoom(self) -> None:
        self.detail.whole = not self.detail.whole
        self.set_class(self.detail.whole, "-whole")

    def action_page(self) -> None:
        self.detail.next_page()

    def action_detail(self) -> None:
        """On a small terminal: switch between the step and the history."""
        self.toggle_class("-detail")

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())

    def action_read(self, lines: int) -> None:
        self.detail.scroll_words(lines)


#: What a person can want to do, each with its keys and their descriptions.
TASKS: dict[str, list[tuple[str, str]]] = load_config("terminal_keys.toml")


#: A piece of text with its style.
Piece: TypeAlias = tuple[str, str]


class Box(ModalScreen[bool]):
    """A text in a box, to scroll through.

    Args:
        title: the title of the box.
        keys: the line below the box.
        text: the text in pieces.
    """

    def __init__(self, title: str, keys: str, text: Iterable[Piece]) -> None:
        super().__init__()
        self._box = Vertical()
        self._box.border_title, self._box.border_subtitle = title, keys
        self._text = Content.assemble(*text).rstrip()

    def compose(self) -> ComposeResult:
        with self._box, TextScroll():
            yield Static(self._text)


class HelpScreen(Box):
    """The list of keys."""

    BINDINGS: ClassVar = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]

    def __init__(self) -> None:
        super().__init__("keys, by what you want to do", "Esc: back", _help())


class UndoScreen(Box):
    """Shows which changes would be undone, and which not and why. Returns whether the person wants to undo them."""

    BINDINGS: ClassVar = [
        Binding("y", "dismiss(True)", "Undo"),
        Binding("n,escape", "dismiss(False)", "Leave it as it is"),
    ]

    def __init__(self, undoing: "RunUndo") -> None:
        titles = ("Undo this?", "y yes · n no · j k read on")
        super().__init__(
            *(titles if undoing.able else ("Nothing can be undone", "n back · j k read on")), _plan(undoing)
        )
        self._undoing = undoing

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "dismiss" or parameters != (True,) or bool(self._undoing.able)


def _help() -> Iterator[Piece]:
    for task, keys in TASKS.items():
        yield f"{task}\n", "bold $text-accent"
        for key, description in keys:
            yield f"  {key:<9}", "bold"
            yield f"{description}\n", ""


def _plan(undoing: "RunUndo") -> Iterator[Piece]:
    stays = [item for item in undoing.items if item.verdict != "undo"]
    for heading, items in (("will be undone", undoing.able), ("stays", stays)):
        if items:
            yield f"{heading}\n", "bold"
        for item in items:
            yield f"  {on_one_line(str(item.change))}\n", ""
            yield f"    {on_one_line(item.words)}\n", "$text-muted"
