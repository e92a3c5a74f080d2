"""Boxes over a screen: the list of keys, and the question before an undo."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent.tui.widgets.keys import TextScroll
from foundation.configs import load_config
from foundation.foreign_text import on_one_line

if TYPE_CHECKING:
    from agent.record.undo_run import RunUndo


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
