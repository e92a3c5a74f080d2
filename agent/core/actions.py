"""The action vocabulary: a closed, typed union, independent of any model and operating system.

Actions are generic over the space of their points: a model family's parser returns `Action[GridPoint]`, the run loop
maps it to `Action[DesktopPoint]`, and only that type can reach a hand. When a member is added, the type checker reports
every `match` that does not handle it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from agent.core.geometry import CapturePoint, DesktopPoint, GridPoint, NamedPoint

P = TypeVar("P", NamedPoint, GridPoint, CapturePoint, DesktopPoint)
Q = TypeVar("Q", NamedPoint, GridPoint, CapturePoint, DesktopPoint)
_POINTS = (NamedPoint, GridPoint, CapturePoint, DesktopPoint)

Button: TypeAlias = Literal["left", "right", "middle"]


@dataclass(frozen=True, slots=True)
class Click(Generic[P]):
    """Press and release a button `count` times, at a point (None: at the pointer); `held` keys are down meanwhile."""

    point: P | None
    button: Button = "left"
    count: int = 1
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LongPress(Generic[P]):
    """Hold the left button still at a point; `held` keys are down meanwhile."""

    point: P
    seconds: float = 1.0
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Move(Generic[P]):
    """Move the pointer with `held` keys down. Presses no button; a pressed one stays pressed."""

    point: P
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drag(Generic[P]):
    """Press the left button at `start` (None: where the pointer is), move to `end`, release; `held` keys are down."""

    start: P | None
    end: P
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scroll(Generic[P]):
    """Turn the wheel by notches at a point (None: where the pointer is).

    `dy` > 0 is towards the end of the document, `dx` > 0 to the right. `held` keys are down meanwhile.
    """

    point: P | None
    dx: int
    dy: int
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ButtonDown(Generic[P]):
    """Press a button at a point (None: where the pointer is), and keep it down until a `ButtonUp`."""

    point: P | None
    button: Button = "left"
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ButtonUp(Generic[P]):
    """Release a button that is down, at a point (None: where the pointer is)."""

    point: P | None
    button: Button = "left"
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeText:
    """Enter text where the keyboard focus is."""

    text: str


@dataclass(frozen=True, slots=True)
class PressKeys:
    """Press a chord of keys, named as in `agent.core.keys`, and release it."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HoldKeys:
    """Hold a chord of keys down for a time."""

    keys: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class KeyDown:
    """Press keys, and keep them down until a `KeyUp`: over the actions that follow, also of later answers."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyUp:
    """Release keys that are down."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VisitPage:
    """Show a web page in the browser: an address, with its scheme."""

    url: str


@dataclass(frozen=True, slots=True)
class OpenApp:
    """Start an application by the name a person would call it, or open a file or folder of their home.

    A name that begins with "/", "~/", "./" or "file:" is a path, one that ends in "/" a folder; "./" before a bare name
    makes it a path, too. A name of no application is looked for among the files, too.
    """

    name: str
    application: str = ""  # opens the file or folder; "" for the desktop's default


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass; the screen is watched meanwhile."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Tell the person something; this ends the task."""

    text: str


@dataclass(frozen=True, slots=True)
class AskUser:
    """Ask the person; the reply goes back to the model."""

    question: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Note a fact for later steps; it stays with the model, and touches nothing."""

    fact: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The model says that what it was asked for is not on the screen; `target` names it, if known."""

    target: str = ""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Call a tool that the person configured (MCP); the result goes back to the model."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finish:
    """End the task: done, or given up with a reason.

    An engine that checks the result itself, such as the built-in one, adds its evidence.
    """

    success: bool
    message: str = ""
    evidence: tuple[str, ...] = ()  # what shows that it is done, as sentences
    verified: bool | None = None  # whether the evidence shows that; None if nobody checked
    already: tuple[str, ...] = ()  # the parts of the task that were so before


