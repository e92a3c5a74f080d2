"""The text of an approval question, and its layout on terminal lines: in full, with nothing hidden.

The text is not cut here. The interface decides how much fits at once, and must not accept approval of text that was not
shown. Invisible characters are spelled out (⟨U+202E⟩), line ends are shown as signs and as line breaks (⏎), and long
repetitions are shown once with their number. Each line knows which characters of the text it shows, so the interface
can tell which parts were never on the screen.
"""

import json
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from agent.core.actions import TYPING, Action, CallTool, HoldKeys, OpenApp, PressKeys, TypeText, VisitPage, describe
from agent.core.geometry import DesktopPoint
from agent.safety.naming import aim_of
from agent.safety.situation import Place, Situation
from agent.safety.text import one_line, places, unseen

if TYPE_CHECKING:  # importing the policy loads a validation library, which would delay the first paint
    from agent.safety.policy import Question

Span = tuple[int, int]

#: Our own signs. If the text contains one itself, it is spelled out.
_OURS = frozenset("⏎⇥␣⟨⟩")
#: Most combining marks on a letter that writing systems need; more would cover neighbouring text.
_MOST_MARKS = 2
#: Repetitions are summarized from this many repeats and this total length on; this many of them are still shown.
_REPEATS, _REPEATED_CHARS, _KEPT = 12, 48, 3
_REPEATED = re.compile(rf"(.{{1,8}}?)\1{{{_REPEATS - 1},}}", re.DOTALL)
LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_ENDS = {"\n": "⏎", "\r": "⟨CR⟩", "\r\n": "⟨CR⟩⏎"}
#: Unicode categories of symbols (emoji, pictures, hexagrams) and of numbers that are not digits.
_OFTEN_WIDE = frozenset({"So", "No"})
#: Lines break after a space if that leaves at most this share of the line empty.
_EMPTY = 0.4


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a line."""

    text: str  # as drawn
    sign: bool = False  # stands for something invisible
    marked: bool = False  # matched by a rule


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the terminal."""

    pieces: tuple[Piece, ...]
    start: int  # index of the first character of the text on this line
    end: int  # index after the last one

    @property
    def text(self) -> str:
        """The line as drawn."""
        return "".join(piece.text for piece in self.pieces)


class _Atom(NamedTuple):
    """The smallest unit for line breaking: a character as drawn."""

    drawn: str
    start: int
    end: int
    sign: bool = False
    ends: bool = False  # whether it ends the line
    cells: int = 1


def lines_of(text: str, width: int, marks: Sequence[Span] = (), *, signs: bool = True) -> list[Line]:
    """Lay the text out on lines of at most `width` cells. `marks` are the parts that a rule matched, as `merged`
    returns them.

    Without `signs`, line ends are line breaks only: for texts whose lines are ours.
    """
    lines: list[Line] = []
    row: list[_Atom] = []
    cells = 0
    for atom in _fitting(_atoms(text, 0, len(text)), max(2, width)):
        if cells + atom.cells > max(2, width):
            kept = _break(row, width)
            lines.append(_line(row[:kept], marks))
            row = row[kept:]
            cells = sum(one.cells for one in row)
        row.append(atom if signs or not atom.ends else atom._replace(drawn=""))
        cells += atom.cells
        if atom.ends:
            lines.append(_line(row, marks))
            row, cells = [], 0
    return [*lines, _line(row, marks)] if row else lines


