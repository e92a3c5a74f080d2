"""Converts the arguments of one `computer_use` call, or of a similar function, to an action.

It knows the desktop's actions under the names of Qwen-VL's descendants (with held keys and buttons, web steps and
notes), the phone's actions of MAI-UI (Tongyi-MAI/MAI-UI, src/prompt.py), and the later names AWAKE and INFO. The names
are in `computer_use.toml`. Every `ArgumentError` text goes back to the model.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from agent.core import actions
from agent.core.actions import Action
from agent.core.geometry import Grid, GridPoint
from agent.core.keys import MODIFIERS, UnknownKeyError, chord
from agent.families.base import ArgumentError, Call
from agent.families.shared.points import PointError, read_pair, read_point
from foundation.configs import load_config

_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: The function names under which models call actions.
FUNCTIONS = frozenset(_WORDS["functions"])

#: Clicks by their names, with button and count.
CLICKS: Mapping[str, tuple[actions.Button, int]] = _WORDS["clicks"]

#: Arguments of a click. Any other argument may be a misnamed point, so that click is not made at the pointer.
_OF_CLICKS = {"action", "coordinate", "point", "position", "button", "text", "modifiers", "duration", "interval"}

_MAX_NOTCHES = 50
_MAX_SECONDS = 60.0
_MAX_ADDRESS = 4000
_DIRECTIONS: Mapping[str, tuple[int, int]] = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
# A scheme before an address, such as "https://" or "about:", but not a host with a port ("localhost:8000").
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?:/|(?![0-9]))", re.IGNORECASE)
_LOCAL = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?:[:/]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A family's data for parsing calls."""

    grid: Grid  # the grid of its points
    system_buttons: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the key chords for a phone's buttons
    #: units of a scroll by `pixels` per notch (positive: up, and right)
    pixels_per_notch: float = _WORDS["pixels_per_notch"]
    pixels_per_side_notch: float = 0  # the same sideways; 0 if equal
    notches: int = 0  # fixed notches of a scroll by `pixels`; 0 to use the amount
    from_middle: bool = False  # whether a scroll without a point is at the middle of the screen, not at the pointer
    at_pointer: bool = False  # whether a click may omit its point, and then is at the pointer
    held_in_text: bool = False  # whether the `text` of a click, drag or scroll names the held modifier keys
    status: str = ""  # the status of a `terminate` without one; "" if it is required
    wait_seconds: float = 1.0  # the duration of a wait without one
    question: str = ""  # the question of a call without one; "" if it is required
    replaces: bool = False  # whether typing replaces the old text if the call does not say
    enters: bool = False  # whether typing presses Enter afterwards if the call does not say
    unescapes: bool = False  # whether typed text contains escape sequences, such as a backslash and an n for a newline
    names: Mapping[str, str] = field(default_factory=dict)  # the family's own names for actions, before the shared ones
    calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the family's own calls; see `own_names`
    arguments: Mapping[str, str] = field(default_factory=dict)  # the family's own names for arguments of all calls

    @classmethod
    def of(cls, data: Mapping[str, Any], grid: Grid) -> "Vocabulary":
        """Read the vocabulary from the tables `reading`, `calls` and `arguments` of a `family.toml`."""
        calls = {name.lower(): means for name, means in data.get("calls", {}).items()}
        return cls(grid, calls=calls, arguments=data.get("arguments", {}), **data.get("reading", {}))


def read_call(call: Call, words: Vocabulary) -> Action[GridPoint]:
    """Return the action of a call: a desktop action, or a tool call for any other function name.

    Raises ArgumentError.
    """
    if call.name in FUNCTIONS:
        return read_action(call.arguments, words)
    return actions.CallTool(call.name, dict(call.arguments))