PointAction: TypeAlias = Click[P] | LongPress[P] | Move[P] | Drag[P] | Scroll[P] | ButtonDown[P] | ButtonUp[P]
KeyAction: TypeAlias = TypeText | PressKeys | HoldKeys | KeyDown | KeyUp
TalkAction: TypeAlias = Wait | Answer | AskUser | Remember | Absent | CallTool | Finish
EndAction: TypeAlias = Finish | Answer | Absent
PlainAction: TypeAlias = KeyAction | OpenApp | VisitPage | TalkAction
Action: TypeAlias = PointAction[P] | PlainAction

#: Actions that act on the desktop.
TOUCHING = (
    Click, LongPress, Move, Drag, Scroll, ButtonDown, ButtonUp, TypeText, PressKeys, HoldKeys, KeyDown, KeyUp, OpenApp,
    VisitPage,
)  # fmt: skip
#: Actions that end the task.
ENDING = (Finish, Answer, Absent)
#: Actions that go to the window with the keyboard focus.
TYPING = (TypeText, PressKeys, HoldKeys, KeyDown, KeyUp)


def map_points(action: Action[P], to: Callable[[P], Q]) -> Action[Q]:
    """Return the action with every point mapped by `to`. This is the only way to change an action's space."""
    unmoved: Any = action
    moved: Action[Q] = replace(unmoved, **{name: to(point) for name, point in _points(action).items()})
    return moved


def points_of(action: Action[P]) -> list[P]:
    """Return the action's points in order; empty for actions without points."""
    return list(_points(action).values())


def _points(action: Action[P]) -> dict[str, Any]:
    values = {field.name: getattr(action, field.name) for field in fields(action)}
    return {name: value for name, value in values.items() if isinstance(value, _POINTS)}


#: The point of an action that may be missing because the pointer is there already.
_FROM_POINTER: Mapping[type, str] = {Click: "point", Scroll: "point", ButtonDown: "point", Drag: "start"}


def at_pointer(action: Action[P], pointer: P) -> Action[P]:
    """Return an action that happens where the pointer is, with the pointer's place as its point."""
    name = missing_point(action)
    anywhere: Any = action
    return action if name is None else replace(anywhere, **{name: pointer})


def missing_point(action: Action[P]) -> str | None:
    """Return the field of the point where an action begins, if it is missing; None if nothing is missing."""
    name = _FROM_POINTER.get(type(action))
    return name if name is not None and getattr(action, name) is None else None


#: JSON name of every kind of action.
KINDS: Mapping[str, type] = {
    "click": Click, "long_press": LongPress, "move": Move, "drag": Drag, "scroll": Scroll, "type": TypeText,
    "button_down": ButtonDown, "button_up": ButtonUp, "key": PressKeys, "hold": HoldKeys, "key_down": KeyDown,
    "key_up": KeyUp, "open": OpenApp, "visit": VisitPage, "wait": Wait, "answer": Answer, "ask_user": AskUser,
    "remember": Remember, "absent": Absent, "call_tool": CallTool, "finish": Finish,
}  # fmt: skip
_NAMES = {kind: name for name, kind in KINDS.items()}
#: Fields that are left out of an action's JSON if they are empty.
OPTIONAL = ("evidence", "verified", "already", "application", "held", "target")


def json_name(field: str) -> str:
    """Return a field's name in JSON. The end point of an action is called "point" there."""
    return "point" if field == "end" else field


def kind_of(action: Action[P]) -> str:
    """Return the JSON name of an action's kind."""
    return _NAMES[type(action)]


def to_json(action: Action[P]) -> dict[str, Any]:
    """Return the action as plain JSON: "type", then its fields. A point is [x, y] in the action's own space."""
    values = {json_name(field.name): _plain(getattr(action, field.name)) for field in fields(action)}
    unsaid = [name for name in OPTIONAL if name in values and not values[name] and values[name] is not False]
    return {"type": kind_of(action), **{name: value for name, value in values.items() if name not in unsaid}}


