"""Kimi K2.5 and K2.6 as a `Family`: points as fractions of the screen, the thinking in the history."""

from pathlib import Path

from agent.families.opencua.base import CodeFamily


def create() -> CodeFamily:
    """The family, as the registry asks for it."""
    return CodeFamily("kimi", Path(__file__).parent)
