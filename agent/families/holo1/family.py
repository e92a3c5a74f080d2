"""Holo1 as a `Family`."""

from agent.families.holo.navigation import HoloNavigation


def create() -> HoloNavigation:
    """The family, as the registry asks for it."""
    return HoloNavigation("holo1")
