"""Qwen3-VL: as all of its kind."""

from agent.families.qwen.family import QwenComputerUse


def create() -> QwenComputerUse:
    """The family, as the registry asks for it."""
    return QwenComputerUse("qwen3-vl")
