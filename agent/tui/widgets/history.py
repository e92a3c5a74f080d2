"""The history: one line a step, drawn line by line, so that thousands of steps cost no more than a screenful."""

from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent.tui.contrast import most_different
from agent.tui.view import SIGNS, Mark, Row
from agent.tui.widgets.keys import motions, pale, plain_colour
from foundation.foreign_text import printable

#: The theme's colour of every mark.
_COLOURS: dict[Mark, str] = {
    "thinking": "text-secondary", "asking": "text-warning", "acting": "text-accent", "done": "text-success",
    "dry": "text-primary", "failed": "text-error", "refused": "text-warning", "told": "text-accent",
    "skipped": "text-muted", "note": "text-muted",
}  # fmt: skip
#: How the mark of a step moves while the model thinks.
_PULSE = "·∙•●•∙"
#: Bars for a step's time in relation to the longest step.
_BARS = "▁▂▃▄▅▆▇█"
#: Least cells for the reason of a step; in less room, a reason says nothing.
_LEAST_GIST = 8


class History(ScrollView, can_focus=True):
    """The steps of a run. Follows the newest step while it is the chosen step."""

    BINDINGS: ClassVar = motions(
        ("move(-1)", "Step up"),
        ("move(1)", "Step down"),
        ("move(0, -1)", "Page up"),
        ("move(0, 1)", "Page down"),
        ("choose(0)", "First step"),
        ("choose(-1)", "Newest step"),
    )

    cursor: reactive[int] = reactive(-1)

    @dataclass
    class Chosen(Message):
        """Another row was chosen; -1 for none."""

        index: int

    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self._rows = rows
        self._beat, self._elapsed = 0, 0.0

    def show(self, rows: list[Row], cursor: int) -> None:
        self._rows = rows
        self.virtual_size = Size(self.size.width, len(rows))
        self.cursor = cursor
        self._reveal()
        self.refresh()

    def changed(self, index: int) -> None:
        if len(self._rows) != self.virtual_size.height:
            following = self.cursor >= self.virtual_size.height - 1
            self.virtual_size = Size(self.size.width, len(self._rows))
            if following:
                self.cursor = len(self._rows) - 1
            self.refresh()
            return
        self.refresh_line(index)

    def beat(self, beat: int, elapsed: float) -> None:
        self._beat, self._elapsed = beat, elapsed
        if self._rows and self._rows[-1].mark == "thinking":
            self.refresh_line(len(self._rows) - 1)

    def refresh_line(self, index: int) -> None:
        y = index - self.scroll_offset.y
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        width, index = self.size.width, y + self.scroll_offset.y
        base = self.rich_style
        if not 0 <= index < len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[index]
        variables = self.app.theme_variables
        chosen = index == self.cursor
        if chosen:
            base += Style(bgcolor=plain_colour(variables, "block-cursor-background" if self.has_focus else "panel"))
            if self.has_focus:
                base += Style(color=_on_cursor(variables), bold=True)
        sign = base if chosen and self.has_focus else base + Style(color=plain_colour(variables, _COLOURS[row.mark]))
        number = f"{row.number:>3} " if row.number is not None else "    "
        shown = SIGNS[row.mark] if row.mark != "thinking" else _PULSE[self._beat % len(_PULSE)]
        seconds = ""
        if row.seconds is not None and row.number is not None:
            seconds = f" {row.seconds:4.1f}s{_bar(row.seconds, self._longest())}"
        if row.mark == "thinking" and self._beat:
            seconds = f" {max(0.0, self._elapsed - row.began):3.0f}s "  # the beat may be older than the row
        person = _fitted(f" {row.deed}", min(cell_len(row.deed) + 1, width // 3)) if row.deed else ""
        room = max(0, width - 3 - len(number) - len(seconds) - cell_len(person))
        words = _fitted(row.words, min(room, cell_len(row.words)) if row.gist else room)
        dim = base if chosen else base + pale(variables)
        colour = _COLOURS[row.mark] if row.earlier else "text-warning"  # how it ended, or what the person did
        deed = base if chosen and self.has_focus else base + Style(color=plain_colour(variables, colour))
        segments = [
            Segment(f" {shown} ", sign),
            Segment(number, dim),
            Segment(words, dim if row.mark == "note" else base),
            Segment(_gist(row, room - cell_len(words)), dim),
            Segment(person, deed),
            Segment(seconds, dim),
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def watch_cursor(self, old: int, new: int) -> None:
        for index in (old, new):
            self.refresh_line(index)
        self._reveal()
        self.post_message(self.Chosen(new))

    def on_resize(self, _: events.Resize) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))
        self.call_after_refresh(self._reveal)

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if 0 <= index < len(self._rows):
            self.cursor = index

    def _longest(self) -> float:
        top = int(self.scroll_offset.y)
        rows = self._rows[top : top + self.size.height]
        return max((row.seconds or 0.0 for row in rows if row.number is not None), default=0.0)

    def _reveal(self) -> None:
        if self.cursor >= 0 and self.size.height:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def action_move(self, rows: int, pages: int = 0) -> None:
        by = rows + pages * max(1, self.size.height - 1)
        if self._rows:
            self.cursor = min(max(0, self.cursor + by), len(self._rows) - 1)

    def action_choose(self, index: int) -> None:
        if self._rows:
            self.cursor = range(len(self._rows))[index]


def _bar(seconds: float, longest: float) -> str:
    """A step's share of the longest step's time, in one cell."""
    return _BARS[min(len(_BARS) - 1, int(len(_BARS) * seconds / longest))] if longest > 0 else " "


def _gist(row: Row, room: int) -> str:
    """Return the reason for the step; for an unfinished thought, its end."""
    if not row.gist or room < _LEAST_GIST:
        return " " * max(0, room if row.gist else 0)
    text = printable(row.gist)
    if row.mark == "thinking" and cell_len(text) > room - 2:
        while cell_len(text) > room - 3:
            text = text[1:]
        text = f"…{text}"
    return _fitted(f"  {text}", room)


def _fitted(words: str, room: int) -> str:
    words = printable(words.replace("\n", " "))
    if cell_len(words) > room > 0:
        return set_cell_size(words, room - 1) + "…"
    return set_cell_size(words, room)


def _on_cursor(variables: dict[str, str]) -> str | None:
    """A readable colour for words on the cursor; themes leave it open."""
    ground = Color.parse(variables["block-cursor-background"])
    if ground.ansi is not None:  # the terminal's own colour, whatever that is
        return plain_colour(variables, "block-cursor-foreground")
    return most_different(ground).rich_color.name
