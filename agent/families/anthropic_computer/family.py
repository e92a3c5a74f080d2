"""Anthropic's computer tools as a `Family`."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, PastStep, PromptRequest
from agent.families.shared.computer_use import Vocabulary, read_action, whole
from agent.families.shared.own_names import said
from agent.families.shared.peer_family import ComputerTools

_THINKING = ("thinking", "redacted_thinking")
_MOST_REPEATS = 50


class AnthropicComputer(ComputerTools):
    """Claude models from 3.5. Points are pixels of the sent image."""

    def computer(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """Return the definition of the model's tool or toolset."""
        tool = self._tool(prompt.model)
        if "switched_off" in tool:
            return {"type": tool["type"], "configs": {name: {"enabled": False} for name in tool["switched_off"]}}
        size = prompt.size
        definition = {"type": tool["type"], "name": self.facts.function}
        return definition | {"display_width_px": size.width, "display_height_px": size.height}

    def native(self, prompt: PromptRequest) -> Mapping[str, Any]:
        """Return the tool's beta flags, and the thinking settings."""
        tool = self._tool(prompt.model)
        thinking = {"thinking": dict(tool["thinking"])} if "thinking" in tool else {}
        return thinking | ({"betas": list(tool["betas"])} if tool["betas"] else {})

    def _tool(self, model: str) -> Mapping[str, Any]:
        tools: Sequence[Mapping[str, Any]] = self.data["tools"]
        return next(tool for tool in tools if any(name in model for name in tool["names"]))

    def items(self, step: PastStep, prompt: PromptRequest) -> tuple[Any, ...]:
        """Return the blocks of a past answer.

        The API rejects adaptive thinking without everything that preceded it, so then it is left out. The older kind
        must always be sent back.
        """
        items = super().items(step, prompt)
        complete = not prompt.skipped and all(past.shown for past in prompt.steps)
        if complete or self._tool(prompt.model).get("thinking", {}).get("type") != "adaptive":
            return items
        return tuple(item for item in items if item.get("type") not in _THINKING)

    def is_computer(self, call: Call) -> bool:
        """Return whether a call is of the tool, or of a tool in the toolset."""
        return super().is_computer(call) or call.name in self.data["calls"]

    def read(self, call: Call, words: Vocabulary) -> Sequence[Action[GridPoint]]:
        """Return the actions of a call; several if it repeats one."""
        name = call.name if call.name in words.calls else call.arguments.get("action")
        if name in ("cursor_position", "zoom"):
            raise ArgumentError("unknown_action", f"{name} is not available here: look at the screenshot")
        arguments = said(Call(str(name), call.arguments), words)
        times = whole(arguments.pop("repeat", None), "repeat", _MOST_REPEATS)
        return [read_action(arguments, words)] * times
