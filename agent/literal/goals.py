"""What a part of an instruction comes to: the goals that the engine pursues one after the other."""

from dataclasses import dataclass
from typing import TypeAlias

from agent.actions import Button


@dataclass(frozen=True, slots=True)
class Open:
    """Start an application, or open what is shown under that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Press:
    """Press a chord."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Click:
    """Click something that is shown."""

    target: str  # its text
    button: Button = "left"
    count: int = 1  # 2 for a double click
    inside: str = ""  # the application or window it is said to be in
    whole: str = ""  # target and inside as they were written, should that be one name
    near: str = ""  # what it is said to belong to
    or_open: bool = False  # it may also be an application to open


@dataclass(frozen=True, slots=True)
class Toggle:
    """Switch something on or off."""

    target: str
    on: bool
    inside: str = ""
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Type:
    """Type text, where the focus is or into a named field."""

    text: str
    into: str | None = None


@dataclass(frozen=True, slots=True)
class Scroll:
    """Scroll; `to_end` until nothing moves any more."""

    direction: str
    notches: int = 5
    to_end: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Close:
    """Close the window in front, or bring the named one to the front first."""

    target: str = ""


Goal: TypeAlias = Open | Press | Click | Toggle | Type | Scroll | Wait | Close

#: What the engine can do, for the person who asked for something else.
UNDERSTOOD = (
    "open X, click X, double-click X, right-click X, type '...' (into X), press ctrl+s, scroll down, wait, "
    "enable X, disable X, select X, close; joined by and, then and commas"
)


def describe_goal(goal: Goal) -> str:
    """The goal in words."""
    match goal:
        case Open(name):
            return f"open “{name}”"
        case Press(keys):
            return f"press {'+'.join(keys)}"
        case Click(target, button, count):
            verb = "double-click" if count == 2 else "click" if button == "left" else f"{button}-click"
            return f"{verb} “{target}”"
        case Toggle(target, on):
            return f"{'enable' if on else 'disable'} “{target}”"
        case Type(text, into):
            return f"type “{text[:40]}”" + (f" into “{into}”" if into else "")
        case Scroll(direction, _, to_end):
            return f"scroll {direction}" + (" to the end" if to_end else "")
        case Wait(seconds):
            return f"wait {seconds:g} s"
        case Close(target):
            return f"close “{target}”" if target else "close the window"