def _plain(value: Any) -> Any:
    if isinstance(value, NamedPoint):
        return value.words
    if isinstance(value, GridPoint | CapturePoint | DesktopPoint):
        return [value.x, value.y]
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def describe(action: Action[P], names: Sequence[str] = ()) -> str:
    """Describe the action in words for a list that people read; long text is shortened.

    `names` replace the coordinates of the action's points, in order. "" means that the name is unknown.
    """
    named = dict(zip(points_of(action), names, strict=False))

    def at(point: Any, how: str = "at ") -> str:
        return named.get(point) or f"{how}{_place(point)}"

    match action:
        case Click(point):
            return f"{_clicks(action)} {'at the pointer' if point is None else at(point)}"
        case LongPress(point, seconds):
            return f"{_with(action.held)}hold the button for {seconds:g} s {at(point)}"
        case Move(point):
            return f"{_with(action.held)}move to {at(point, '')}"
        case Drag(start, end):
            origin = "the pointer" if start is None else at(start, "")
            return f"{_with(action.held)}drag from {origin} to {at(end, '')}"
        case ButtonDown(point, button) | ButtonUp(point, button):
            does = "press and hold" if isinstance(action, ButtonDown) else "release"
            return f"{_with(action.held)}{does} the {button} button" + ("" if point is None else f" {at(point)}")
        case Scroll(point, dx, dy):
            ways = [
                f"{abs(amount)} {way}"
                for amount, way in ((dy, "down" if dy > 0 else "up"), (dx, "right" if dx > 0 else "left"))
                if amount
            ]
            return f"{_with(action.held)}scroll {' and '.join(ways) or 'nowhere'}" + (
                "" if point is None else f" {at(point)}"
            )
        case TypeText(text):
            return f"type {shorten(text)}"
        case PressKeys(keys):
            return f"press {'+'.join(keys)}"
        case HoldKeys(keys, seconds):
            return f"hold {'+'.join(keys)} for {seconds:g} s"
        case KeyDown(keys):
            return f"press and hold {'+'.join(keys)}"
        case KeyUp(keys):
            return f"release {'+'.join(keys)}"
        case VisitPage(url):
            return f"visit {shorten(url)}"
        case OpenApp(name, application):
            return f"open {shorten(name)}" + (f" with {shorten(application)}" if application else "")
        case Wait(seconds):
            return f"wait {seconds:g} s"
        case Answer(text):
            return f"answer: {shorten(text)}"
        case AskUser(question):
            return f"ask: {shorten(question)}"
        case Remember(fact):
            return f"note: {shorten(fact)}"
        case Absent(target):
            return f"see no {shorten(target)}" if target else "see nothing of the kind"
        case CallTool(name, _):
            return f"call the tool {name}"
        case Finish(success=success):  # its message stands at the end of the run
            return "finish" if success else "give up"


def _clicks(action: Click[P]) -> str:
    times = {1: "click", 2: "double-click", 3: "triple-click"}.get(action.count, f"click {action.count} times")
    return _with(action.held) + (times if action.button == "left" else f"{action.button}-{times}")


def _with(held: tuple[str, ...]) -> str:
    return "".join(f"{key}+" for key in held)


def shorten(text: str, limit: int = 60) -> str:
    """Return the text quoted, on one line and cut to about `limit` characters. A cut text states its full length."""
    line = " ".join(text.split()).replace("“", "‘").replace("”", "’")
    if len(line) <= limit:
        return f"“{line}”"
    return f"“{line[:limit]}…” ({len(text)} characters)"


def _place(point: NamedPoint | GridPoint | CapturePoint | DesktopPoint) -> str:
    if isinstance(point, NamedPoint):
        return shorten(point.words)
    if isinstance(point, DesktopPoint):  # the pixel that the pointer goes to
        return "{},{}".format(*point.rounded())
    return f"{point.x:.0f},{point.y:.0f}"
