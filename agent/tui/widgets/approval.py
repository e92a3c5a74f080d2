"""The panel in which an action is approved: part of the screen, not a window over it, so the run stays in sight.

It shows what and where, then all the text of the action, the reason for asking, and the keys. Reason and keys are
visible at every size; the rest scrolls, and nothing can be approved before all of it was visible. For half a second
after something new appears, the panel ignores keys, because they were meant for something else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from agent.conductor import ApprovalWanted
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.safety.question_text import Line, Span, ending, excerpt, lines_of
from agent.tui.widgets.keys import Key, flowing, motions, pale, plain_colour

if TYPE_CHECKING:  # importing the policy loads a validation library, which would delay the first paint
    from agent.safety.policy import Asker
    from agent.safety.question_text import Asked


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
    """Shows the action to approve, section by section. It scrolls, and knows which lines were never visible."""

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


#: Seconds in which a person cannot have read what is asked (codex and mistral-vibe use about as long).
GRACE = 0.5
#: Most lines for what and where, for the reasons, and for the scope: on low terminals, and on others.
_LOW, _HIGH = (2, 2, 0), (4, 4, 2)
#: Least lines of a longer text that are visible at once.
_LEAST = 2
_MARKED = "bold reverse $text-warning"
#: The title of the panel, by the reason for asking.
_TITLES: dict["Asker", str] = {
    "rules": "A rule wants your yes",
    "every action": "Every action needs your yes",
    "service": "The model's service wants your yes",
    "paused": "PAUSED before this action",
    "step": "STEP by step",
}
_CHANGED = "As you changed it"


class ApprovalPanel(Vertical):
    """Shows what is to be approved, why it is asked, and the keys that answer."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._since = 0.0
        self._asked: Asked | None = None
        self._problem = ""
        self._room: tuple[int, int] | None = None
        self.fits = True  # whether the parts that must be visible fit
        self._scope: list[str] = []  # its lines below the keys; empty if the scope stands in the text
        #: The action as the person changed it, if it was too long to be fully visible in the input line.
        self._changed: Action[DesktopPoint] | None = None
        self.wanted: ApprovalWanted | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="asked")
        yield Reader()
        yield Static(id="tail")
        yield Static(id="why")
        yield Static(id="keys")

    @property
    def reader(self) -> Reader:
        return self.query_one(Reader)

    @property
    def takes_keys(self) -> bool:
        """Whether the person had time to read what came into sight last."""
        return self.wanted is not None and self._clock() - self._since >= GRACE

    @property
    def complete(self) -> bool:
        """Whether the whole action was in sight, so that it may be approved."""
        return self.wanted is not None and self._room is not None and self.fits and self.reader.complete

    @property
    def target(self) -> "Action[DesktopPoint] | None":
        return self._changed or (None if self.wanted is None else self.wanted.target)

    @property
    def held(self) -> bool:
        """Whether the question is asked only because the person paused; continuing is then an answer, too."""
        return self.wanted is not None and self.wanted.question.held

    @property
    def scope(self) -> str:
        return self._asked.scope if self._asked is not None else ""

    def ask(self, wanted: ApprovalWanted, changed: "Action[DesktopPoint] | None" = None) -> None:
        from agent.safety.question_text import asked

        self.wanted, self._changed, self._problem, self._room = wanted, changed, "", None
        question = wanted.question if changed is None else replace(wanted.question, matched=(), scope="")
        self._asked = asked(wanted.target if changed is None else changed, question)
        self.border_title = f"{_TITLES[question.asker] if changed is None else _CHANGED}: may it do this?"
        self.reader.forget()
        self.display = True
        self._wait()

    def seen_again(self) -> None:
        """Note that the panel is in sight again, after another screen."""
        if self.wanted is not None:
            self._wait()
            self.call_after_refresh(self.reader.look)

    def complain(self, problem: str) -> None:
        """Show a problem with the person's text in place of the reason, until the next layout."""
        self._problem, room, self._room = f"That cannot be read: {problem}.", self._room, None
        if room is not None:
            self.fit(*room)

    def settle(self) -> None:
        self.wanted = self._asked = self._changed = None
        self.display = False

    def answer(
        self,
        allowed: bool,
        note: str = "",
        always: bool = False,
        instead: "Action[DesktopPoint] | None" = None,
        skip: bool = False,
    ) -> None:
        from agent.safety.policy import Approval

        wanted, changed = self.wanted, self._changed if allowed else None
        self.settle()
        if wanted is not None:
            wanted.answer(Approval(allowed, "you", note, always, instead or changed, skip))

    # Layout

    def fit(self, width: int, height: int) -> None:
        """Lay the panel out for this many cells, unless it already is."""
        if self._asked is None or (width, height) == self._room:
            return
        self._room = width, height
        self._arrange(self._asked, max(10, width - self.gutter.width), height - self.gutter.height)

    def _arrange(self, question: "Asked", width: int, height: int) -> None:
        low = self.screen.has_class("-low")
        most_head, most_why, most_scope = _LOW if low else _HIGH
        headline = " ".join(filter(None, (question.what, question.where)))
        reasons = "; ".join(question.reasons)
        head, why = _wrapped(headline, width), _wrapped(self._problem or f"because {reasons}", width)
        self._scope = _wrapped(f"a yes, also to {question.scope}", width) if question.scope else []
        sections = [Section(question.text, marks=question.marks, signs=not question.ours)] if question.text else []
        sections += [Section(piece, "a rule reads in it: ") for piece in question.found]
        sections += [Section(fact) for fact in question.facts]
        lines = self.reader.lay_out(sections, width - 1)
        tail: list[Content] = []
        if len(head) + lines + len(why) + self._key_lines(width) > height:
            tail = _tail(question, width, low=low) if question.text and lines > _LEAST else []
            if len(self._scope) > most_scope:
                self._scope, told_of = [], [Section(question.scope, "“a” also allows ")]
                sections += told_of
            spare = height - self._key_lines(width) - _LEAST - len(tail)
            if len(head) > max(most_head, spare - len(why)):
                head = _cut(head, most_head)
                sections.append(Section(headline))
            if len(why) > max(most_why, spare - len(head)):
                why = _cut(why, max(most_why, spare - len(head)))
                sections.append(Section(reasons, "because: "))
            lines = self.reader.lay_out(sections, width - 1)
        keys = self._key_lines(width)
        room = height - len(head) - len(why) - keys - len(tail)
        self.fits = room >= min(lines, 1)
        self.query_one("#asked", Static).update(Content("\n".join(head)))
        self.query_one("#tail", Static).update(Content("\n").join(tail))
        self.query_one("#tail", Static).display = bool(tail)
        self.query_one("#why", Static).update(Content.styled("\n".join(why), "$text-error" if self._problem else ""))
        self.query_one("#keys", Static).styles.height = keys
        self.reader.place(max(min(lines, 1), min(lines, room)), width)
        self._show_keys()

    def _key_lines(self, width: int) -> int:
        return max(len(self._keys(width, complete)) for complete in (True, False))

    def _keys(self, width: int, complete: bool) -> list[Content]:
        from agent.safety.editing import can_be_changed

        question, share = self._asked, self.reader.share
        keys = [
            Key("y", "yes, once", "yes") if complete else Key("y", f"read on ({share:.0%} seen)", "read on"),
            Key("n", "no", "no"),
            Key("i", "no, do this instead", "instead"),
            *([Key("e", "change it", "edit")] if self.target is not None and can_be_changed(self.target) else []),
            Key("x", "skip", "skip"),
        ]
        if self.held:
            keys += [Key("space", "yes, and go on", "yes, go on"), Key("s", "yes, and ask at the next", "yes, step")]
        if question is None or not question.scope:
            return flowing(keys, width)
        if self._scope:
            first, *more = self._scope
            return [*flowing(keys, width), Content.assemble(("a", "reverse"), first[1:]), *map(Content, more)]
        return flowing([*keys, Key("a", "yes for the run (to what stands above)", "yes, run")], width)

    def _show_keys(self) -> None:
        width = max(10, (self._room or (0, 0))[0] - self.gutter.width)
        self.query_one("#keys", Static).update(Content("\n").join(self._keys(width, self.complete)).rstrip())

    # Time

    def on_reader_read(self, _: Reader.Read) -> None:
        self._wait()
        self._show_keys()

    def _wait(self) -> None:
        self._since = self._clock()
        self.add_class("-waiting")
        self.set_timer(GRACE, self._ready)

    def _ready(self) -> None:
        self.set_class(not self.takes_keys, "-waiting")
        if self.wanted is not None and not self.takes_keys:  # something came into sight meanwhile
            self.set_timer(GRACE, self._ready)


