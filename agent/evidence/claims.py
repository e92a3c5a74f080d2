"""Compares a model's "done" with the evidence: the receipt, and the state of the elements that were touched.

A changed screen is not evidence. What a task asks for is read from its words (`configs/claims.toml`). If nothing
decides, `verified` is None.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from agent.core.actions import TOUCHING, CallTool, Finish, OpenApp, VisitPage, points_of
from agent.core.changes import Change
from agent.core.geometry import DesktopPoint
from agent.core.roles import role_group
from agent.events.run_events import Acted, Event, Receipt
from agent.literal.vocabulary.lexicon import applications, letters_of, programs_of_kind
from agent.screen.outline import Element, Outline
from foundation.configs import load_config
from foundation.foreign_text import harmless

#: How many of the elements touched last are looked at again, and how many sentences of evidence are kept.
_MOST_TOUCHED, _MOST_EVIDENCE = 5, 10
_MOST_CHARS = 300
#: States that show a setting, and states that only concern the view unless the task names the element.
_SET, _SHOWN = frozenset({"checked", "pressed"}), frozenset({"selected", "expanded"})
_SWITCHES = role_group("two states")
_AMOUNTS = role_group("amounts")
#: The form in which the built-in engine's evidence names a change.
_CHANGE = re.compile(r"(?:setting|file|window|app) .*(?: -> .*|\((?:new|gone)\))$", re.DOTALL)
#: The words before the thing's name in "open up the terminal".
_OPENED = re.compile(r"^\w+ (?:up )?(?:(?:the|a|an|my|new) )*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“„«].*?[\"”“»]|(?<!\w)['‘].*?['’](?!\w)")
_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking a claim that the task is done.

    Args:
        evidence: what confirms it, or the state of touched elements.
        verified: whether the evidence confirms it; None if unknown.
        doubt: what speaks against it, as the end of a sentence; "" for nothing.
    """

    evidence: tuple[str, ...] = ()
    verified: bool | None = None
    doubt: str = ""


