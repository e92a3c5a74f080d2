"""Qwen2.5-VL: as all of its kind, in pixels, and free in what it says before a call."""

from agent.families.qwen.family import QwenComputerUse


class Qwen25(QwenComputerUse):
    """Qwen2.5-VL, whose answers need no line "Action:"."""

    label = ""


def create() -> Qwen25:
    """The family, as the registry asks for it."""
    return Qwen25("qwen2.5-vl")
