"""Holds "done" against what is known: the receipt, and how the elements stand that were touched.

That the screen changed is no evidence. What a task asks for is read from its words (`configs/claims.toml`); what nobody
can tell stays untold: `verified` is None then.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from agent.actions import TOUCHING, CallTool, Finish, points_of
from agent.changes import Change
from agent.run.events import Acted, Event, Receipt
from agent.safety.text import harmless
from agent.screen.outline import Element, Outline
from foundation.configs import load_config

#: So many elements that were touched last are looked at again, and so many sentences are evidence.
_MOST_TOUCHED, _MOST_EVIDENCE = 5, 10
_MOST_CHARS = 300
#: States that say how something is set. One that is selected or expanded may only be shown, unless the task names it.
_SET, _SHOWN = frozenset({"checked", "pressed"}), frozenset({"selected", "expanded"})
_SWITCHES = frozenset({"check box", "check menu item", "radio button", "radio menu item", "switch", "toggle button"})
_QUOTED = re.compile(r"[\"“„«].*?[\"”“»]|(?<!\w)['‘].*?['’](?!\w)")
_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a claim that the task is done.

    Args:
        evidence: what shows it, or how what was touched stands now.
        verified: whether that shows it; None where it cannot be told.
        doubt: what speaks against it, as the end of a sentence; "" for nothing.
    """

    evidence: tuple[str, ...] = ()
    verified: bool | None = None
    doubt: str = ""


class Claims:
    """What a run did, for the end of it; `instruction` is the person's."""

    def __init__(self, instruction: str) -> None:
        self._instruction = instruction
        self._kind, self._needs = asked(instruction)
        self._outline: Outline | None = None
        self.did_something = False  # on the desktop, or by a tool
        self._touched: list[Element] = []  # as they stood before, the last one last

    def saw(self, outline: Outline | None) -> None:
        """The elements on the screen before the next actions."""
        self._outline = outline

    def handle(self, event: Event) -> None:
        """Take in what was done."""
        if not isinstance(event, Acted) or not event.executed or not isinstance(event.target, (*TOUCHING, CallTool)):
            return
        self.did_something = True
        points = points_of(event.target)
        element = self._outline.at(points[-1]) if points and self._outline is not None else None
        if element is not None and not any(_is_same(element, other) for other in self._touched):
            self._touched = [*self._touched, element][-_MOST_TOUCHED:]

    def judge(self, receipt: Receipt) -> Verdict:
        """What is to be said of a model's claim that the task is done."""
        now = [(before, _again(self._outline, before)) for before in self._touched]
        stand = tuple(f"{_named(found)} {state}" for _, found in now if found and (state := _state(found)))
        changed = [
            f"{_named(found)} {_state(found)}" for before, found in now if found and self._was_set(before, found)
        ]
        counting = [change for change in receipt.changes if change.kind in self._needs]
        meant = [str(change) for change in counting if _meets(self._instruction, _texts(change))]
        shows = _bounded([*meant, *(text for text in changed if text not in meant)])
        doubt = ""
        if self._kind and not self.did_something:
            doubt = "nothing was done"
        elif self._needs and receipt.watched and not counting and not changed:
            others = "" if not receipt.changes else ", only windows, applications or the clipboard"
            doubt = f"nothing changed that could show it: no setting, no file, nothing that was touched{others}"
        if doubt:
            return Verdict(_bounded(stand), None, doubt)
        return Verdict(shows or _bounded(stand), True if shows and self._needs else None)

    def judge_own(self, claim: Finish, receipt: Receipt) -> Verdict:
        """What is to be said of a claim of the built-in engine, which says itself what shows it."""
        evidence = _bounded(claim.evidence)
        if claim.verified is False:
            return Verdict(evidence, False, "it could not be confirmed")
        if claim.verified and not evidence:
            return Verdict(evidence, None)
        if claim.verified is None:
            verdict = self.judge(receipt)
            return replace(verdict, evidence=evidence or verdict.evidence, doubt=verdict.doubt if self._needs else "")
        return Verdict(evidence, True)

    def _was_set(self, before: Element, now: Element) -> bool:
        """Whether an element stands otherwise than before it was touched, in a way that the task may be about."""
        if before.value != now.value or (before.states ^ now.states) & _SET:
            return True
        return bool((before.states ^ now.states) & _SHOWN) and _meets(self._instruction, [now.name])


