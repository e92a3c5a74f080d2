"""Every test gets a machine of its own, and leaves no process behind even when it fails."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.controlled import Machine

from serverctl.process.state import Folder


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name in tuple(os.environ):
        if name.startswith(("MAI_", "VLLM_", "HF_", "CUDA_")):
            monkeypatch.delenv(name)
    made = Machine(tmp_path)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The folder of a server, without a machine around it."""
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    made = Folder("default")
    made.make()
    return made