def _wrapped(text: str, width: int) -> list[str]:
    return [line.text for line in lines_of(text, width)]


def _cut(lines: list[str], most: int) -> list[str]:
    return [*lines[: most - 1], f"{lines[most - 1][:-1].rstrip()}…"]


def _tail(question: "Asked", width: int, low: bool) -> list[Content]:
    """Return what must always be in sight: the end of the text, and a rule's first finding if it is before that end."""
    last = ending(question.text, width - 6, question.marks)
    elsewhere = [span for span in question.marks if span[0] < last.start]
    if not elsewhere and not question.found:
        return [_line("ends: ", last)]
    findings = len(question.marks) + len(question.found)
    more = f" +{findings - 1}" if findings > 1 else ""
    room = (width - 5 - len(more)) // 2 if low else width - 7 - len(more)
    if elsewhere:
        found = excerpt(question.text, room, elsewhere[0], question.marks)
    else:  # as the rule reads it: the text has it in disguise
        found = excerpt(question.found[0], room, (0, 0), [(0, len(question.found[0]))])
    if low:
        return [
            _line("", found)
            .append(Content.styled(f"{more} ends ", "$text-muted"))
            .append(_line("", ending(question.text, room - 1, question.marks)))
        ]
    return [_line("found: ", found).append(Content.styled(more, "$text-muted")), _line("ends: ", last)]


def _line(label: str, line: Line) -> Content:
    parts = [(piece.text, _MARKED if piece.marked else "$text-accent" if piece.sign else "") for piece in line.pieces]
    return Content.assemble((label, "$text-muted"), *parts)
