"""OpenCUA 7B and 32B as a `Family`: the first version of the prompt."""

from pathlib import Path

from agent.families.opencua.base import CodeFamily


def create() -> CodeFamily:
    """The family, as the registry asks for it."""
    return CodeFamily("opencua", Path(__file__).parent, fractions=True)
