"""What calls of `computer_use` and its kin mean: the arguments of one call, turned into one action.

Covers the desktop's actions under the names that Qwen-VL's descendants give them, the phone's of MAI-UI
(Tongyi-MAI/MAI-UI, src/prompt.py), and its later AWAKE and INFO; the names are in `computer_use.toml`. Every refusal is
an `ArgumentError` whose text goes back to the model.
"""

import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import actions
from agent.actions import Action
from agent.families.base import ArgumentError, Call
from agent.families.points import PointError, read_pair, read_point
from agent.geometry import Grid, GridPoint
from agent.keys import UnknownKeyError, chord

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: The function names under which actions are called.
FUNCTIONS = frozenset(_WORDS["functions"])

_MAX_NOTCHES = 50
_MAX_SECONDS = 60.0
_DIRECTIONS = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A family's data for reading calls: its grid, and what phone gestures mean on a desktop."""

    grid: Grid
    swipe_notches: int = 5
    swipe_turns: Mapping[str, str] = field(default_factory=dict)
    system_buttons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any], grid: Grid) -> "Vocabulary":
        """As a `family.toml` has it in its tables `swipe` and `system_button`; without them, those are unknown."""
        turns = dict(data.get("swipe", {}))
        buttons = {name: tuple(keys) for name, keys in data.get("system_button", {}).items()}
        return cls(grid, turns.pop("notches", 5), turns, buttons)


def read_call(call: Call, words: Vocabulary) -> Action[GridPoint]:
    """The action of a call: one of the desktop, or under any other function's name a tool's. Raises ArgumentError."""
    if call.name in FUNCTIONS:
        return read_action(call.arguments, words)
    return actions.CallTool(call.name, dict(call.arguments))


def read_action(arguments: Mapping[str, Any], words: Vocabulary) -> Action[GridPoint]:
    """The action of one call's arguments. Raises ArgumentError: it is unknown, or an argument does not fit."""
    written = arguments.get("action")
    if not isinstance(written, str) or not written.strip():
        raise ArgumentError("bad_argument", 'the call has no "action"')
    name = written.strip().lower().replace("-", "_").replace(" ", "_")
    name = _WORDS["other_names"].get(name, name)
    call = _Arguments(name, arguments, words)
    if name in _WORDS["clicks"]:
        return actions.Click(call.point(), *_WORDS["clicks"][name])
    if name in _ACTIONS:
        return _ACTIONS[name](call)
    raise ArgumentError("unknown_action", f"there is no action {written[:40]!r}")


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call of an action, each read as what it has to be."""

    action: str
    values: Mapping[str, Any]
    words: Vocabulary

    def first(self, *names: str) -> Any:
        """What the first of these names that is there has; None without any."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def point(self, *names: str) -> GridPoint:
        names = names or ("coordinate", "point", "position")
        value = self.first(*names)
        if value is None:
            raise ArgumentError("bad_point", f'"{names[0]}" is missing')
        try:
            return read_point(value, self.words.grid)
        except PointError as error:
            raise ArgumentError("off_screen" if error.reason == "off_screen" else "bad_point", str(error)) from error

    def text(self, *, strip: bool = True) -> str:
        value = self.first("text", "content", "value")
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise ArgumentError("bad_argument", f'{self.action} needs "text"')
        text = "".join(char for char in value if char in "\n\t" or unicodedata.category(char) != "Cc")
        text = text.strip() if strip else text
        if not text:
            raise ArgumentError("bad_argument", f'{self.action} needs a "text" that is not empty')
        return text

    def called(self, name: str, most: int = 200) -> str:
        value = self.values.get(name)
        return "".join(char for char in value if char.isprintable())[:most].strip() if isinstance(value, str) else ""

    def word(self, name: str, most: int = 20) -> str:
        return str(self.values.get(name, ""))[:most].strip().lower()

    def keys(self) -> tuple[str, ...]:
        value = self.first("keys", "key", "text")
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            keys: str | list[str] = value[:8]
        elif isinstance(value, str) and value:
            keys = value[:200]
        else:
            raise ArgumentError("bad_argument", 'a key press needs "keys", for example "ctrl+s"')
        try:
            return chord(keys)
        except UnknownKeyError as error:
            raise ArgumentError("bad_argument", str(error)) from error

    def seconds(self) -> float:
        return self.amount("seconds", "time", "duration", default=1.0, most=_MAX_SECONDS)

    def amount(self, *names: str, default: float, most: float) -> float:
        value = self.first(*names)
        if value is None:
            return default
        try:
            amount, _ = read_pair([value, 0])
        except PointError as error:
            raise ArgumentError("bad_argument", f'"{names[0]}" must be a number') from error
        if amount < 0:
            raise ArgumentError("bad_argument", f'"{names[0]}" must not be negative')
        return min(amount, most)


