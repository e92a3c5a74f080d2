"""What calls of `computer_use` and its kin mean: the arguments of one call, turned into one action.

Covers the desktop's actions under the names that Qwen-VL's descendants give them, the phone's of MAI-UI
(Tongyi-MAI/MAI-UI, src/prompt.py), and its later AWAKE and INFO. Every refusal is an `ArgumentError` whose text goes
back to the model.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.actions import (
    Action,
    Answer,
    AskUser,
    Button,
    CallTool,
    Click,
    Drag,
    Finish,
    HoldKeys,
    LongPress,
    Move,
    OpenApp,
    PressKeys,
    Scroll,
    TypeText,
    Wait,
)
from agent.families.base import ArgumentError, Call
from agent.families.points import PointError, read_pair, read_point
from agent.geometry import Grid, GridPoint
from agent.keys import UnknownKeyError, chord

_CLICKS: dict[str, tuple[Button, int]] = {
    "click": ("left", 1), "left_click": ("left", 1), "tap": ("left", 1),
    "double_click": ("left", 2), "double_tap": ("left", 2), "triple_click": ("left", 3),
    "right_click": ("right", 1), "middle_click": ("middle", 1),
}  # fmt: skip
_SUCCESS = frozenset({"success", "succeed", "succeeded", "successful", "complete", "completed", "done", "finished"})
_FAILURE = frozenset({"fail", "failed", "failure", "infeasible", "impossible", "error"})
_OTHER_NAMES = {
    "awake": "open", "open_app": "open", "launch": "open",
    "info": "ask_user", "call_user": "ask_user",
    "mouse_move": "move", "hover": "move", "left_click_drag": "drag",
    "input_text": "type", "press_key": "key", "hotkey": "key", "press": "key", "key_press": "key",
    "hold": "hold_key", "finish": "terminate", "finished": "terminate",
}  # fmt: skip

#: Every action name that a call may carry; a call under any other name is a tool call.
ACTION_NAMES = (
    frozenset(_CLICKS)
    | frozenset(_OTHER_NAMES)
    | frozenset(
        {"long_press", "move", "drag", "swipe", "scroll", "type", "key", "hold_key", "open"}
        | {"wait", "terminate", "answer", "ask_user", "system_button"}
    )
)

#: The function names under which actions are called.
FUNCTIONS = frozenset({"mobile_use", "computer_use"})

_MAX_NOTCHES = 50
_MAX_SECONDS = 60.0


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
        swipe = data.get("swipe", {})
        return cls(
            grid=grid,
            swipe_notches=swipe.get("notches", 5),
            swipe_turns={name: turn for name, turn in swipe.items() if name != "notches"},
            system_buttons={name: tuple(keys) for name, keys in data.get("system_button", {}).items()},
        )


def read_call(call: Call, words: Vocabulary) -> Action[GridPoint]:
    """The action of a call: one of the desktop, or under any other function's name a tool's. Raises ArgumentError."""
    if call.name in FUNCTIONS:
        return read_action(call.arguments, words)
    return CallTool(call.name, dict(call.arguments))


def read_action(arguments: Mapping[str, Any], words: Vocabulary) -> Action[GridPoint]:
    """The action of one call's arguments.

    Raises:
        ArgumentError: the action is unknown or an argument does not fit.
    """
    written = arguments.get("action")
    if not isinstance(written, str) or not written.strip():
        raise ArgumentError("bad_argument", 'the call has no "action"')
    name = written.strip().lower().replace("-", "_").replace(" ", "_")
    name = _OTHER_NAMES.get(name, name)
    if name in _CLICKS:
        button, count = _CLICKS[name]
        return Click(_point(arguments, words.grid), button, count)
    match name:
        case "long_press":
            return LongPress(_point(arguments, words.grid), _seconds(arguments, 1.0))
        case "move":
            return Move(_point(arguments, words.grid))
        case "drag":
            return _drag(arguments, words.grid)
        case "swipe":
            return _swipe(arguments, words)
        case "scroll":
            return _scroll(arguments, words)
        case "type":
            return TypeText(_text(arguments, name, strip=False))
        case "key":
            return PressKeys(_keys(arguments))
        case "hold_key":
            return HoldKeys(_keys(arguments), _seconds(arguments, 1.0))
        case "open":
            return OpenApp(_text(arguments, name, strip=True))
        case "wait":
            return Wait(_seconds(arguments, 1.0))
        case "answer":
            return Answer(_text(arguments, name, strip=True))
        case "ask_user":
            return AskUser(_text(arguments, name, strip=True))
        case "terminate":
            return _terminate(arguments)
        case "system_button":
            return _system_button(arguments, words)
    raise ArgumentError("unknown_action", f"there is no action {written[:40]!r}")


def _point(arguments: Mapping[str, Any], grid: Grid, *names: str) -> GridPoint:
    for name in names or ("coordinate", "point", "position"):
        if arguments.get(name) is not None:
            return _as_point(arguments[name], grid)
    raise ArgumentError("bad_point", f'"{(names or ("coordinate",))[0]}" is missing')


def _as_point(value: Any, grid: Grid) -> GridPoint:
    try:
        return read_point(value, grid)
    except PointError as error:
        raise ArgumentError("off_screen" if error.reason == "off_screen" else "bad_point", str(error)) from error


def _optional_point(arguments: Mapping[str, Any], grid: Grid) -> GridPoint | None:
    value = arguments.get("coordinate")
    return None if value is None or value in ([], "") else _as_point(value, grid)


def _drag(arguments: Mapping[str, Any], grid: Grid) -> Drag[GridPoint]:
    end_names: tuple[str, ...] = ("end_coordinate", "end", "coordinate2")
    if arguments.get("start_coordinate") is not None:  # then a bare "coordinate" is where the drag ends
        end_names = (*end_names, "coordinate")
    if all(arguments.get(name) is None for name in end_names):  # only "coordinate": drag from the pointer to there
        return Drag(None, _point(arguments, grid))
    return Drag(_point(arguments, grid, "start_coordinate", "start", "coordinate"), _point(arguments, grid, *end_names))


def _swipe(arguments: Mapping[str, Any], words: Vocabulary) -> Scroll[GridPoint]:
    turn = words.swipe_turns.get(_direction(arguments))
    if turn is None:
        raise ArgumentError("bad_argument", "a swipe needs a direction: up, down, left or right")
    return _turn(turn, words.swipe_notches, _optional_point(arguments, words.grid))


def _scroll(arguments: Mapping[str, Any], words: Vocabulary) -> Scroll[GridPoint]:
    direction = _direction(arguments)
    if direction not in ("up", "down", "left", "right"):
        raise ArgumentError("bad_argument", "scroll needs a direction: up, down, left or right")
    notches = round(_amount(arguments, ("amount", "notches", "clicks"), words.swipe_notches, _MAX_NOTCHES))
    return _turn(direction, max(1, notches), _optional_point(arguments, words.grid))


def _turn(direction: str, notches: int, point: GridPoint | None) -> Scroll[GridPoint]:
    dx, dy = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}[direction]
    return Scroll(point, dx * notches, dy * notches)


def _direction(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("direction", ""))[:20].strip().lower()


def _text(arguments: Mapping[str, Any], action: str, *, strip: bool) -> str:
    value = next((arguments[name] for name in ("text", "content", "value") if arguments.get(name) is not None), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ArgumentError("bad_argument", f'{action} needs "text"')
    text = "".join(char for char in value if char in "\n\t" or unicodedata.category(char) != "Cc")
    if strip:
        text = text.strip()
    if not text:
        raise ArgumentError("bad_argument", f'{action} needs a "text" that is not empty')
    return text


def _keys(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    value = next((arguments[name] for name in ("keys", "key", "text") if arguments.get(name) is not None), None)
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


def _seconds(arguments: Mapping[str, Any], default: float) -> float:
    return _amount(arguments, ("seconds", "time", "duration"), default, _MAX_SECONDS)


def _amount(arguments: Mapping[str, Any], names: tuple[str, ...], default: float, most: float) -> float:
    value = next((arguments[name] for name in names if arguments.get(name) is not None), None)
    if value is None:
        return default
    try:
        amount, _ = read_pair([value, 0])
    except PointError as error:
        raise ArgumentError("bad_argument", f'"{names[0]}" must be a number') from error
    if amount < 0:
        raise ArgumentError("bad_argument", f'"{names[0]}" must not be negative')
    return min(amount, most)


def _terminate(arguments: Mapping[str, Any]) -> Finish:
    status = str(arguments.get("status", ""))[:40].strip().lower()
    message = arguments.get("text") or arguments.get("message") or ""
    message = message[:4000] if isinstance(message, str) else ""
    if status in _SUCCESS:
        return Finish(True, message)
    if status in _FAILURE:
        return Finish(False, message)
    raise ArgumentError("bad_argument", 'terminate needs a "status": success or fail')


def _system_button(arguments: Mapping[str, Any], words: Vocabulary) -> PressKeys:
    button = str(arguments.get("button", ""))[:20].strip().lower()
    if button not in words.system_buttons:
        raise ArgumentError("bad_argument", f"there is no button {button!r}: use back, home, menu or enter")
    return PressKeys(words.system_buttons[button])
