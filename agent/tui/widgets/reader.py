"""Shows the whole action to approve. It scrolls, and knows which lines were never visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent.safety.question_text import Line, Span, lines_of
from agent.tui.widgets.keys import motions, pale, plain_colour


@dataclass(frozen=True, slots=True)
class Section:
    """A text to be read; `label` stands before it and is ours."""

    text: str
    label: str = ""
    marks: tuple[Span, ...] = ()
    signs: bool = True  # whether line ends get signs; False if the lines are ours


@dataclass(frozen=True, slots=True)
class _Row:
    section: Section
    line: Line
    label: str = ""


class Reader(ScrollView, can_focus=True):
    """Shows sections one below the other."""

    BINDINGS: ClassVar = motions(
        ("move(-1)", "Line up"),
        ("move(1)", "Line down"),
        ("page(-1)", "Page up"),
        ("page(1)", "Page down"),
        ("to(0)", "Beginning"),
        ("to(-1)", "End"),
    )

    class Read(Message):
        """Something came into sight that had not been before."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[_Row] = []
        self._seen: dict[Section, bytearray] = {}

    def forget(self) -> None:
        self._seen = {}

    def lay_out(self, sections: Sequence[Section], width: int) -> int:
        """Lay sections out for this many cells. Return the number of lines. Read parts stay read."""
        rows: list[_Row] = []
        for section in sections:
            self._seen.setdefault(section, bytearray(len(section.text)))
            label = section.label
            if label and len(label) + cell_len(section.text) >= width:
                rows.append(_Row(section, Line((), 0, 0), label))
                label = ""
            lines = lines_of(section.text, width - len(label), section.marks, signs=section.signs)
            rows += [_Row(section, line, label if index == 0 else "") for index, line in enumerate(lines)]
        self._rows = rows
        self._seen = {section: self._seen[section] for section in sections}
        return len(rows)

    def place(self, height: int, width: int) -> None:
        self.display = height > 0
        self.styles.height = height
        self.can_focus = len(self._rows) > height
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()
        self.call_after_refresh(self.look)

    @property
    def complete(self) -> bool:
        return all(0 not in seen for seen in self._seen.values())

    @property
    def share(self) -> float:
        total = sum(map(len, self._seen.values()))
        return sum(seen.count(1) for seen in self._seen.values()) / total if total else 1.0

    def look(self) -> None:
        """Note what is in sight now: nothing while another screen is in front, or without room."""
        if not (self.display and self.is_attached and self.app.screen is self.screen):
            return
        try:
            place = self.screen.find_widget(self)
        except Exception:  # not laid out yet
            return
        visible, top = place.visible_region, place.region.y
        if visible.width < place.region.width:
            return
        before = self.share
        for y in range(visible.y - top, visible.bottom - top):
            index = y + self.scroll_offset.y
            if 0 <= index < len(self._rows):
                row = self._rows[index]
                self._seen[row.section][row.line.start : row.line.end] = b"\1" * (row.line.end - row.line.start)
        if self.share > before:
            self.post_message(self.Read())

    def read_on(self) -> None:
        for index, row in enumerate(self._rows):
            if 0 in self._seen[row.section][row.line.start : row.line.end]:
                self._go(index)
                return

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        self.call_after_refresh(self.look)

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self.look)

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        index = y + self.scroll_offset.y
        if not 0 <= index < len(self._rows):
            return Strip.blank(width, base)
        row, variables = self._rows[index], self.app.theme_variables
        marked = base + Style(color=plain_colour(variables, "warning"), reverse=True, bold=True)
        sign = base + Style(color=plain_colour(variables, "accent"))
        segments = [Segment(row.label, base + pale(variables))] if row.label else []
        for piece in row.line.pieces:
            segments.append(Segment(piece.text, marked if piece.marked else sign if piece.sign else base))
        return Strip(segments).adjust_cell_length(width, base)

    def _go(self, line: int) -> None:
        self.scroll_to(y=max(0, min(line, len(self._rows) - self.size.height)), animate=False, force=True)

    def action_move(self, lines: int) -> None:
        self._go(self.scroll_offset.y + lines)

    def action_page(self, pages: int) -> None:
        self._go(self.scroll_offset.y + pages * max(1, self.size.height - 1))

    def action_to(self, line: int) -> None:
        self._go(line if line >= 0 else len(self._rows))