def with_point(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with the two numbers of a point, if they are apart, as one."""
    if "coordinate" in arguments or (arguments.get("x") is None and arguments.get("y") is None):
        return arguments
    rest = {name: value for name, value in arguments.items() if name not in ("x", "y")}
    x, y = arguments.get("x"), arguments.get("y")
    if isinstance(x, list) and y is None:
        return {**rest, "coordinate": x}
    if x is None or y is None:
        raise ArgumentError("bad_point", f'"{"x" if x is None else "y"}" of the point is missing')
    return {**rest, "coordinate": {"x": x, "y": y}}


def read_action(arguments: Mapping[str, Any], words: Vocabulary) -> Action[GridPoint]:
    """Return the action of a call's arguments. Raises ArgumentError: it is unknown, or an argument is invalid."""
    arguments = with_point(arguments)
    written = arguments.get("action")
    if not isinstance(written, str) or not written.strip():
        raise ArgumentError("bad_argument", 'the call has no "action"')
    name = written.strip().lower().replace("-", "_").replace(" ", "_")
    name = words.names.get(name, name)
    name = _WORDS["other_names"].get(name, name)
    call = _Arguments(name, arguments, words)
    if name in _WORDS["clicks"]:
        button, count = _WORDS["clicks"][name]
        point = call.point_if_any() if words.at_pointer and call.values.keys() <= _OF_CLICKS else call.point()
        return actions.Click(point, call.button() if name == "click" else button, count, call.held())
    if name in _WORDS["button_downs"]:
        return actions.ButtonDown(call.point_if_any(), call.button(_WORDS["button_downs"][name]))
    if name in _WORDS["button_ups"]:
        return actions.ButtonUp(call.point_if_any(), call.button(_WORDS["button_ups"][name]))
    if name in _WORDS["chords"]:
        return actions.PressKeys(chord(_WORDS["chords"][name]))
    if name in _ACTIONS:
        return _ACTIONS[name](call)
    raise ArgumentError("unknown_action", f"there is no action {written[:40]!r}")


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call, with a parser for each type."""

    action: str
    values: Mapping[str, Any]
    words: Vocabulary

    def first(self, *names: str) -> Any:
        """Return the value of the first of these names that is present; None without any."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def point(self, *names: str) -> GridPoint:
        names = names or ("coordinate", "point", "position")
        value = self.first(*names)
        if value is None:
            raise ArgumentError("bad_point", f'"{names[0]}" is missing')
        return read_point(value, self.words.grid)

    def point_if_any(self) -> GridPoint | None:
        """Return the point of an action that may omit it: then the pointer's position is used."""
        return None if self.first("coordinate", "point", "position") in (None, [], "") else self.point()

    def button(self, usual: actions.Button = "left") -> actions.Button:
        named: Mapping[str, actions.Button] = {"left": "left", "right": "right", "middle": "middle"}
        if self.values.get("button") in (None, ""):
            return usual
        if (button := named.get(self.word("button"))) is None:
            raise ArgumentError("bad_argument", "a mouse button is left, right or middle")
        return button

    def held(self) -> tuple[str, ...]:
        """Return the modifier keys to hold during a click, drag or scroll."""
        value = self.first("modifiers", *(("text",) if self.words.held_in_text else ()))
        if value in (None, "", []):
            return ()
        keys = self.chord_in(value)
        if not set(keys) <= set(MODIFIERS):
            raise ArgumentError("bad_argument", f"only {', '.join(MODIFIERS)} can be held, not {'+'.join(keys)}")
        return keys

    def text(self, *names: str, strip: bool = True) -> str:
        value = self.first(*names, "text", "content", "value")
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
        return self.chord_in(self.first("keys", "key", "text"))

    def chord_in(self, value: Any) -> tuple[str, ...]:
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

    def seconds(self, default: float = 1.0) -> float:
        return self.amount("seconds", "time", "duration", default=default, most=_MAX_SECONDS)

    def amount(self, *names: str, default: float, most: float) -> float:
        amount = self.number(*names)
        if amount is None:
            return default
        if amount < 0:
            raise ArgumentError("bad_argument", f'"{names[0]}" must not be negative')
        return min(amount, most)

    def number(self, *names: str) -> float | None:
        value = self.first(*names)
        if value is None:
            return None
        try:
            number, _ = read_pair([value, 0])
        except PointError as error:
            raise ArgumentError("bad_argument", f'"{names[0]}" must be a number') from error
        return number


def _drag(call: _Arguments) -> Action[GridPoint]:
    ends: tuple[str, ...] = ("end_coordinate", "end", "coordinate2")
    if call.first("start_coordinate") is not None:  # then a bare "coordinate" is the end of the drag
        ends = (*ends, "coordinate")
    if call.first(*ends) is None:  # only "coordinate": drag from the pointer to that point
        return actions.Drag(None, call.point(), call.held())
    return actions.Drag(
        call.point("start_coordinate", "start", "coordinate", "coordinate1"), call.point(*ends), call.held()
    )


def _swipe(call: _Arguments) -> Action[GridPoint]:
    turn = _WORDS["swipes"].get(call.word("direction") or _swiped(call))
    if turn is None:
        raise ArgumentError("bad_argument", "a swipe needs a direction: up, down, left or right")
    return _turned(call, turn, _WORDS["usual_notches"], from_middle=True)


def _swiped(call: _Arguments) -> str:
    """Return the direction of a swipe from its two ends; "" if they are missing."""
    if call.first("coordinate2", "end_coordinate") is None:
        return ""
    start, end = call.point("coordinate", "start_coordinate"), call.point("coordinate2", "end_coordinate")
    right, down = end.x - start.x, end.y - start.y
    if abs(right) > abs(down):
        return "right" if right > 0 else "left"
    return "down" if down > 0 else "up"


def _wheel(call: _Arguments) -> Action[GridPoint]:
    """Return a scroll in the named direction, or by the sign of `pixels` (positive: up, or right for `hscroll`)."""
    ways = ("right", "left") if call.action == "hscroll" else ("up", "down", "left", "right")
    direction, pixels, words = call.word("direction"), call.number("pixels"), call.words
    sideways = call.action == "hscroll" or direction in ("left", "right")
    notches: float = _WORDS["usual_notches"]
    if pixels is not None:
        per_notch = (sideways and words.pixels_per_side_notch) or words.pixels_per_notch
        notches = words.notches or abs(pixels) / per_notch
    if direction in ways:
        notches = call.amount("amount", "notches", "clicks", default=notches, most=_MAX_NOTCHES)
    elif pixels:
        direction = ways[0 if pixels > 0 else 1]
    else:
        ordered = ", ".join(way for way in _DIRECTIONS if way in ways)
        raise ArgumentError("bad_argument", f'{call.action} needs a direction ({ordered}), or "pixels" other than 0')
    return _turned(call, direction, max(1, min(_MAX_NOTCHES, round(notches))))


def _turned(call: _Arguments, direction: str, notches: int, *, from_middle: bool = False) -> Action[GridPoint]:
    dx, dy = _DIRECTIONS[direction]
    point, grid = call.point_if_any(), call.words.grid
    if point is None and (from_middle or call.words.from_middle):
        point = GridPoint(grid.width / 2, grid.height / 2, grid)
    return actions.Scroll(point, dx * notches, dy * notches, call.held() if call.action != "swipe" else ())


def _visit(call: _Arguments) -> Action[GridPoint]:
    address = call.text("url", "address")
    if len(address) > _MAX_ADDRESS:
        raise ArgumentError("bad_argument", f"a web address has at most {_MAX_ADDRESS} characters")
    if any(char.isspace() for char in address):
        if _SCHEME.match(address) or not address.isprintable():
            raise ArgumentError("bad_argument", "a web address is one line without spaces: in it, a space is %20")
        return _search(address)
    if not _SCHEME.match(address):
        address = ("http://" if _LOCAL.match(address) else "https://") + address
    return actions.VisitPage(address)


def _search(query: str) -> Action[GridPoint]:
    if len(query) > _MAX_ADDRESS // 10:
        raise ArgumentError("bad_argument", "a web search is a few words")
    return actions.VisitPage(load_config("web.toml")["search_address"] + quote_plus(query))


def _terminate(call: _Arguments) -> Action[GridPoint]:
    status = call.word("status", 40) or call.words.status
    message = call.first("text", "message", "answer") or ""
    if status not in (*_WORDS["success"], *_WORDS["failure"]):
        raise ArgumentError("bad_argument", 'terminate needs a "status": success or fail')
    return actions.Finish(status in _WORDS["success"], message[:4000] if isinstance(message, str) else "")


def _ask_user(call: _Arguments) -> Action[GridPoint]:
    has_question = any(call.first(name) not in (None, "") for name in ("question", "text", "content", "value"))
    return actions.AskUser(call.text("question") if has_question or not call.words.question else call.words.question)


def _system_button(call: _Arguments) -> Action[GridPoint]:
    button = call.word("button")
    if button not in call.words.system_buttons:
        raise ArgumentError("bad_argument", f"there is no button {button!r}: use back, home, menu or enter")
    return actions.PressKeys(tuple(call.words.system_buttons[button]))


#: Escape sequences of texts to type. If a text contains any other backslash, all its backslashes are literal.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\n", "\\": "\\", "'": "'", '"': '"'}


def _type(call: _Arguments) -> Action[GridPoint]:
    text = call.text(strip=False)
    if call.words.unescapes and not re.search(r"\\(?:[^ntr\\'\"]|$)", re.sub(r"\\\\", "", text)):
        text = re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], text)
    return actions.TypeText(text)


