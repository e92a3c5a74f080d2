"""OpenAI's `computer` as a `Family`."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from agent.core.actions import Action, PressKeys
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, PromptRequest
from agent.families.shared.computer_use import Vocabulary, read_action
from agent.families.shared.own_names import said
from agent.families.shared.peer_family import LOOK, ComputerTools

_MOST_ACTIONS = 50
_CHECKS = "pending_safety_checks"


class OpenAiComputer(ComputerTools):
    """GPT-5.4 and later, and computer-use-preview. Points are pixels of the sent image."""

    def computer(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """Return the tool `computer`, or the older tool for older models."""
        preview = self.data["preview"]
        if not any(name in prompt.model for name in preview["names"]):
            return {"type": "computer"}
        size = prompt.size
        definition = {"type": preview["tool"], "environment": preview["environment"]}
        return definition | {"display_width": size.width, "display_height": size.height}

    def objection(self, call: Call) -> str:
        """Return the pending safety checks, in OpenAI's words."""
        return "; ".join(check.get("message") or check.get("code") or "a safety check" for check in _checks(call))

    def agreement(self, call: Call) -> Mapping[str, Any]:
        """Return the same checks as acknowledged."""
        checks = _checks(call)
        return {"acknowledged_safety_checks": checks} if checks else {}

    def read(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        """Return the actions of a call, in order."""
        written = call.arguments.get("actions", [call.arguments.get("action")])
        if not isinstance(written, list) or not written or not all(isinstance(each, dict) for each in written):
            raise ArgumentError("bad_argument", 'a computer call needs "actions", a list of objects')
        if len(written) > _MOST_ACTIONS:
            raise ArgumentError("bad_argument", f"{len(written)} actions are too many for one call")
        return [action for each in written for action in self._one(each, words)]

    def _one(self, action: Mapping[str, Any], words: Vocabulary) -> Sequence[Action[GridPoint]]:
        kind, path, button = str(action.get("type")), action.get("path"), str(action.get("button") or "left")
        if kind == "scroll":
            return _scroll(action, {axis: action.get(axis) for axis in "xy"}, words)
        if kind == "click" and button in self.data["chords"]:
            return [PressKeys(tuple(self.data["chords"][button]))]
        given = {**action, "button": self.data["buttons"].get(button, button)}
        if kind == "drag":  # straight from the first point of the path to the last
            if not isinstance(path, list) or len(path) < 2:
                raise ArgumentError("bad_argument", 'a drag needs a "path" of two points or more')
            given |= {"start_coordinate": path[0], "end_coordinate": path[-1]}
        return [read_action(said(Call(kind, given), words), words)]


def _scroll(action: Mapping[str, Any], point: Mapping[str, Any], words: Vocabulary) -> Sequence[Action[GridPoint]]:
    turns = [("scroll_y", "down", "up"), ("scroll_x", "right", "left")]
    found = []
    for name, forward, back in turns:
        amount = action.get(name) or 0
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not isfinite(amount):
            raise ArgumentError("bad_argument", f'"{name}" must be a number')
        if amount:
            turn = {"action": "scroll", "direction": forward if amount > 0 else back, "pixels": abs(amount)}
            found.append(read_action({**turn, **point, "modifiers": action.get("keys")}, words))
    return found or [LOOK]


def _checks(call: Call) -> list[dict[str, Any]]:
    checks = call.arguments.get(_CHECKS)
    return [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []
