"""The part of an action that a person can edit before it is carried out."""

import re
import sys
import unicodedata
from dataclasses import replace
from math import isfinite

from agent.core.actions import (
    Action,
    HoldKeys,
    KeyDown,
    OpenApp,
    PressKeys,
    TypeText,
    VisitPage,
    map_points,
    points_of,
)
from agent.core.geometry import DesktopPoint, Region
from agent.core.keys import chord
from agent.safety.addresses import is_web_page
from agent.safety.question_text import spelled_out

_ESCAPES = {"\n": "\\n", "\t": "\\t", "\\": "\\\\"}
_ESCAPED = re.compile(r"\\(?:[nt\\]|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
_UNESCAPED = {written: char for char, written in _ESCAPES.items()}


def editable(action: Action[DesktopPoint]) -> str:
    """Return the text, keys, name or points of an action for a person to edit; "" if it has none."""
    match action:
        case TypeText(text):
            return "".join(map(_escaped, text))
        case PressKeys(keys) | HoldKeys(keys) | KeyDown(keys):
            return "+".join(keys)
        case VisitPage(name) | OpenApp(name):
            return name if name.isprintable() else ""
    return " ".join("{},{}".format(*point.rounded()) for point in points_of(action))


def edited(action: Action[DesktopPoint], written: str, screen: Region | None = None) -> Action[DesktopPoint]:
    """The action with the person's text in place of its `editable` part.

    Raises ValueError saying what is expected, also for a point outside the given screen.
    """
    changed = _edited(action, written)
    if screen is not None and not all(screen.contains(point) for point in points_of(changed)):
        size = f"{screen.width} x {screen.height} from {screen.left},{screen.top}"
        raise ValueError(f"that point is not on the screen, which is {size}")
    return changed


def _edited(action: Action[DesktopPoint], written: str) -> Action[DesktopPoint]:
    match action:
        case TypeText():
            return TypeText(_ESCAPED.sub(_unescaped, written))
        case PressKeys() | HoldKeys() | KeyDown():
            return replace(action, keys=chord(written))
        case VisitPage():
            if not is_web_page(written.strip()):
                raise ValueError("write an address that begins with https:// or http://")
            return VisitPage(written.strip())
        case OpenApp():
            if not written.strip():
                raise ValueError("write an application's name")
            return replace(action, name=written.strip())
    if not (count := len(points_of(action))):
        raise ValueError("nothing about this can be changed")
    points = iter(_points(written, count))
    return map_points(action, lambda _: next(points))


def can_be_changed(action: Action[DesktopPoint]) -> bool:
    """Whether a person can change the action. A typed text can be changed even if it is empty."""
    return isinstance(action, TypeText) or bool(editable(action))


def _escaped(char: str) -> str:
    """Spell out a character that is invisible or controls a terminal."""
    if char in _ESCAPES or (spelled_out(char) == char and not unicodedata.category(char).startswith("M")):
        return _ESCAPES.get(char, char)
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _unescaped(found: re.Match[str]) -> str:
    escape = found[0]
    if escape[1] in "uU" and int(escape[2:], 16) > sys.maxunicode:
        return escape
    return _UNESCAPED.get(escape) or chr(int(escape[2:], 16))


def _points(written: str, count: int) -> list[DesktopPoint]:
    pieces = [piece.split(",") for piece in written.replace(", ", ",").split()]
    try:
        if len(pieces) == count:
            points = [DesktopPoint(float(x), float(y)) for x, y in pieces]
            if all(isfinite(point.x) and isfinite(point.y) for point in points):
                return points
    except ValueError:
        pass
    raise ValueError("write a point as x,y" if count == 1 else "write two points as x,y x,y")
