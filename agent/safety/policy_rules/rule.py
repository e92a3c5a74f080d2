"""The rules of a policy: their form in a policy file, and how they match an action and its situation.

A rule that can never match would look like protection without being any, so loading rejects it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationInfo, model_validator

from agent.core.actions import (
    TYPING,
    Action,
    Button,
    CallTool,
    Click,
    Drag,
    HoldKeys,
    LongPress,
    OpenApp,
    PressKeys,
    TypeText,
    VisitPage,
    kind_of,
    points_of,
)
from agent.core.geometry import DesktopPoint, Region
from agent.core.keys import chord
from agent.safety.situation import UNKNOWN, Fact, Place, Sense, Situation
from agent.safety.targets import captions, link_of, named_elements
from agent.safety.text import found, matches, one_line, spelled
from agent.safety.words import WordList, parts_of
from agent.screen.outline import Element

T = TypeVar("T")

#: Matches the position where a shell expects a command name; patterns write <command> for it. It includes programs that
#: run the command after them. If such a program's name is also an ordinary word, an option or a number must follow.
_COMMAND = (
    r"(?:(?m:^)|[;&|(`]|\$\(|\b(?:sudo|exec|nohup|env|xargs|setsid|stdbuf|ionice|then|do|else)[ \t]"
    r"|\b(?:sudo|doas|env|xargs|nice|timeout|time|watch|parallel|taskset|chrt|strace|script|command)"
    r"(?:[ \t]{1,9}(?:-\S{1,40}|\d\S{0,20}|\w{1,40}=\S{0,80})){1,9}[ \t])[ \t]*(?:[$#>%][ \t]+)?"
    r"(?:/(?:usr/)?(?:local/)?s?bin/)?"
)


def _pattern(written: Any) -> re.Pattern[str]:
    try:
        return re.compile(written.replace("<command>", _COMMAND), re.IGNORECASE)
    except (AttributeError, TypeError, re.error) as error:
        raise ValueError(f"{written!r} is not a regular expression ({error})") from error


def chord_of(keys: Iterable[str]) -> frozenset[str]:
    """Return a chord with equivalent keys unified."""
    return frozenset("enter" if name == "kp_enter" else name for name in keys)


def _chord(written: Any) -> frozenset[str]:
    """Parse a chord, a list of key names, into canonical names."""
    if not isinstance(written, list) or not written:
        raise ValueError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return chord_of(chord([str(one) for one in written]))


def _region(written: Any) -> Region:
    if isinstance(written, list) and [type(number) for number in written] == [int] * 4 and min(written[2:]) > 0:
        return Region(*written)
    raise ValueError("it must be [left, top, width, height] in whole numbers")


@dataclass(frozen=True, slots=True)
class Named:
    """The named lists of a policy file that its rules refer to."""

    groups: Mapping[str, Any] = field(default_factory=dict)  # [groups]
    words: Mapping[str, WordList] = field(default_factory=dict)  # [words]


def _named(written: Any, info: ValidationInfo) -> Any:
    """Replace names of [groups], alone or in a list, with their lists. Any other single name stays, and fails as not
    being a list.
    """
    groups = info.context.groups if info.context else {}
    if isinstance(written, str):
        return groups.get(written, written)
    if not isinstance(written, list):
        return written
    called = [groups.get(one, one) if isinstance(one, str) else [one] for one in written]
    return [item for one in called for item in (one if isinstance(one, list) else [one])]


def _listed(written: Any, info: ValidationInfo) -> Any:
    known = info.context.words if info.context else {}
    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not names or (unknown := [one for one in names if one not in known]):
        raise ValueError(f"{unknown[0] if isinstance(names, list) and names else written!r} is no list of [words]")
    return tuple(known[one] for one in names)


#: Types for the values in a policy file, with their parsers.
Expression: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
Box: TypeAlias = Annotated[Region, BeforeValidator(_region)]
Text = Annotated[str, Field(pattern=r"\S")]
#: A condition. An empty list is an error, because it would be no condition.
Some = Annotated[tuple[T, ...], Field(min_length=1), BeforeValidator(_named)]
Names = Annotated[tuple[Text, ...], BeforeValidator(_named)]
Patterns = Some[Expression]
Chord = Annotated[frozenset[str], BeforeValidator(_chord)]
Words = Annotated[tuple[WordList, ...], BeforeValidator(_listed)]
Facts = Annotated[
    tuple[Fact, ...], Field(min_length=1), BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)
]


#: The action types that a rule can name: those of `actions.to_json`, and three defined by effect. "press" is any way to
#: press an element (a click, or Enter or space on the focused element); "activate" is any way to open it (a double
#: click, Enter); "follow" is any way to follow a link whose address is known.
_ActionName: TypeAlias = Literal[
    "click", "long_press", "move", "drag", "scroll", "type", "key", "hold", "open", "visit", "call_tool", "press",
    "activate", "follow",
]  # fmt: skip
_POINTING = frozenset({"click", "long_press", "move", "drag", "scroll", "press", "activate"})
_ON_DESKTOP = _POINTING | {"type", "key", "hold"}
#: The actions to which each condition can apply.
_CONDITIONS: dict[str, frozenset[str]] = {
    "keys": frozenset({"key", "hold"}),
    "patterns": frozenset({"type", "open", "visit", "follow", "call_tool"}),
    "windows": _ON_DESKTOP,
    "elsewhere": _ON_DESKTOP,
    "words": _POINTING,
    "says": _POINTING,
    "unlisted": frozenset({"press"}),
    "unlisted_keys": frozenset({"key", "hold"}),
    "asked": frozenset({"press", "key", "hold"}),
    "elements": _ON_DESKTOP,
    "buttons": frozenset({"click"}),
    "excepted": frozenset({"open", "call_tool", "press", "drag", "key", "hold"}),
    "given": _ON_DESKTOP | {"open", "visit", "follow"},
    "unless": _ON_DESKTOP | {"open", "visit", "follow"},
}
#: The information that each fact depends on: if it is missing, conditions on the fact count as met. All other facts
#: must be known themselves.
_TOLD_BY: dict[str, Sense] = {
    "a dialog": "places", "end of a title bar": "places", "corner of a window": "places", "unseen choice": "windows",
    "launcher": "windows", "text was lost": "windows", "all is replaced": "windows", "another window": "places",
    "a form": "elements", "unread field": "elements", "unknown focus": "elements", "a button": "elements",
}  # fmt: skip
#: Most matches of a pattern to list.
_MOST_FOUND = 20
#: Characters around the caret with which a typed text is judged.
_AROUND = 300
#: Longest name in a reason, in characters.
_LONGEST_NAME = 60


class PolicyPart(BaseModel):
    """A table of a policy file."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Rule(PolicyPart):
    """A rule: these actions need approval if all its conditions hold."""

    name: Text
    actions: Annotated[
        frozenset[_ActionName],
        Field(alias="action", min_length=1),
        BeforeValidator(lambda written: [written] if isinstance(written, str) else written),
    ]
    reason: Text  # as a clause
    keys: Some[Chord] = ()  # chords; all keys of at least one are pressed
    patterns: Patterns = ()  # searched in the typed text, or the application's or tool's name
    windows: Patterns = ()  # searched in the target window's class and title, and in “site HOST” for a page
    elsewhere: Patterns = ()  # must not be in a target window's class; titles do not count, because pages choose them
    words: Patterns = ()  # searched in the words at the target and the names of the elements there
    elements: Patterns = ()  # searched in the target element's role and name: push button Save
    buttons: Some[Button] = ()
    says: Words = ()  # word lists; one of them is found where `words` is searched
    asked: Words = ()  # the same, in the text of the dialog that is answered
    unlisted: Words = ()  # word lists; none of them covers the pressed element's caption
    unlisted_keys: Some[Chord] = ()  # chords; the pressed chord is none of them, and enters no text
    given: Facts = ()  # all of these hold
    unless: Facts = ()  # none of these holds
    #: Names of applications or tools that the rule exempts, also of the target window's; * matches anything.
    excepted: Annotated[Names, Field(alias="except")] = ()
    always: StrictBool = True  # may be allowed for the rest of the run

    @model_validator(mode="after")
    def _no_idle_condition(self) -> Self:
        """Reject a condition that can never hold for one of the rule's actions."""
        for condition, about in _CONDITIONS.items():
            if condition in self.model_fields_set and (silent := sorted(self.actions - about)):
                written = type(self).model_fields[condition].alias or condition
                raise ValueError(f"{written} say nothing about the action {silent[0]!r}")
        return self

    def matches(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> bool:
        """Whether the rule applies to this action. A condition on lost information counts as met."""
        if not self._speaks_of(action, situation) or any(
            fact in situation.facts - situation.claimed for fact in self.unless
        ):
            return False
        if isinstance(action, TYPING) and self.keys and not any(wanted <= _keys_of(action) for wanted in self.keys):
            return False
        if any(fact not in situation.facts and _told_by(fact, action) not in situation.missing for fact in self.given):
            return False
        if isinstance(action, OpenApp):
            return self._opens(action, situation)
        if isinstance(action, CallTool):
            return not self.excepts(action) and self._names((action.name,))
        if isinstance(action, VisitPage) or "follow" in self.actions:
            url = action.url if isinstance(action, VisitPage) else _followed(action, situation)
            return self._names((url, unquote(url)))
        if self.patterns and next(self.finds(action, situation), None) is None:
            return False
        if self.unlisted_keys and not self._is_unlisted_chord(action):
            return False
        return self._is_aimed(action, situation) and (
            not self.buttons or (isinstance(action, Click) and action.button in self.buttons)
        )

    def is_blind(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        """Whether the rule matches only because information that it needs is missing."""
        full_situation = replace(situation, lost=frozenset(), untold=frozenset())
        return bool(situation.missing) and not self.matches(action, full_situation)

    def _is_aimed(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        """Whether the action's target meets the rule's conditions."""
        typing, lost = isinstance(action, TYPING), situation.missing
        places = (situation.focused,) if typing else (situation.under, situation.origin)
        placed = any(self._is_in(place) for place in places if place is not None)
        if self.windows and ("windows" if typing else "places") not in lost and not placed:
            return False
        apps = [place.app for place in places if place is not None]
        if self._excepted(apps) or any(found(one, app) for one in self.elsewhere for app in apps):
            return False
        texts = (situation.words, *_names(situation, typing=typing))
        unread = bool(lost & ({"elements"} if typing else {"elements", "words"}))
        if self.words and not unread and not _any_found(self.words, texts):
            return False
        if self.says and not unread and not any(each.found(one) for each in self.says for one in texts if one):
            return False
        if self.unlisted and not unread and not self._is_unlisted(situation, typing=typing):
            return False
        answered = bool(lost & {"words", "places"}) or any(each.found(situation.asked) for each in self.asked)
        if self.asked and not answered:
            return False
        return not self.elements or "elements" in lost or _any_found(self.elements, map(_called, situation.elements))

    @property
    def is_default(self) -> bool:
        """Whether the rule asks only because the action is not on a list of harmless ones, whatever a dialog asks."""
        return bool(self.unlisted or self.unlisted_keys) and not self.asked

    def why(self, action: Action[DesktopPoint], situation: Situation) -> str:
        """Return the reason, with the pressed element's name in place of {name}."""
        if isinstance(action, PressKeys | HoldKeys) and self.unlisted_keys:
            called = "+".join(action.keys)
        else:
            called = next(iter(captions(situation, typing=isinstance(action, TYPING))), "this")
        return self.reason.replace("{name}", one_line(called, _LONGEST_NAME))

    def _is_unlisted(self, situation: Situation, *, typing: bool) -> bool:
        def is_listed(caption: str) -> bool:
            return any(each.covers(caption) for each in self.unlisted)

        called = captions(situation, typing=typing)
        # With several word lists, a caption also passes if the first list (viewing, navigation) covers all its parts.
        parted = len(self.unlisted) > 1 and not self.asked
        looks = self.unlisted[0].covers
        return any(not is_listed(one) and not (parted and all(map(looks, parts_of(one) or [one]))) for one in called)

    def _is_unlisted_chord(self, action: Action[DesktopPoint]) -> bool:
        if not isinstance(action, PressKeys | HoldKeys) or spelled(action):
            return False
        return chord_of(action.keys) not in self.unlisted_keys

    def _speaks_of(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        kind = kind_of(action)
        if kind in self.actions or (kind == "hold" and "key" in self.actions):  # holding a key presses it first
            return True
        if isinstance(action, TypeText) and self.keys and "key" in self.actions:  # a line end is Enter
            return True
        if self.actions & {"press", "activate"} and self._presses(action):
            return True
        if "follow" in self.actions:
            return bool(_followed(action, situation))
        # Keys pressed one by one count as a text, and so do the contents of the fields that a press submits.
        return "type" in self.actions and bool(self.patterns) and (bool(situation.unjudged) or bool(spelled(action)))

    def _presses(self, action: Action[DesktopPoint]) -> bool:
        pressing = "press" in self.actions
        if isinstance(action, Click | LongPress):
            return pressing or (isinstance(action, Click) and action.count > 1)
        return bool(_keys_of(action) & ({"enter", "space"} if pressing else {"enter"}))

    def finds(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Iterator[str]:
        """Yield the matches of this rule's patterns in the text that an action enters, as the patterns read it."""
        text = spelled(action)
        before, after = situation.typed[-_AROUND:], situation.rest[:_AROUND]
        for pattern in self.patterns:
            if text:
                # A tab or a line end inside a text moves the focus or submits it.
                yield from islice(matches(pattern, text, before, "" if text.isspace() else after), _MOST_FOUND)
            for stands in situation.unjudged:
                yield from islice(matches(pattern, stands), _MOST_FOUND)

    def _opens(self, action: OpenApp, situation: Situation) -> bool:
        if situation.opens == ():  # no such application is installed, which the hand reports
            return False
        names = situation.opens or (action.name,)
        # The display name does not determine what would be started; the desktop file and the program do.
        started = names[1:] or names
        return not self._excepted(started) and self._names({*names, action.name})

    def excepts(self, tool: CallTool) -> bool:
        """Whether the rule is about tools and exempts this one."""
        return "call_tool" in self.actions and self._excepted((tool.name,))

    def _excepted(self, names: Iterable[str]) -> bool:
        return any(fnmatchcase(name.casefold(), one.casefold()) for name in names for one in self.excepted)

    def _names(self, names: Iterable[str]) -> bool:
        return not self.patterns or any(found(one, name) for one in self.patterns for name in names)

    def _is_in(self, place: Place) -> bool:
        site = f"site {place.site}" if place.site else ""  # so that no expression takes it for a program
        return any(found(one, text) for one in self.windows for text in (place.app, place.title, site) if text)


class Allowed(PolicyPart):
    """Where on the desktop the agent may act without approval. All other and unknown places need it."""

    windows: Patterns = ()
    region: Box | None = None

    def objection(self, action: Action[DesktopPoint], situation: Situation) -> str | None:
        """Return why this action is outside, as a clause; None if it is inside, or does not act on the desktop."""
        if isinstance(action, CallTool):
            return None
        if self.windows and not self._in_windows(action, situation):
            return "this is not in a window that the policy allows ([allowed] windows)"
        if self.region is not None and not self._in_region(action, situation, self.region):
            return "this is not in the region that the policy allows ([allowed] region)"
        return None

    def _in_windows(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        if isinstance(action, OpenApp | VisitPage):
            return any(found(one, name) for one in self.windows for name in situation.opens or ())
        needed = [situation.focused] if isinstance(action, TYPING) else [situation.under]
        if isinstance(action, Drag):
            needed.append(situation.origin)
        return all(place is not None and any(found(one, place.app) for one in self.windows) for place in needed)

    @staticmethod
    def _in_region(action: Action[DesktopPoint], situation: Situation, region: Region) -> bool:
        if isinstance(action, TYPING):
            at = situation.focused.region if situation.focused else None
            return at is not None and region.contains(DesktopPoint(at.left + at.width / 2, at.top + at.height / 2))
        if isinstance(action, Drag) and action.start is None:  # from the pointer's position, which is unknown
            return False
        points = points_of(action)
        return bool(points) and all(region.contains(point) for point in points)


def _told_by(fact: Fact, action: Action[DesktopPoint]) -> Sense | None:
    """Return the information that a fact depends on. Places are not needed for the window with the keyboard focus."""
    sense = _TOLD_BY.get(fact)
    return "windows" if sense == "places" and isinstance(action, TYPING) else sense


def _any_found(patterns: Iterable[re.Pattern[str]], texts: Iterable[str]) -> bool:
    """Whether a pattern matches in any text. Each text is searched alone, so that one cannot alter
    another's meaning.
    """
    # "_Yes" is "Yes" with a mnemonic.
    non_empty = [one for text in texts if text for one in dict.fromkeys((text, text.replace("_", "")))]
    return any(found(one, text) for one in patterns for text in non_empty)


def _called(element: Element) -> str:
    return f"{element.role} {element.name or element.label}"


def _names(situation: Situation, *, typing: bool) -> Iterator[str]:
    """Yield the names of the elements that would be hit, except containers, such as a page with its title.

    For typing, text fields do not count either, because keys do not press them.
    """
    place = situation.focused if typing else situation.under
    for element in named_elements(place, situation, typing=typing):
        yield element.name
        yield element.label


def _followed(action: Action[DesktopPoint], situation: Situation) -> str:
    """Return the address of the link that an action follows; "" if it follows none."""
    follows = "enter" in _keys_of(action) or (isinstance(action, Click) and action.button != "right")
    return link_of(situation) if follows else ""


def _keys_of(action: Action[DesktopPoint]) -> frozenset[str]:
    """Return the keys that an action presses. A text presses Enter for a line end, and space if it is only blanks."""
    if isinstance(action, TypeText):
        keys = {"enter": {"\n", "\r"} & set(action.text), "space": action.text.isspace() and " " in action.text}
        return frozenset(key for key, pressed in keys.items() if pressed)
    if not isinstance(action, PressKeys | HoldKeys):
        return frozenset()
    does = {"kp_enter": ("enter",), "altgr": ("altgr", "alt")}
    return frozenset(name for key in action.keys for name in does.get(key, (key,)))