def asked(instruction: str) -> tuple[str, Collection[str]]:
    """The kind of a task, "" for none that is known, and the kinds of changes one of which it needs."""
    parts = list(_parts(instruction))
    for kind, needs, patterns in _rules().kinds:
        if any(pattern.match(part) for pattern in patterns for part in parts):
            return kind, needs
    return "", ()


@dataclass(frozen=True, slots=True)
class _Rules:
    cuts: re.Pattern[str]
    polite: re.Pattern[str]
    common: frozenset[str]
    kinds: tuple[tuple[str, Collection[str], tuple[re.Pattern[str], ...]], ...]


@cache
def _rules() -> _Rules:
    data: dict[str, Any] = load_config("claims.toml")
    kinds = (
        (kind["name"], frozenset(kind["needs"]), tuple(re.compile(text, re.IGNORECASE) for text in kind["patterns"]))
        for kind in data["kinds"]
    )
    cuts, polite = (re.compile(data[name], re.IGNORECASE) for name in ("cuts", "polite"))
    return _Rules(cuts, polite, frozenset(data["common"]), tuple(kinds))


def _parts(instruction: str) -> Iterator[str]:
    rules = _rules()
    for part in rules.cuts.split(_QUOTED.sub("“”", instruction)):
        rest = part.strip()
        while match := rules.polite.match(rest):
            rest = rest[match.end() :].strip()
        yield from (rest, *re.split(r"\bto\s+", rest, flags=re.IGNORECASE)[1:])


def _meets(instruction: str, texts: Iterable[str]) -> bool:
    """Whether texts have a word in common with the instruction, in any of its forms."""
    wanted = _words(instruction)
    return any(one == other or _stem(one) == _stem(other) for text in texts for one in _words(text) for other in wanted)


def _words(text: str) -> set[str]:
    words = {word.lower() for word in _WORDS.findall(text)}
    return {word for word in words if (len(word) > 2 or word[0].isdigit()) and word not in _rules().common}


def _stem(word: str) -> str:
    return word[:5] if len(word) > 5 else word


def _texts(change: Change) -> list[str]:
    """What of a change says what it is about: of a path its end."""
    end = re.split(r"[/\\]", change.what.rstrip("/"))[-1] if change.kind in ("setting", "file") else change.what
    return [end, *(text for text in (change.before, change.after) if text)]


# Elements


def _again(outline: Outline | None, before: Element) -> Element | None:
    """The same element as it stands now; None where it is not there any more."""
    return next((element for element in outline.elements if _is_same(element, before)), None) if outline else None


def _is_same(one: Element, other: Element) -> bool:
    return (one.app, one.role, one.name, one.label, one.box) == (
        other.app,
        other.role,
        other.name,
        other.label,
        other.box,
    )


def _named(element: Element) -> str:
    name = " ".join(harmless(element.name or element.label).split())[:60]
    return f"{element.role} “{name}”" if name else element.role


def _state(element: Element) -> str:
    """How an element stands, "" where it says nothing of that; what is in a field for a password is not told."""
    if element.role == "password text":
        return ""
    said = sorted((_SET | _SHOWN) & element.states)
    if element.role in _SWITCHES and "checked" not in said:
        said = ["not checked", *(state for state in said if state == "selected")]
    if element.value:
        said = [f"holds “{' '.join(harmless(element.value).split())[:60]}”", *said]
    return ", ".join(said)


def _bounded(evidence: Iterable[str]) -> tuple[str, ...]:
    return tuple(text[:_MOST_CHARS] for text in [*evidence][:_MOST_EVIDENCE])