class Claims:
    """Collects what a run touched, and checks its claim at the end; `instruction` is the person's."""

    def __init__(self, instruction: str) -> None:
        self._instruction = instruction
        self._kind, self._needs = asked(instruction)
        self._outline: Outline | None = None
        self.did_something = False  # on the desktop, or by a tool
        self._opened: str | None = None  # the error of the last opening; "" for none, None if nothing was opened
        self._touched: list[Element] = []  # as they stood before, the last one last

    def saw(self, outline: Outline | None) -> None:
        """Keep the elements before the next actions; None if unknown."""
        self._outline = outline

    def handle(self, event: Event) -> None:
        """Note the elements that an event touched."""
        if isinstance(event, Acted) and isinstance(event.target, OpenApp | VisitPage) and not event.dry_run:
            self._opened = event.error or ""
        if not isinstance(event, Acted) or not event.executed or not isinstance(event.target, (*TOUCHING, CallTool)):
            return
        self.did_something = True
        element = next(reversed(event.elements), None)
        if element is None and self._outline is not None and (points := points_of(event.target)):
            element = self._outline.at(points[-1])
        if element is not None and not any(_is_same(element, other) for other in self._touched):
            self._touched = [*self._touched, element][-_MOST_TOUCHED:]

    @property
    def places(self) -> list[DesktopPoint]:
        """The places of the elements touched last, to look at again before the claim is judged."""
        return [element.box.middle for element in self._touched]

    def judge(self, receipt: Receipt, present_elements: Collection[Element] = ()) -> Verdict:
        """Check a model's claim that the task is done; `present_elements` are the elements at `places` now."""
        known = (*present_elements, *(self._outline.elements if self._outline else ()))
        now = [(before, found) for before in self._touched if (found := _again(known, before))]
        stand = _bounded(_told(found) for _, found in now if _SET & found.states or found.value or _is_switch(found))
        against = [_told(found) for _, found in now if self._as_wanted(found) is False]
        counting = [change for change in receipt.changes if change.kind in self._needs]
        was_set = [found for before, found in now if self._was_set(before, found)]
        confirmed = [found for _, found in now if self._as_wanted(found)]
        doubt = ""
        if self._kind and not self.did_something:
            doubt = "nothing was done"
        elif against:
            doubt = f"this is not as asked: {against[-1]}"
        elif self._kind == "open":
            doubt = "" if counting or was_set else self._not_open(receipt, known)
            doubt = doubt or self._of_another_kind(counting, known)
        elif self._needs and receipt.watched and not (counting or was_set or confirmed):
            others = " (only windows, applications or the clipboard)" if receipt.changes else ""
            doubt = f"nothing changed that could show it: no setting, no file, and nothing that was touched{others}"
        if doubt:
            return Verdict(stand, None, doubt)
        named = programs_of_kind(self._opens) if self._kind == "open" else ()
        shows = [
            str(change) for change in counting
            if _meets(self._instruction, _texts(change)) or (change.before is None and _is_one(change.what, named))
        ]  # fmt: skip
        meant = [found for found in was_set if _meets(self._instruction, [found.name, found.label, found.value or ""])]
        shows += dict.fromkeys(_told(found) for found in (*confirmed, *meant))
        proves = bool(shows and self._needs) and (self._kind != "open" or self._is_one_part)
        return Verdict(_bounded(shows) or stand, True if proves else None)

    def _not_open(self, receipt: Receipt, known: Collection[Element]) -> str:
        """Return why the thing that the task wants open is probably not open; "" if nothing indicates that."""
        if self._opened:
            return f"what was to be opened is not open: {self._opened}"
        seen = self._opened is not None or any(
            _meets(self._instruction, [one.name, one.label, one.role]) for one in known
        )
        conclusive = receipt.watched and not receipt.remarks and known and _words(self._instruction)
        return "nothing new is open, and nothing of that name is on the screen" if conclusive and not seen else ""

    def _of_another_kind(self, opened: Iterable[Change], known: Iterable[Element]) -> str:
        """Return why the opened programs are not of the kind that the task names ("the terminal"); "" if unknown."""
        kind = self._opens
        programs, known_ones = programs_of_kind(kind), tuple(set(chain(*map(programs_of_kind, applications()))))
        new = [change.what for change in opened if change.before is None]
        if not programs or not self._is_one_part or any(_is_one(one.app, programs) for one in known):
            return ""
        if not new or not all(_is_one(one, known_ones) and not _is_one(one, programs) for one in new):
            return ""
        return f"what opened is no {kind}: {', '.join(dict.fromkeys(new))}"

    @property
    def _opens(self) -> str:
        """What the task wants open, without the verb and the article: "file manager"."""
        return _OPENED.sub("", next(iter(_parts(self._instruction)))).casefold()

    @property
    def _is_one_part(self) -> bool:
        """Whether the task asks for one thing only, so that evidence for that thing is evidence for the whole task."""
        return sum(bool(part.strip()) for part in _rule("cuts").split(_QUOTED.sub("“”", self._instruction))) == 1

    def _as_wanted(self, element: Element) -> bool | None:
        """Whether a switch that the task names is set as asked; None for other elements."""
        wanted = _wanted_on(self._instruction)
        if wanted is None or not _is_switch(element) or not _meets(self._instruction, [element.name, element.label]):
            return None
        return bool(_SET & element.states) is wanted

    def judge_own(self, claim: Finish, receipt: Receipt, present_elements: Collection[Element] = ()) -> Verdict:
        """Check a claim of the built-in engine, which brings its own evidence."""
        evidence = _bounded(claim.evidence)
        if claim.verified is False:
            return Verdict(evidence, False, "it could not be confirmed")
        if claim.verified is None or not evidence:
            verdict = self.judge(receipt, present_elements)
            return replace(verdict, evidence=evidence or verdict.evidence, doubt=verdict.doubt if self._needs else "")
        gone = evidence[0]
        if len(evidence) == 1 and receipt.watched and _CHANGE.match(gone) and gone not in map(str, receipt.changes):
            return Verdict(evidence, None, f"this is not so any more: {gone}")
        return Verdict(evidence, True)

    def _was_set(self, before: Element, now: Element) -> bool:
        """Whether an element's state has changed since before it was touched, in a way that may concern the task."""
        if (before.states ^ now.states) & _SET:
            return True
        if now.value and before.value != now.value:
            return now.role in _AMOUNTS or (now.role != "password text" and _is_given(now.value, self._instruction))
        return bool((before.states ^ now.states) & _SHOWN) and _meets(self._instruction, [now.name])