_ACTIONS: dict[str, Callable[[_Arguments], Action[GridPoint]]] = {
    "long_press": lambda call: actions.LongPress(call.point(), call.seconds()),
    "move": lambda call: actions.Move(call.point()),
    "drag": _drag,
    "swipe": _swipe,
    "scroll": _wheel,
    "type": _type,
    "hscroll": _wheel,
    "key": lambda call: actions.PressKeys(call.keys()),
    "key_down": lambda call: actions.KeyDown(call.keys()),
    "key_up": lambda call: actions.KeyUp(call.keys()),
    "hold_key": lambda call: actions.HoldKeys(call.keys(), call.seconds()),
    "open": lambda call: actions.OpenApp(call.text("app_name"), call.called("application")),
    "wait": lambda call: actions.Wait(call.seconds(call.words.wait_seconds)),
    "visit": _visit,
    "web_search": lambda call: _search(call.text("query")),
    "answer": lambda call: actions.Answer(call.text("answer")),
    "ask_user": _ask_user,
    "remember": lambda call: actions.Remember(call.text("fact")),
    "terminate": _terminate,
    "system_button": _system_button,
}


def whole(value: Any, name: str, most: int) -> int:
    """Return how often something is repeated; once for None. Raises ArgumentError: it is not from 1 to `most`."""
    count = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if count is None:
        return 1
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ArgumentError("bad_argument", f'"{name}" is a whole number from 1 to {most}')
    return count


#: All action names of calls. A call under another name is a tool call.
ACTION_NAMES = frozenset(
    name
    for names in (
        _ACTIONS,
        *(_WORDS[table] for table in ("clicks", "button_downs", "button_ups", "chords", "other_names")),
    )
    for name in names
)
