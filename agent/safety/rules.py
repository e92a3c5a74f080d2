"""Rules of a policy file: read, checked, and matched against an action and what is known of the desktop.

A rule that could never match would look like protection and be none, so it is refused when the file is read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, get_args

from agent.actions import Action, Button, Click, Drag, HoldKeys, OpenApp, PressKeys, TypeText, points_of, to_json
from agent.geometry import DesktopPoint, Region
from agent.keys import chord
from agent.safety.situation import UNKNOWN, Place, Situation
from agent.safety.text import found, spelled
from foundation.errors import UsageError

#: The types of actions that touch the desktop, as `actions.to_json` names them: all that a rule can speak of.
_POINTING = frozenset({"click", "long_press", "move", "drag", "scroll"})
_TYPING = frozenset({"type", "key", "hold"})
_ACTIONS = _POINTING | _TYPING | {"open"}
#: Which conditions say something about which actions.
_CONDITIONS = {
    "keys": frozenset({"key", "hold"}),
    "patterns": frozenset({"type", "open"}),
    "windows": _POINTING | _TYPING,
    "words": _POINTING,
    "buttons": frozenset({"click"}),
    "except": frozenset({"open"}),
}
_FORM = "See docs/safety.md for its form."


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: these actions need a person, where all the conditions hold that it has.

    Args:
        name: what it is called.
        actions: the types of actions that it speaks of.
        reason: why, as a clause.
        keys: chords; an action that presses all keys of one of them.
        patterns: searched in the text that is typed, or in the names of the application that is opened.
        windows: searched in class and title of the window that gets the action.
        words: searched in what is written at the target.
        buttons: mouse buttons.
        excepted: names of applications that may be opened; * stands for anything.
        always: whether a person may allow it for good.
    """

    name: str
    actions: frozenset[str]
    reason: str
    keys: tuple[frozenset[str], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    windows: tuple[re.Pattern[str], ...] = ()
    words: tuple[re.Pattern[str], ...] = ()
    buttons: frozenset[str] = frozenset()
    excepted: tuple[str, ...] = ()
    always: bool = True

    def matches(self, action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> bool:
        """Whether the rule speaks of this action."""
        if not self._speaks_of(action):
            return False
        if _types(action) and self.keys:
            pressed = _pressed(action.keys) if isinstance(action, PressKeys | HoldKeys) else _pressed_in(action)
            if not any(wanted <= pressed for wanted in self.keys):
                return False
        if isinstance(action, OpenApp):
            return self._opens(action, situation)
        if self.patterns and not self._is_entered(spelled(action), situation):
            return False
        if self.windows and not any(self._is_in(place) for place in places(action, situation)):
            return False
        if self.words and not any(found(one, situation.words) for one in self.words if situation.words):
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

    def _is_entered(self, text: str, situation: Situation) -> bool:
        standing = [(situation.typed, situation.judged), *((left, 0) for left in situation.erased)]
        return any(found(one, text, before, judged) for one in self.patterns for before, judged in standing)

    def _opens(self, action: OpenApp, situation: Situation) -> bool:
        if situation.opens == ():  # nothing of that name is installed: the hand will say so
            return False
        names = situation.opens or (action.name,)
        if any(fnmatchcase(name.casefold(), one) for name in names for one in self.excepted):
            return False
        return not self.patterns or any(found(one, name) for one in self.patterns for name in {*names, action.name})

    def _is_in(self, place: Place) -> bool:
        return any(found(one, text) for one in self.windows for text in (place.app, place.title) if text)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where the agent may act without asking; everything else is asked about, also what cannot be told."""

    windows: tuple[re.Pattern[str], ...] = ()
    region: Region | None = None

    def objection(self, action: Action[DesktopPoint], situation: Situation) -> str | None:
        """Why this action is outside, as a clause; None when it is inside."""
        if self.windows and not self._in_windows(action, situation):
            return "this is not in a window that the policy allows ([allowed] windows)"
        if self.region is not None and not self._in_region(action, situation, self.region):
            return "this is not in the region that the policy allows ([allowed] region)"
        return None

    def _in_windows(self, action: Action[DesktopPoint], situation: Situation) -> bool:
        if isinstance(action, OpenApp):
            return any(found(one, name) for one in self.windows for name in situation.opens or ())
        needed = [situation.focused] if _types(action) else [situation.under]
        if to_json(action)["type"] == "drag":
            needed.append(situation.origin)
        return all(place is not None and any(found(one, place.app) for one in self.windows) for place in needed)

    @staticmethod
    def _in_region(action: Action[DesktopPoint], situation: Situation, region: Region) -> bool:
        if _types(action):
            at = situation.focused.region if situation.focused else None
            return at is not None and region.contains(DesktopPoint(at.left + at.width / 2, at.top + at.height / 2))
        if isinstance(action, Drag) and action.start is None:  # from wherever the pointer is
            return False
        points = points_of(action)
        return bool(points) and all(region.contains(point) for point in points)


def places(action: Action[DesktopPoint], situation: Situation) -> list[Place]:
    """The windows that get an action, as far as they are known."""
    known = (situation.focused,) if _types(action) else (situation.under, situation.origin)
    return [place for place in known if place is not None]


def _types(action: Action[DesktopPoint]) -> bool:
    return isinstance(action, TypeText | PressKeys | HoldKeys)


def _pressed(keys: Sequence[str]) -> frozenset[str]:
    """Keys by what they do: the number pad's Enter is Enter, and the right Alt key is Alt where it enters nothing."""
    does = {"kp_enter": ("enter",), "altgr": ("altgr", "alt")}
    return frozenset(name for key in keys for name in does.get(key, (key,)))


def _pressed_in(action: Action[DesktopPoint]) -> frozenset[str]:
    """Keys that typing a text presses besides its characters, and space where there is nothing else."""
    text = action.text if isinstance(action, TypeText) else ""
    enter = {"enter"} if "\n" in text or "\r" in text else set()
    return frozenset(enter | ({"space"} if text.isspace() and " " in text else set()))


def read_policy(data: Mapping[str, Any], where: str) -> tuple[tuple[Rule, ...], Allowed]:
    """The rules and limits of a parsed policy file. Raises UsageError naming what is wrong."""
    if unknown := sorted(set(data) - {"rules", "allowed", "groups"}):
        raise UsageError(f"In {where}, {unknown[0]!r} is not known: it has [[rules]], [allowed] and [groups].", _FORM)
    rules, groups = data.get("rules", []), data.get("groups", {})
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise UsageError(f"In {where}, [[rules]] must be tables.", _FORM)
    if not isinstance(groups, dict) or not all(isinstance(group, list) for group in groups.values()):
        raise UsageError(f"In {where}, [groups] must hold lists.", _FORM)
    read = tuple(
        _read_rule(_resolved(entry, groups), f"rule {number} of {where}") for number, entry in enumerate(rules, 1)
    )
    return read, _read_allowed(_resolved(data.get("allowed", {}), groups), where)


def _resolved(entry: Any, groups: Mapping[str, list[Any]]) -> Any:
    """The entry with the lists that it calls by name; a name that is no group stays, and is refused as no list."""
    if not isinstance(entry, dict):
        return entry
    return {
        key: groups.get(value, value) if key in _CONDITIONS and isinstance(value, str) else value
        for key, value in entry.items()
    }


def _read_rule(entry: Mapping[str, Any], where: str) -> Rule:
    try:
        _check_names(entry, {"name", "action", "reason", "always", *_CONDITIONS})
        rule = Rule(
            name=_words(entry["name"], "name"),
            actions=_read_actions(entry["action"]),
            reason=_words(entry["reason"], "reason"),
            keys=tuple(_read_chord(written) for written in _list(entry, "keys")),
            patterns=_patterns(entry, "patterns"),
            windows=_patterns(entry, "windows"),
            words=_patterns(entry, "words"),
            buttons=_read_buttons(entry),
            excepted=tuple(_words(name, "except").casefold() for name in _list(entry, "except")),
            always=_flag(entry.get("always", True)),
        )
        _check_conditions(rule.actions, entry)
    except KeyError as error:
        raise UsageError(f"In {where}, {error} is missing.", "A rule needs name, action and reason.") from error
    except (TypeError, ValueError, re.error) as error:  # ValueError also from an unknown key
        raise UsageError(f"In {where}, something is wrong: {error}.", _FORM) from error
    return rule


def _read_allowed(entry: Any, where: str) -> Allowed:
    try:
        if not isinstance(entry, dict):
            raise TypeError("[allowed] must be a table")
        _check_names(entry, {"windows", "region"})
        region = _list(entry, "region")
        if region and (len(region) != 4 or any(type(number) is not int for number in region) or min(region[2:]) < 1):
            raise ValueError("a region is [left, top, width, height] in whole numbers")
        return Allowed(_patterns(entry, "windows"), Region(*region) if region else None)
    except (TypeError, ValueError, re.error) as error:
        raise UsageError(f"In {where}, something is wrong in [allowed]: {error}.", _FORM) from error


def _check_names(entry: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(entry) - known):
        raise ValueError(f"{unknown[0]!r} is not known (known are: {', '.join(sorted(known))})")


def _check_conditions(actions: frozenset[str], entry: Mapping[str, Any]) -> None:
    """Raise ValueError for a condition that could never hold for one of the rule's actions."""
    for condition, about in _CONDITIONS.items():
        if condition in entry and (silent := sorted(actions - about)):
            raise ValueError(f"{condition} say nothing about the action {silent[0]!r}")


def _read_actions(written: Any) -> frozenset[str]:
    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not names:
        raise TypeError("action must be a name, or a list of names")
    for name in names:
        if name not in _ACTIONS:
            raise ValueError(f"{name!r} is no action (actions are: {', '.join(sorted(_ACTIONS))})")
    return frozenset(names)


def _read_buttons(entry: Mapping[str, Any]) -> frozenset[str]:
    buttons = _list(entry, "buttons")
    for button in buttons:
        if button not in get_args(Button):
            raise ValueError(f"{button!r} is no mouse button (they are: {', '.join(get_args(Button))})")
    return frozenset(buttons)


def _patterns(entry: Mapping[str, Any], name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in _list(entry, name))


def _list(entry: Mapping[str, Any], name: str) -> list[Any]:
    value = entry.get(name, [])
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list, or the name of one in [groups]")
    if name in entry and not value and name != "except":
        raise ValueError(f"{name} is an empty list: leave it out if it is no condition")
    return value


def _read_chord(written: Any) -> frozenset[str]:
    """A chord as a person may write it, a list of names, in canonical names."""
    if not isinstance(written, list) or not written:
        raise TypeError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return frozenset("enter" if name == "kp_enter" else name for name in chord([str(one) for one in written]))


def _words(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{name} must be a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("always must be true or false")
    return value
