"""Gemini's `computer_use` as a `Family`."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from agent.core.actions import Action, OpenApp, PressKeys, VisitPage
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, PromptRequest
from agent.families.shared.computer_use import Vocabulary, read_action
from agent.families.shared.peer_family import LOOK, ComputerTools, wheel

Told = Mapping[str, Any]

#: Functions with an equivalent shared action, and that action's name.
_PLAIN = {
    "click": "left_click", "double_click": "double_click", "triple_click": "triple_click",
    "middle_click": "middle_click", "right_click": "right_click", "mouse_down": "mouse_down", "mouse_up": "mouse_up",
    "move": "move", "long_press": "long_press", "wait": "wait", "press_key": "key", "hotkey": "key",
    "key_down": "key_down", "key_up": "key_up", "go_back": "go_back", "go_forward": "go_forward",
    "navigate": "navigate", "click_at": "left_click", "hover_at": "move", "key_combination": "key",
}  # fmt: skip
_OTHERS = frozenset(
    {"type", "type_text_at", "drag_and_drop", "scroll", "scroll_at", "scroll_document", "open_web_browser", "search",
     "wait_5_seconds", "take_screenshot"}
)  # fmt: skip
#: The keys that the published client presses for a whole page.
_PAGE = {"down": "page_down", "up": "page_up"}
_DECISION = "safety_decision"


class GeminiComputer(ComputerTools):
    """Gemini 2.5 computer use and later. Points are on a grid of 0 to 1000."""

    def computer(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """Return the tool `computer_use`, for a desktop if the model supports one."""
        older = self.data["older"]
        vocabulary = older if any(name in prompt.model for name in older["names"]) else self.data["newer"]
        return {"computer_use": {"environment": vocabulary["environment"]}}

    def is_computer(self, call: Call) -> bool:
        """Return whether it is a predefined function."""
        return call.name in _PLAIN or call.name in _OTHERS

    def objection(self, call: Call) -> str:
        """Return why the safety system wants a person to confirm."""
        decision = call.arguments.get(_DECISION)
        if not isinstance(decision, dict) or decision.get("decision") in (None, "regular", "allowed"):
            return ""
        return str(decision.get("explanation") or decision["decision"])

    def agreement(self, call: Call) -> Mapping[str, Any]:
        """Return the sign that a person confirmed."""
        return {"safety_acknowledgement": "true"} if self.objection(call) else {}

    @override
    def read(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        arguments, older, lengths = call.arguments, self.data["older"], self.data["scroll"]
        match call.name:
            case "type":
                return _typed(arguments, words)
            case "type_text_at":  # replaces old text by default
                clear = _is(arguments, "clear_before_typing", usual=True)
                clearing = [PressKeys(("ctrl", "a")), PressKeys(("backspace",))] if clear else []
                click = read_action({"action": "left_click", **_point(arguments)}, words)
                return [click, *clearing, *([] if clear and arguments.get("text") == "" else _typed(arguments, words))]
            case "drag_and_drop":
                return [_dragged(arguments, words)]
            case "scroll" | "scroll_at":  # "scroll_at" gives a length on the grid, about as long in pixels
                length = arguments.get("magnitude_in_pixels", arguments.get("magnitude"))
                usual = lengths["usual_pixels" if call.name == "scroll" else "usual_magnitude"]
                return [wheel(_direction(arguments), usual if length is None else length, _point(arguments), words)]
            case "scroll_document":  # by a page: up and down with a key, sideways with the wheel
                direction = _direction(arguments)
                if direction in _PAGE:
                    return [PressKeys((_PAGE[direction],))]
                return [wheel(direction, lengths["usual_magnitude"], {}, words)]
            case "open_web_browser":
                return [OpenApp(older["browser"])]
            case "search":
                return [VisitPage(older["search"])]
            case "wait_5_seconds":
                return [read_action({"action": "wait", "seconds": 5}, words)]
            case "take_screenshot":
                return [LOOK]
        rest = {name: value for name, value in arguments.items() if name not in ("x", "y", _DECISION, "intent")}
        return [read_action({**rest, **_point(arguments), "action": _PLAIN[call.name]}, words)]


def _typed(arguments: Told, words: Vocabulary) -> Sequence[Action[GridPoint]]:
    read = read_action({"action": "type", "text": arguments.get("text")}, words)
    return [read, PressKeys(("enter",))] if _is(arguments, "press_enter", usual=False) else [read]


def _dragged(arguments: Told, words: Vocabulary) -> Action[GridPoint]:
    """Return a drag between two points, named as in either vocabulary."""
    start = _point(arguments, ("start_x", "start_y")) or _point(arguments)
    end = _point(arguments, ("end_x", "end_y")) or _point(arguments, ("destination_x", "destination_y"))
    ends = {"start_coordinate": start.get("coordinate"), "end_coordinate": end.get("coordinate")}
    if None in ends.values():
        raise ArgumentError("bad_point", "a drag needs both of its ends")
    return read_action({"action": "drag", **ends}, words)


def _point(arguments: Told, names: tuple[str, str] = ("x", "y")) -> Mapping[str, Any]:
    """Return a point in the shared format; nothing if both numbers are missing."""
    x, y = (arguments.get(name) for name in names)
    return {} if x is None and y is None else {"coordinate": {"x": x, "y": y}}


def _direction(arguments: Told) -> str:
    direction = str(arguments.get("direction", ""))[:10].strip().lower()
    if direction not in ("up", "down", "left", "right"):
        raise ArgumentError("bad_argument", "a scroll needs a direction: up, down, left or right")
    return direction


def _is(arguments: Told, name: str, *, usual: bool) -> bool:
    value = arguments.get(name, usual)
    if not isinstance(value, bool):
        raise ArgumentError("bad_argument", f'"{name}" is true or false')
    return value
