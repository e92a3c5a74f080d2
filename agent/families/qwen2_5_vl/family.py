"""Qwen2.5-VL: as all of its kind, in pixels, and free in what it says before a call."""

from agent.families.base import PastStep
from agent.families.qwen.family import QwenComputerUse

#: How a line begins that OSWorld's agent takes for what was done, and tells again as it stands.
_DONE = ("action:", "step", "i will", "i'll", "now i")


class Qwen25(QwenComputerUse):
    """Qwen2.5-VL, whose answers need no line "Action:"."""

    label = ""

    def action_of(self, step: PastStep) -> str:
        """What a step did, in its own words: the first line that says so, whole."""
        lines = [] if step.answer is None else map(str.strip, step.answer.content.splitlines())
        said = next((line for line in lines if line.lower().startswith(_DONE)), "")
        return said.partition("<tool_call>")[0].strip() or super().action_of(step)


def create() -> Qwen25:
    """The family, as the registry asks for it."""
    return Qwen25("qwen2.5-vl")