def excerpt(text: str, width: int, around: Span, marks: Sequence[Span] = ()) -> Line:
    """Return one line with a part of the text and as much of its surroundings as fits."""
    start, end = around
    room = max(8, width) - 2  # two cells for the ellipses
    begin = max(0, start - max(0, room - (end - start)) // 2)
    kept, cells = [_Atom("…", begin, begin, sign=True)] if begin else [], 0
    for atom in _atoms(text, begin, min(len(text), max(end, begin) + room)):
        cells += atom.cells
        if cells > room:
            kept.append(_Atom("…", atom.start, atom.start, sign=True))
            break
        kept.append(atom)
    return _line(kept, marks)


def ending(text: str, width: int, marks: Sequence[Span] = ()) -> Line:
    """Return one line with the end of a text, including trailing blanks."""
    room = max(8, width) - 1
    begin = max(0, len(text.rstrip()) - room)
    kept: list[_Atom] = []
    cells = 0
    for atom in reversed(list(_atoms(text, begin, len(text)))):
        cells += atom.cells
        if cells > room:
            begin = atom.end
            break
        kept.insert(0, atom)
    return _line([_Atom("…", begin, begin, sign=True), *kept] if begin else kept, marks)


def spelled_out(char: str) -> str:
    """Return a character as shown: itself, or its code point if it is invisible or one of our signs."""
    if char in _OURS or unseen(char) or not char.isprintable():
        return f"⟨U+{ord(char):04X}⟩"
    return char


def _atoms(text: str, start: int, end: int) -> Iterator[_Atom]:
    at = start
    for repeated in _REPEATED.finditer(text, start, end):
        if repeated.end() - repeated.start() < _REPEATED_CHARS:
            continue
        unit = len(repeated[1])
        kept = repeated.start() + _KEPT * unit
        yield from _single(text, at, kept)
        times = (repeated.end() - kept) // unit
        ends = bool(LINE_END.search(repeated[1]))
        summary = f"⟨the same {times:,} times more⟩"
        yield _Atom(summary, kept, repeated.end(), sign=True, ends=ends, cells=len(summary))
        at = repeated.end()
    yield from _single(text, at, end)


def _single(text: str, start: int, end: int) -> Iterator[_Atom]:
    marks = 0  # combining marks on the preceding letter
    at = start
    while at < end:
        char = text[at]
        if char in "\r\n":
            length = 2 if text.startswith("\r\n", at) and at + 1 < end else 1
            symbol = _LINE_ENDS[text[at : at + length]]
            yield _Atom(symbol, at, at + length, sign=True, ends=True, cells=2 * len(symbol))
            at, marks = at + length, 0
            continue
        drawn, sign, cells, mark = _drawn(char)
        if char == " " and (at + 1 == len(text) or text[at + 1] in "\r\n"):
            drawn, sign, cells = "␣", True, 2
        marks = marks + 1 if mark else 0
        if mark and (marks > _MOST_MARKS or at < marks or not text[at - marks].isalpha()):
            drawn, sign = f"⟨U+{ord(char):04X}⟩", True
            cells = len(drawn)
        yield _Atom(drawn, at, at + 1, sign=sign, cells=cells)
        at += 1


@lru_cache(maxsize=4096)
def _drawn(char: str) -> tuple[str, bool, int, bool]:
    """Return a character as drawn, whether that is a sign, its cells, and whether it is a combining mark."""
    drawn = "⇥ " if char == "\t" else spelled_out(char)
    return drawn, drawn != char, _cells(drawn), drawn == char and unicodedata.category(char).startswith("M")


def _cells(drawn: str) -> int:
    """Return the most cells that a terminal may use: too low a number would push the end of the line off the screen."""
    if len(drawn) == 1 and unicodedata.combining(drawn):
        return 0
    return sum(2 if _may_be_wide(char) else 1 for char in drawn)


def _may_be_wide(char: str) -> bool:
    """Whether a terminal may draw a character on two cells.

    Symbols and unusual numbers count as wide too: Unicode versions newer than Python's made some of them wide, such as
    hexagrams, and more may follow.
    """
    return not char.isascii() and (
        unicodedata.east_asian_width(char) in "WFA" or unicodedata.category(char) in _OFTEN_WIDE
    )


def _fitting(atoms: Iterable[_Atom], width: int) -> Iterator[_Atom]:
    for atom in atoms:
        if atom.cells <= width or len(atom.drawn) == 1:
            yield atom
            continue
        step = max(1, width // 2)
        parts = [atom.drawn[at : at + step] for at in range(0, len(atom.drawn), step)]
        for index, part in enumerate(parts):
            last = index == len(parts) - 1  # only with its last part, the atom counts as shown
            yield _Atom(part, atom.start, atom.end if last else atom.start, atom.sign, atom.ends and last, _cells(part))


def _break(row: list[_Atom], width: int) -> int:
    for at in range(len(row) - 1, 0, -1):
        if row[at].drawn == " ":
            rest = sum(one.cells for one in row[at + 1 :])
            return at + 1 if rest <= width * _EMPTY else len(row)
    return len(row)


def merged(marks: Iterable[Span]) -> tuple[Span, ...]:
    """Sort the spans and merge overlapping ones."""
    kept: list[Span] = []
    for start, end in sorted(marks):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return tuple(kept)


def _line(atoms: Sequence[_Atom], marks: Sequence[Span]) -> Line:
    pieces: list[Piece] = []
    for atom in atoms:
        at = bisect_left(marks, (atom.end,)) - 1  # the last span that begins before the atom's end
        marked = at >= 0 and marks[at][1] > atom.start
        last = pieces[-1] if pieces else None
        if last is not None and (last.sign, last.marked) == (atom.sign, marked):
            pieces[-1] = Piece(last.text + atom.drawn, atom.sign, marked)
        else:
            pieces.append(Piece(atom.drawn, atom.sign, marked))
    return Line(tuple(pieces), min((one.start for one in atoms), default=0), max((one.end for one in atoms), default=0))


# The question

#: A longer name or chord goes into the text, which is shown in full.
_LONGEST_NAME, _LONGEST_KEYS = 40, 40
#: Longest window title in the line. A page chooses its title, so it may be anything.
_LONGEST_TITLE = 40
#: Characters of previously typed text to show if a rule matched in it.
_BEFORE = 80
#: A longer name is cut and its length is stated; the rest does not help to decide.
_MOST_OF_A_NAME = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, ready to be shown."""

    what: str  # type 1,514 characters on 2 lines; click “Delete”
    where: str  # into Xfce4-terminal, window “me@host: ~”; "" if unknown
    text: str  # all that is entered, opened or called; "" if `what` is complete
    ours: bool  # whether we, not the model, wrote the text's line ends
    marks: tuple[Span, ...]  # the parts of the text that a rule matched
    found: tuple[str, ...]  # matches, as the rules read them, that cannot be located in the text
    facts: tuple[str, ...]  # further facts that are too long for a line
    reasons: tuple[str, ...]
    scope: str  # what a permission for the rest of the run would allow; "" if only once


def asked(action: Action[DesktopPoint], question: "Question") -> Asked:
    """Return the question about an action in the form in which it is shown."""
    known = question.situation
    text = _text(action)
    spans = [span for piece in question.matched for span in places(text, piece)]
    lost = [piece for piece in question.matched if piece.strip() and not places(text, piece)]
    facts = [*_facts(known), *_before(action, question)]
    return Asked(
        what=_what(action, known, text),
        where=_where(action, known),
        text=text,
        ours=isinstance(action, OpenApp | VisitPage | CallTool),
        marks=merged(spans),
        found=tuple(dict.fromkeys(lost)) if text else (),
        facts=tuple(facts),
        reasons=question.reasons or (question.reason,),
        scope=question.scope,
    )


def _what(action: Action[DesktopPoint], known: Situation, text: str) -> str:
    match action:
        case TypeText():
            lines = len(LINE_END.split(text.rstrip("\r\n"))) if text else 0
            count = "nothing" if not text else f"{len(text):,} characters" if len(text) > 1 else "1 character"
            return f"type {count}" + (f" on {lines:,} lines" if lines > 1 else "")
        case OpenApp() if text:
            return "open"
        case VisitPage():
            return "visit a web page"
        case CallTool(name):
            return "call a tool" if _is_long(name) else f"call the tool “{name}”"
        case PressKeys() if text:
            return f"press {len(action.keys)} keys at once"
        case HoldKeys(_, seconds) if text:
            return f"hold {len(action.keys)} keys for {seconds:g} s"
    return describe(action, aim_of(action, known).names)


def _where(action: Action[DesktopPoint], known: Situation) -> str:
    if isinstance(action, OpenApp):
        opens = ", ".join(dict.fromkeys(one_line(one, _LONGEST_NAME) for one in known.opens or () if one))
        return f"which starts {opens}" if opens else ""
    if isinstance(action, VisitPage):
        opens = next((one_line(one, _LONGEST_NAME) for one in known.opens or () if one), "")
        return f"with {opens}" if opens else ""
    if isinstance(action, CallTool):
        return "outside of the desktop"
    if isinstance(action, TYPING):
        field = next(iter(aim_of(action, known).names), "")
        place = _place(known.focused)
        if not field and not place:
            return ""
        how = "into" if isinstance(action, TypeText) else "in"
        return f"{how} {field} in {place}" if field and place else f"{how} {field or place}"
    origin = f"from {_place(known.origin)} to " if known.origin and known.origin != known.under else ""
    place = _place(known.under)
    return f"{origin or 'in '}{place}" if place else ""


def _place(place: Place | None) -> str:
    """Describe a window by its application, which the system reports, and its title, which the window chooses."""
    if place is None:
        return ""
    app, title = one_line(place.app, _LONGEST_NAME), one_line(place.title, _LONGEST_TITLE)
    return f"{app} “{title}”" if app and title else app or (f"“{title}”" if title else "")


def _text(action: Action[DesktopPoint]) -> str:
    match action:
        case TypeText(text):
            return text
        case VisitPage(url):
            return url
        case OpenApp(name, application) if _is_long(name) or _is_long(application):
            return f"{name}\nwith {application}" if application else name
        case CallTool(name, arguments):
            head = f"{name}\n" if _is_long(name) else ""
            return head + json.dumps(dict(arguments), ensure_ascii=False, indent=1)
        case PressKeys(keys) | HoldKeys(keys) if len("+".join(keys)) > _LONGEST_KEYS:
            return "+".join(keys)
    return ""


def _is_long(name: str) -> bool:
    """Whether the line cannot show a name completely and literally."""
    return one_line(name, _LONGEST_NAME) != name or "“" in name or "”" in name


def _facts(known: Situation) -> list[str]:
    """Return the words and the name at the target if they are too long for the line."""
    names = [("written there", known.words), *((f"the {one.role}", one.name or one.label) for one in known.elements)]
    return [f"{label}: {_shortened(name)}" for label, name in names if len(" ".join(name.split())) > _LONGEST_NAME]


def _before(action: Action[DesktopPoint], question: "Question") -> list[str]:
    typed = question.situation.typed
    if not typed or not question.matched or not isinstance(action, TYPING):
        return []
    return [f"typed there just before: {typed[-_BEFORE:]}"]


def _shortened(name: str) -> str:
    more = len(name) - _MOST_OF_A_NAME
    return name if more <= 0 else f"{name[:_MOST_OF_A_NAME]}… ({more:,} characters more)"