def _drag(call: _Arguments) -> Action[GridPoint]:
    ends: tuple[str, ...] = ("end_coordinate", "end", "coordinate2")
    if call.first("start_coordinate") is not None:  # then a bare "coordinate" is where the drag ends
        ends = (*ends, "coordinate")
    if call.first(*ends) is None:  # only "coordinate": drag from the pointer to there
        return actions.Drag(None, call.point())
    return actions.Drag(call.point("start_coordinate", "start", "coordinate"), call.point(*ends))


def _swipe(call: _Arguments) -> Action[GridPoint]:
    turn = call.words.swipe_turns.get(call.word("direction"))
    if turn is None:
        raise ArgumentError("bad_argument", "a swipe needs a direction: up, down, left or right")
    return _turned(call, turn, call.words.swipe_notches)


def _scroll(call: _Arguments) -> Action[GridPoint]:
    direction = call.word("direction")
    if direction not in _DIRECTIONS:
        raise ArgumentError("bad_argument", "scroll needs a direction: up, down, left or right")
    usual = call.words.swipe_notches
    notches = round(call.amount("amount", "notches", "clicks", default=usual, most=_MAX_NOTCHES))
    return _turned(call, direction, max(1, notches))


def _turned(call: _Arguments, direction: str, notches: int) -> Action[GridPoint]:
    dx, dy = _DIRECTIONS[direction]
    point = None if call.values.get("coordinate") in (None, [], "") else call.point("coordinate")
    return actions.Scroll(point, dx * notches, dy * notches)


def _terminate(call: _Arguments) -> Action[GridPoint]:
    status = call.word("status", 40)
    message = call.values.get("text") or call.values.get("message") or ""
    if status not in (*_WORDS["success"], *_WORDS["failure"]):
        raise ArgumentError("bad_argument", 'terminate needs a "status": success or fail')
    return actions.Finish(status in _WORDS["success"], message[:4000] if isinstance(message, str) else "")


def _system_button(call: _Arguments) -> Action[GridPoint]:
    button = call.word("button")
    if button not in call.words.system_buttons:
        raise ArgumentError("bad_argument", f"there is no button {button!r}: use back, home, menu or enter")
    return actions.PressKeys(call.words.system_buttons[button])


_ACTIONS: dict[str, Callable[[_Arguments], Action[GridPoint]]] = {
    "long_press": lambda call: actions.LongPress(call.point(), call.seconds()),
    "move": lambda call: actions.Move(call.point()),
    "drag": _drag,
    "swipe": _swipe,
    "scroll": _scroll,
    "type": lambda call: actions.TypeText(call.text(strip=False)),
    "key": lambda call: actions.PressKeys(call.keys()),
    "hold_key": lambda call: actions.HoldKeys(call.keys(), call.seconds()),
    "open": lambda call: actions.OpenApp(call.text(), call.called("application")),
    "wait": lambda call: actions.Wait(call.seconds()),
    "answer": lambda call: actions.Answer(call.text()),
    "ask_user": lambda call: actions.AskUser(call.text()),
    "terminate": _terminate,
    "system_button": _system_button,
}

#: Every action name that a call may carry; a call under any other name is a tool call.
ACTION_NAMES = frozenset([*_ACTIONS, *_WORDS["clicks"], *_WORDS["other_names"]])
