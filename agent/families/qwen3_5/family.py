"""Qwen3.5 and later: calls as nested tags, and every screenshot after the first as what the last call gave back."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import GridPoint
from agent.families.base import Call, ParseFailure, PastStep, PromptRequest
from agent.families.qwen.constraint import xml_answers
from agent.families.qwen.family import QwenComputerUse, plain
from agent.families.qwen.nested import nested_call, nested_calls
from agent.families.shared.computer_use import ACTION_NAMES, Vocabulary
from agent.model.request import ImagePart, Message, TextPart


class Qwen35(QwenComputerUse):
    """Qwen3.5, 3.6 and 3.8."""

    def window(self, prompt: PromptRequest) -> tuple[Sequence[PastStep], Sequence[PastStep]]:
        """The newest steps are turns, whether their screenshots are shown or not."""
        first = max(0, len(prompt.steps) - self.data["history"]["steps"])
        return prompt.steps[:first], prompt.steps[first:]

    def turn(self, shown: Sequence[ImagePart], after: PastStep) -> Message:
        """What is seen after a step, as what its call gave back; in one text where the screenshots are left out."""
        replies = [TextPart(f"\n{reply}") for reply in after.replies]
        if shown:
            return Message("user", (TextPart("<tool_response>\n"), *shown, *replies, TextPart("\n</tool_response>")))
        said = "".join([self.texts["collapsed"], *(reply.text for reply in replies)])
        return Message.text("user", f"<tool_response>\n{said}\n</tool_response>")

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form."""
        said = plain(thought)
        return "\n".join([*([f"{self.label}{said}"] if said else []), *map(nested_call, calls)])

    def written_calls(self, text: str, function: str) -> tuple[str, list[Call] | ParseFailure]:
        """What is said before the calls in a text, and the calls: nested tags, or JSON as in earlier models."""
        return nested_calls(text) if "<function=" in text else super().written_calls(text, function)

    def act(self, call: Call, words: Vocabulary) -> Action[GridPoint] | list[Action[GridPoint]]:
        """What one call stands for; small models call the action "type"."""
        name = call.arguments.get("type")
        if "action" not in call.arguments and isinstance(name, str) and name.strip().lower() in ACTION_NAMES:
            rest = {key: value for key, value in call.arguments.items() if key != "type"}
            call = Call(call.name, {"action": name, **rest}, call.id)
        return super().act(call, words)

    def constraint(self, options: Mapping[str, Any]) -> str | None:
        """A regular expression of valid answers, for constrained decoding."""
        return xml_answers(self.label, self.takes(options))


def create() -> Qwen35:
    """The family, as the registry asks for it."""
    return Qwen35("qwen3.5")
