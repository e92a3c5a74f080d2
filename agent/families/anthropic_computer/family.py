"""Anthropic's computer tools as a `Family`."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.actions import Action, ButtonDown, ButtonUp
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, PastStep, PromptRequest
from agent.families.shared.computer_use import CLICKS, Vocabulary, read_action
from agent.families.shared.peer_family import LOOK, ComputerTools

_CLICKS = {name: click for name, click in CLICKS.items() if name != "click"}
#: Every action of the tools of all versions; in the toolset, each is a tool by itself.
_ACTIONS = frozenset(
    [*_CLICKS, "key", "type", "mouse_move", "left_click_drag", "screenshot", "cursor_position", "scroll", "wait",
     "hold_key", "left_mouse_down", "left_mouse_up", "zoom"]
)  # fmt: skip
_THINKING = ("thinking", "redacted_thinking")
_MOST_REPEATS = 50


class AnthropicComputer(ComputerTools):
    """Claude models from 3.5; points are pixels of the image sent."""

    def computer(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """The tool, or toolset, that the model has."""
        tool = self._tool(prompt.model)
        if "switched_off" in tool:
            return {"type": tool["type"], "configs": {name: {"enabled": False} for name in tool["switched_off"]}}
        size = prompt.size
        told = {"type": tool["type"], "name": self.facts.function}
        return told | {"display_width_px": size.width, "display_height_px": size.height}

    def native(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """The betas that the tool belongs to, and how the model is to think."""
        tool = self._tool(prompt.model)
        thinking = {"thinking": dict(tool["thinking"])} if "thinking" in tool else {}
        return thinking | ({"betas": list(tool["betas"])} if tool["betas"] else {})

    def _tool(self, model: str) -> Mapping[str, Any]:
        tools: Sequence[Mapping[str, Any]] = self.data["tools"]
        return next(tool for tool in tools if any(name in model for name in tool["names"]))

    def items(self, step: PastStep, prompt: PromptRequest) -> tuple[Any, ...]:
        """The blocks of a past answer.

        Adaptive thinking belongs to all that came before it, and is refused where that is no longer so; the older kind
        must go back in any case.
        """
        items = super().items(step, prompt)
        whole = not prompt.skipped and all(past.shown for past in prompt.steps)
        if whole or self._tool(prompt.model).get("thinking", {}).get("type") != "adaptive":
            return items
        return tuple(item for item in items if item.get("type") not in _THINKING)

    def is_computer(self, call: Call) -> bool:
        """Whether it is a call of the tool, or of one of the toolset."""
        return call.name == self.facts.function or call.name in _ACTIONS

    def read(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        """The action of a call; several where it repeats one, or clicks where the pointer is."""
        told = dict(call.arguments)
        name = told.setdefault("action", call.name) if call.name in _ACTIONS else told.get("action")
        if not isinstance(name, str) or name not in _ACTIONS:
            raise ArgumentError("unknown_action", f"there is no action {str(name)[:40]!r}")
        match name:
            case "screenshot":
                return [LOOK]
            case "cursor_position" | "zoom":
                raise ArgumentError("unknown_action", f"{name} is not available here: look at the screenshot")
            case "scroll":
                told["direction"], told["amount"] = told.get("scroll_direction"), told.get("scroll_amount")
                return [read_action(told, words)]
            case "left_click_drag":
                return [read_action({**told, "action": "drag"}, words)]
            case "left_mouse_down" | "left_mouse_up":
                return [read_action({"action": name}, words)]
            case "key":
                return [read_action(told, words)] * _repeats(told.get("repeat"))
        if name in _CLICKS and told.get("coordinate") is None:
            button, count = _CLICKS[name]
            return [ButtonDown(None, button), ButtonUp(None, button)] * count
        return [read_action(told, words)]


def _repeats(value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_REPEATS:
        raise ArgumentError("bad_argument", f'"repeat" is a whole number from 1 to {_MOST_REPEATS}')
    return value
