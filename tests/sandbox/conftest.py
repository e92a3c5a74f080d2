"""What every test of sandboxes needs."""

import os

import pytest


@pytest.fixture(autouse=True)
def own_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """`applied` and the wait for the desktop change these; every test gets its own back."""
    for name in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SWAYSOCK"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
