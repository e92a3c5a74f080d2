"""An empty world, so that plans are the same everywhere: nothing was measured, no model is downloaded."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _empty_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
