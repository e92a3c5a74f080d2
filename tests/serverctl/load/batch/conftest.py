"""A batch of five requests, where its answers go, and a key and pauses for tests."""

from pathlib import Path

import pytest
from batches import ask_for, write
from stubs.token_server import KEY

from serverctl.load.batch import run


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_AGENT_API_KEY", KEY)
    monkeypatch.setattr(run, "_BACKOFF_S", 0.01)


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    return write(tmp_path / "requests.jsonl", *ask_for(5))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "requests.answers.jsonl"
