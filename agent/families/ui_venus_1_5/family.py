"""UI-Venus 1.5 as a `Family`."""

from pathlib import Path

from agent.families.ui_venus.base import UiVenus


def create() -> UiVenus:
    """The family, as the registry asks for it."""
    return UiVenus("ui-venus-1.5", Path(__file__).parent)
