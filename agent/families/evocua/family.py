"""EvoCUA in its style S2: Qwen3-VL's layout, with keys that stay down over several answers."""

from agent.families.qwen.family import QwenComputerUse


def create() -> QwenComputerUse:
    """The family, as the registry asks for it."""
    return QwenComputerUse("evocua")
