"""GUI-Owl 7B and 32B: all that a request has stands in one user message, and answers have a thought and a summary."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.families.base import Call, PastStep, PromptRequest
from agent.families.qwen.constraint import json_answers
from agent.families.qwen.family import QwenComputerUse, written_call
from agent.families.qwen.prompt import fill
from agent.model.request import ImagePart, Message, TextPart

_CONCLUSION = re.compile(r"<conclusion>\s*(.*?)\s*(?:</conclusion>|$)", re.DOTALL)


class GuiOwl(QwenComputerUse):
    """GUI-Owl 7B and 32B."""

    image_first = False

    def system(self, prompt: PromptRequest) -> list[Message]:
        """The system text in two parts: who it is, and its function."""
        if prompt.system_prompt is not None:
            return [Message.text("system", prompt.system_prompt)]
        parts = (TextPart(self.texts["helper"]), TextPart("\n\n" + self.instructions.system(prompt)))
        return [Message("system", parts)]

    def messages(self, prompt: PromptRequest) -> list[Message]:
        """The system text, and one user message: the instruction, every step in words, and screenshots."""
        parts: list[TextPart | ImagePart] = [self.asked(prompt, prompt.steps)]
        for number, step in enumerate(prompt.steps, prompt.skipped + 1):
            if step.shown:
                parts += [
                    TextPart(fill(self.texts["past_screenshot"], number=str(number)) + "\n"),
                    *map(ImagePart, step.images),
                ]
        parts += [TextPart(self.texts["screenshot"] + "\n"), *map(ImagePart, prompt.images)]
        return [*self.system(prompt), Message("user", tuple(parts))]

    def action_of(self, step: PastStep) -> str:
        """What a step did: its summary, or else its thought."""
        found = None if step.answer is None else _CONCLUSION.search(step.answer.content)
        return (found[1] if found else "") or step.thought.strip() or self.instructions.unsaid(step)

    def written(self, thought: str, calls: Sequence[Call]) -> str:
        """An answer in the published form, without its summary."""
        return "\n".join([f"<thinking>\n{thought}\n</thinking>", *map(written_call, calls)])

    def constraint(self, options: Mapping[str, Any]) -> str | None:
        """A regular expression of valid answers, for constrained decoding."""
        return json_answers("<thinking>\n", self.takes(options), "\n</thinking>")


def create() -> GuiOwl:
    """The family, as the registry asks for it."""
    return GuiOwl("gui-owl")
