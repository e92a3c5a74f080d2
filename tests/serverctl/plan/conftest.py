"""Plans of an empty world: nothing was measured, nothing is downloaded, and this machine does not show through."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _empty_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
