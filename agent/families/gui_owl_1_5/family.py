"""GUI-Owl 1.5: Qwen3-VL's layout, with the instruction before the screenshot, and thoughts that are shown again."""

from agent.families.base import PastStep
from agent.families.qwen.family import QwenComputerUse


class GuiOwl15(QwenComputerUse):
    """GUI-Owl 1.5, 2B to 32B, Instruct and Think."""

    image_first = False
    which = "last"

    def answered(self, step: PastStep) -> str:
        """A past answer; what the server told apart as reasoning stands before it again."""
        answer, text = self.known(step), super().answered(step)
        return f"<thinking>\n{answer.reasoning}\n</thinking>{text}" if answer and answer.reasoning else text


def create() -> GuiOwl15:
    """The family, as the registry asks for it."""
    return GuiOwl15("gui-owl-1.5")