def _is_one(app: str, programs: tuple[str, ...]) -> bool:
    return bool(app) and letters_of(app).endswith(programs)


def asked(instruction: str) -> tuple[str, Collection[str]]:
    """The kind of a task, "" if unknown, and the kinds of changes that count as evidence for it."""
    parts = list(_parts(instruction))
    for kind in load_config("claims.toml")["kinds"]:
        if any(re.match(pattern, part, re.IGNORECASE) for pattern in kind["patterns"] for part in parts):
            return kind["name"], frozenset(kind["needs"])
    return "", ()


def _rule(name: str) -> re.Pattern[str]:
    return re.compile(load_config("claims.toml")[name], re.IGNORECASE)


def _parts(instruction: str) -> Iterator[str]:
    for part in _rule("cuts").split(_QUOTED.sub("“”", instruction)):
        rest = part.strip()
        while match := _rule("polite").match(rest):
            rest = rest[match.end() :].strip()
        yield from (rest, *re.split(r"\bto\s+", rest, flags=re.IGNORECASE)[1:])


def _meets(instruction: str, texts: Iterable[str]) -> bool:
    """Whether texts have a word in common with the instruction, in any of its forms."""
    wanted = _words(instruction)
    return any(one == other or _stem(one) == _stem(other) for text in texts for one in _words(text) for other in wanted)


def _words(text: str) -> set[str]:
    words = {word.lower() for word in _WORDS.findall(text)}
    common = load_config("claims.toml")["common"]
    return {word for word in words if (len(word) > 2 or word[0].isdigit()) and word not in common}


def _stem(word: str) -> str:
    return word[:5] if len(word) > 5 else word


def _texts(change: Change) -> list[str]:
    """Return the texts that describe a change; of a path, only its end."""
    end = re.split(r"[/\\]", change.what.rstrip("/"))[-1] if change.kind in ("setting", "file") else change.what
    return [end, *(text for text in (change.before, change.after) if text)]


# Elements


def _again(known: Iterable[Element], before: Element) -> Element | None:
    """The nearest element that is the same as one from before; None if it is gone."""

    def distance(element: Element) -> int:
        return abs(element.box.left - before.box.left) + abs(element.box.top - before.box.top)

    return min((element for element in known if _is_same(element, before)), key=distance, default=None)


def _is_same(one: Element, other: Element) -> bool:
    return (one.app, one.role, one.name, one.label) == (other.app, other.role, other.name, other.label)


def _is_switch(element: Element) -> bool:
    return element.role in _SWITCHES


def _wanted_on(instruction: str) -> bool | None:
    """Whether a task asks for something to be on, or off; None if it says both or neither."""
    unquoted = _QUOTED.sub("", instruction)
    on, off = (_rule(name).search(unquoted) is not None for name in ("on", "off"))
    return None if on == off else on


def _is_given(text: str, instruction: str) -> bool:
    """Whether the task gives the text of a field: in quotes, or after "to", "as" or "with"."""
    pattern = rf"(?:\b(?:to|as|with)\s+|[\"'“‘]){re.escape(text.strip())}(?!\w)"
    return bool(text.strip()) and re.search(pattern, instruction, re.IGNORECASE) is not None


def _told(element: Element) -> str:
    """An element with its state and value, without the value of a password field."""
    value = "" if not element.value or element.role == "password text" else " ".join(element.value.split())[:60]
    return harmless(f"{element.words}: “{value}”" if value else element.words)


def _bounded(evidence: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:_MOST_CHARS] for text in [*evidence][:_MOST_EVIDENCE])
