"""An empty cache of the hub for every test, and no network: what is found is what a test put there."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def hub_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder
