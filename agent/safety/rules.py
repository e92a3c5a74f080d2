"""Rules of a policy: their form in a policy file, and how they match an action and what is known of the desktop.

A rule that could never match would look like protection and be none, so it is refused when it is read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationInfo, model_validator

from agent.actions import TYPING, Action, Button, CallTool, Click, Drag, OpenApp, TypeText, points_of, to_json
from agent.geometry import DesktopPoint, Region
from agent.keys import chord
from agent.safety.situation import UNKNOWN, Place, Situation
from agent.safety.text import found, matches, spelled
from agent.screen.outline import Element

#: The types of actions that a rule can speak of, as `actions.to_json` names them.
_ActionName: TypeAlias = Literal[
    "click", "long_press", "move", "drag", "scroll", "type", "key", "hold", "open", "call_tool"
]
_POINTING = frozenset({"click", "long_press", "move", "drag", "scroll"})
#: Roles of what holds other elements, or text: their names say nothing about a click on them.
_HOLDING = frozenset(
    {
        "application", "desktop frame", "dialog", "file chooser", "filler", "form", "frame", "glass pane", "grouping",
        "html container", "internal frame", "landmark", "layered pane", "list", "list box", "menu bar", "page tab list",
        "panel", "paragraph", "root pane", "scroll pane", "split pane", "status bar", "table", "terminal", "text",
        "tool bar", "tree", "tree table", "viewport", "window",
    }
)  # fmt: skip
#: Which conditions say something about which actions.
_CONDITIONS: dict[str, frozenset[str]] = {
    "keys": frozenset({"key", "hold"}),
    "patterns": frozenset({"type", "open", "call_tool"}),
    "windows": _POINTING | {"type", "key", "hold"},
    "words": _POINTING,
    "elements": _POINTING | {"type", "key", "hold"},
    "buttons": frozenset({"click"}),
    "excepted": frozenset({"open", "call_tool"}),
}

#: Pieces of a text that are told for each pattern.
_MOST_FOUND = 20

T = TypeVar("T")


def _pattern(written: Any) -> re.Pattern[str]:
    try:
        return re.compile(written, re.IGNORECASE)
    except (TypeError, re.error) as error:
        raise ValueError(f"{written!r} is no regular expression ({error})") from error


def _chord(written: Any) -> frozenset[str]:
    """A chord as a person may write it, a list of names, in canonical names."""
    if not isinstance(written, list) or not written:
        raise ValueError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return frozenset("enter" if name == "kp_enter" else name for name in chord([str(one) for one in written]))


def _region(written: Any) -> Region:
    if isinstance(written, list) and [type(number) for number in written] == [int] * 4 and min(written[2:]) > 0:
        return Region(*written)
    raise ValueError("it must be [left, top, width, height] in whole numbers")


def _named(written: Any, info: ValidationInfo) -> Any:
    """The list of [groups] that is called by name; any other name stays, and is refused as no list."""
    return info.context.get(written, written) if isinstance(written, str) and info.context else written


_Text = Annotated[str, Field(pattern=r"\S")]
#: A condition; an empty list is a mistake, because it would be none.
_Some = Annotated[tuple[T, ...], Field(min_length=1), BeforeValidator(_named)]
_Patterns = _Some[Annotated[re.Pattern[str], BeforeValidator(_pattern)]]


class PolicyPart(BaseModel):
    """A table of a policy file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(PolicyPart):
    """One rule: these actions need a person, where all the conditions hold that it has."""

    name: _Text
    actions: Annotated[
        frozenset[_ActionName],
        Field(alias="action", min_length=1),
        BeforeValidator(lambda written: [written] if isinstance(written, str) else written),
    ]
    reason: _Text  # as a clause
    keys: _Some[Annotated[frozenset[str], BeforeValidator(_chord)]] = ()  # chords: all keys of one of them are pressed
    patterns: _Patterns = ()  # searched in the text that is typed, or in the names of the application or tool
    windows: _Patterns = ()  # searched in class and title of the window that gets the action
    words: _Patterns = ()  # searched in what is written at the target, and in the names of what would be hit there
    elements: _Patterns = ()  # searched in role and name of what would be hit, or gets what is typed: push button Save
    buttons: _Some[Button] = ()
    #: Names of applications that may be opened, or of tools that may be called; * stands for anything.
    excepted: Annotated[tuple[_Text, ...], Field(alias="except"), BeforeValidator(_named)] = ()
    always: StrictBool = True  # whether a person may allow it for good

    @model_validator(mode="after")
    def _no_idle_condition(self) -> Self:
        """Refuse a condition that could never hold for one of the rule's actions."""
        for condition, about in _CONDITIONS.items():
            if condition in self.model_fields_set and (silent := sorted(self.actions - about)):
                written = type(self).model_fields[condition].alias or condition
                raise ValueError(f"{written} say nothing about the action {silent[0]!r}")
        return self

    def matches(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> bool:
        """Whether the rule speaks of this action."""
        if not self._speaks_of(action):
            return False
        if isinstance(action, TYPING) and self.keys:
            pressed = _pressed_in(action.text) if isinstance(action, TypeText) else _pressed(action.keys)
            if not any(wanted <= pressed for wanted in self.keys):
                return False
        if isinstance(action, OpenApp):
            return self._opens(action, situation)
        if isinstance(action, CallTool):
            return not self.excepts(action) and self._names((action.name,))
        if self.patterns and not self._is_entered(action, situation):
            return False
        places = (situation.focused,) if isinstance(action, TYPING) else (situation.under, situation.origin)
        if self.windows and not any(self._is_in(place) for place in places if place is not None):
            return False
        if self.words and not _any_found(self.words, (situation.words, *_names(situation))):
            return False
        if self.elements and not _any_found(self.elements, map(_called, situation.elements)):
            return False
        return not self.buttons or (isinstance(action, Click) and action.button in self.buttons)

    def _speaks_of(self, action: Action[DesktopPoint]) -> bool:
        kind = to_json(action)["type"]
        if kind in self.actions or (kind == "hold" and "key" in self.actions):  # a key that is held was pressed first
            return True
        if isinstance(action, TypeText) and self.keys and "key" in self.actions:  # a line end is Enter
            return True
        # Keys pressed one by one are a text as well.
        return "type" in self.actions and bool(self.patterns) and bool(spelled(action))

    def finds(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Iterator[str]:
        """The pieces of the text that an action enters in which a pattern of this rule is found, as they are read."""
        text = spelled(action)
        standing = [(situation.typed, situation.judged), *((left, 0) for left in situation.erased)]
        for pattern in self.patterns if text else ():
            for before, judged in standing:
                yield from islice(matches(pattern, text, before, judged), _MOST_FOUND)

    def _is_entered(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        return next(self.finds(action, situation), None) is not None

    def _opens(self, action: OpenApp, situation: Situation) -> bool:
        if situation.opens == ():  # nothing of that name is installed: the hand will say so
            return False
        names = situation.opens or (action.name,)
        return not self._excepted(names) and self._names({*names, action.name})

    def excepts(self, tool: CallTool) -> bool:
        """Whether the rule speaks of tools, and lets this one be called."""
        return "call_tool" in self.actions and self._excepted((tool.name,))

    def _excepted(self, names: Iterable[str]) -> bool:
        return any(fnmatchcase(name.casefold(), one.casefold()) for name in names for one in self.excepted)

    def _names(self, names: Iterable[str]) -> bool:
        return not self.patterns or any(found(one, name) for one in self.patterns for name in names)

    def _is_in(self, place: Place) -> bool:
        return any(found(one, text) for one in self.windows for text in (place.app, place.title) if text)


class Allowed(PolicyPart):
    """Where on the desktop the agent may act without asking; all other places are asked about, also unknown ones."""

    windows: _Patterns = ()
    region: Annotated[Region | None, BeforeValidator(_region)] = None

    def objection(self, action: Action[DesktopPoint], situation: Situation) -> str | None:
        """Why this action is outside, as a clause; None when it is inside, or touches no desktop."""
        if isinstance(action, CallTool):
            return None
        if self.windows and not self._in_windows(action, situation):
            return "this is not in a window that the policy allows ([allowed] windows)"
        if self.region is not None and not self._in_region(action, situation, self.region):
            return "this is not in the region that the policy allows ([allowed] region)"
        return None

    def _in_windows(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        if isinstance(action, OpenApp):
            return any(found(one, name) for one in self.windows for name in situation.opens or ())
        needed = [situation.focused] if isinstance(action, TYPING) else [situation.under]
        if to_json(action)["type"] == "drag":
            needed.append(situation.origin)
        return all(place is not None and any(found(one, place.app) for one in self.windows) for place in needed)

    @staticmethod
    def _in_region(action: Action[DesktopPoint], situation: Situation, region: Region) -> bool:
        if isinstance(action, TYPING):
            at = situation.focused.region if situation.focused else None
            return at is not None and region.contains(DesktopPoint(at.left + at.width / 2, at.top + at.height / 2))
        if isinstance(action, Drag) and action.start is None:  # from wherever the pointer is
            return False
        points = points_of(action)
        return bool(points) and all(region.contains(point) for point in points)


def _any_found(patterns: Iterable[re.Pattern[str]], texts: Iterable[str]) -> bool:
    """Whether a pattern is found in a text, each by itself: one text must not change what another says."""
    told = [text for text in texts if text]
    return any(found(one, text) for one in patterns for text in told)


def _called(element: Element) -> str:
    """Role and name as `elements` searches them."""
    return f"{element.role} {element.name or element.label}"


def _names(situation: Situation) -> Iterator[str]:
    """What the elements are called that would be hit, but for those that hold others: a page is called by its title."""
    for element in situation.elements:
        if element.role not in _HOLDING and not element.role.startswith("document"):
            yield element.name
            yield element.label


def _pressed(keys: Sequence[str]) -> frozenset[str]:
    """Keys by what they do: the number pad's Enter is Enter, and the right Alt key is Alt where it enters nothing."""
    does = {"kp_enter": ("enter",), "altgr": ("altgr", "alt")}
    return frozenset(name for key in keys for name in does.get(key, (key,)))


def _pressed_in(text: str) -> frozenset[str]:
    """Keys that typing a text presses besides its characters, and space where there is nothing else."""
    enter = {"enter"} if "\n" in text or "\r" in text else set()
    return frozenset(enter | ({"space"} if text.isspace() and " " in text else set()))
