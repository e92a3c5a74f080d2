"""Doubao 1.5 UI-TARS as a `Family`: points as `<point>x y</point>` on a grid of 1000, thinking in tags."""

from pathlib import Path

from agent.families.ui_tars.base import UiTars, texts_of


def create() -> UiTars:
    """The family, as the registry asks for it."""
    return UiTars("doubao-ui-tars", texts_of(Path(__file__).parent))
