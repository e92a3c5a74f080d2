"""OpenCUA 72B as a `Family`: the second version of the prompt."""

from pathlib import Path

from agent.families.opencua.base import CodeFamily


def create() -> CodeFamily:
    """The family, as the registry asks for it."""
    return CodeFamily("opencua-72b", Path(__file__).parent, fractions=True)
