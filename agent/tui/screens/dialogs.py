"""The keys, by what a person wants to do."""

from typing import TYPE_CHECKING, ClassVar

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


#: What a person wants to do, and by which keys.
TASKS: dict[str, list[tuple[str, str]]] = load_config("terminal_keys.toml")


class Box(ModalScreen[bool]):
    """A text in a box, to scroll through."""

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title, box.border_subtitle, parts = self.contents()
        with box, TextScroll():
            yield Static(Content.assemble(*parts).rstrip())

    def contents(self) -> tuple[str, str, list[tuple[str, str]]]:
        """Return the title, the line below the box, and the text in parts with their styles."""
        raise NotImplementedError


class HelpScreen(Box):
    """The list of keys."""

    BINDINGS: ClassVar = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]

    def contents(self) -> tuple[str, str, list[tuple[str, str]]]:
        parts: list[tuple[str, str]] = []
        for task, keys in TASKS.items():
            parts.append((f"{task}\n", "bold $text-accent"))
            for key, description in keys:
                parts += [(f"  {key:<9}", "bold"), (f"{description}\n", "")]
        return "keys, by what you want to do", "Esc: back", parts


class UndoScreen(Box):
    """Shows what would be undone, and what not and why; gives whether the person wants it."""

    BINDINGS: ClassVar = [
        Binding("y", "dismiss(True)", "Undo"),
        Binding("n,escape", "dismiss(False)", "Leave it as it is"),
    ]

    def __init__(self, undoing: "RunUndo") -> None:
        super().__init__()
        self._undoing = undoing

    def contents(self) -> tuple[str, str, list[tuple[str, str]]]:
        parts: list[tuple[str, str]] = []
        stays = [item for item in self._undoing.items if item.verdict != "undo"]
        for heading, items in (("will be undone", self._undoing.able), ("stays", stays)):
            parts += [(f"{heading}\n", "bold")] if items else []
            for item in items:
                parts += [(f"  {on_one_line(str(item.change))}\n", "")]
                parts += [(f"    {on_one_line(item.words)}\n", "$text-muted")]
        if not self._undoing.able:
            return "Nothing can be undone", "n back · j k read on", parts
        return "Undo this?", "y yes · n no · j k read on", parts

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "dismiss" or parameters != (True,) or bool(self._undoing.able)
