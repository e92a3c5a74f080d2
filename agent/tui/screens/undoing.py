"""What undoing a run means, shown before it is done."""

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agent.tui.widgets.text_scroll import TextScroll
from foundation.foreign_text import harmless

if TYPE_CHECKING:
    from agent.record.undo import RunUndo


class UndoScreen(ModalScreen[bool]):
    """Shows what would be undone, and what not and why; gives whether the person wants it."""

    DEFAULT_CSS = """
    UndoScreen {
        align: center middle;
        & > Vertical {
            width: 90%; max-width: 110; height: auto; max-height: 90%; border: round $accent; padding: 0 1;
            border-title-color: $text-warning; border-title-style: bold;
            border-subtitle-color: $text-warning; border-subtitle-style: bold;
        }
        & TextScroll { height: auto; max-height: 100%; }
    }
    """
    BINDINGS: ClassVar = [
        Binding("y", "dismiss(True)", "Undo"),
        Binding("n,escape", "dismiss(False)", "Leave it as it is"),
    ]

    def __init__(self, undoing: "RunUndo") -> None:
        super().__init__()
        self._undoing = undoing

    def compose(self) -> ComposeResult:
        box, able = Vertical(), bool(self._undoing.able)
        box.border_title = "Undo this?" if able else "Nothing can be undone"
        box.border_subtitle = "y yes · n no · j k read on" if able else "n back · j k read on"
        with box, TextScroll():
            yield Static(self._words())

    def _words(self) -> Content:
        parts: list[tuple[str, str]] = []
        stays = [item for item in self._undoing.items if item.verdict != "undo"]
        for heading, items in (("will be undone", self._undoing.able), ("stays", stays)):
            parts += [(f"{heading}\n", "bold")] if items else []
            for item in items:
                parts += [(f"  {_line(str(item.change))}\n", ""), (f"    {_line(item.words)}\n", "dim")]
        return Content.assemble(*parts).rstrip()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is no yes to nothing."""
        return action != "dismiss" or parameters != (True,) or bool(self._undoing.able)


def _line(text: str) -> str:
    """One line of what comes from the computer."""
    return harmless(" ".join(text.split()))
