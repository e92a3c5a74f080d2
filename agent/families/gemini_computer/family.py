"""Gemini's `computer_use` as a `Family`."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from agent.core.actions import Action, PressKeys
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, PromptRequest
from agent.families.shared.computer_use import Vocabulary, with_point
from agent.families.shared.own_names import read_typing, said
from agent.families.shared.peer_family import ComputerTools

_WAYS = ("up", "down", "left", "right")
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
        return call.name in self.data["calls"]

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
        arguments = said(call, words)
        if arguments["action"] == "drag" and not {"start_coordinate", "end_coordinate"} <= arguments.keys():
            raise ArgumentError("bad_point", "a drag needs both of its ends")
        if call.name == "type_text_at" and "coordinate" not in with_point(arguments):
            raise ArgumentError("bad_point", "type_text_at needs x and y")
        if arguments["action"] == "scroll" and str(arguments.get("direction")).strip().lower() not in _WAYS:
            raise ArgumentError("bad_argument", "a scroll needs a direction: up, down, left or right")
        if call.name == "scroll_document" and (key := _PAGE.get(str(arguments.get("direction")).strip().lower())):
            return [PressKeys((key,))]  # by a page: up and down with a key, sideways with the wheel
        read = read_typing(Call("computer_use", arguments), words)
        return read if isinstance(read, Sequence) else [read]
