"""UI-TARS 1.0 as a `Family`: points on a grid of 1000, answers replayed as they were."""

from pathlib import Path

from agent.families.ui_tars.base import UiTars, texts_of


def create() -> UiTars:
    """The family, as the registry asks for it."""
    return UiTars("ui-tars", texts_of(Path(__file__).parent))
