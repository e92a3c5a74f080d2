"""Actions as a bundle holds them, read back: for reports and run browsers, which must bear damaged ones."""

from typing import Any

from agent.actions import (
    Action,
    Answer,
    AskUser,
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
    describe,
)
from agent.geometry import DesktopPoint


def read_action(data: Any) -> Action[DesktopPoint] | None:
    """An action as `actions.to_json` wrote it; None for what is damaged."""
    if not isinstance(data, dict):
        return None
    try:
        action = _read(data)
        if action is not None:
            describe(action)  # a field of a wrong type shows itself here, and not where it is shown
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        return None
    return action


def _read(data: dict[str, Any]) -> Action[DesktopPoint] | None:
    match data.get("type"):
        case "click":
            return Click(_point(data["point"]), data["button"], data["count"])
        case "long_press":
            return LongPress(_point(data["point"]), data["seconds"])
        case "move":
            return Move(_point(data["point"]))
        case "drag":
            return Drag(None if data["start"] is None else _point(data["start"]), _point(data["point"]))
        case "scroll":
            return Scroll(None if data["point"] is None else _point(data["point"]), data["dx"], data["dy"])
        case "type":
            return TypeText(data["text"])
        case "key":
            return PressKeys(tuple(data["keys"]))
        case "hold":
            return HoldKeys(tuple(data["keys"]), data["seconds"])
        case "open":
            return OpenApp(data["name"])
        case "wait":
            return Wait(data["seconds"])
        case "answer":
            return Answer(data["text"])
        case "ask_user":
            return AskUser(data["question"])
        case "call_tool":
            return CallTool(data["name"], dict(data["arguments"]))
        case "finish":
            return Finish(data["success"], data["message"])
    return None


def _point(pair: Any) -> DesktopPoint:
    x, y = pair
    return DesktopPoint(float(x), float(y))
