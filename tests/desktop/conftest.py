"""The display of these tests is a sandbox, as in the end-to-end tests."""

import os

import pytest

from agent.sandbox.desktop import SandboxSpec, start_sandbox


@pytest.fixture
def sandbox(monkeypatch):
    """A running sandbox that this process sees as its display."""
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    running = start_sandbox(SandboxSpec())
    running.applied()
    yield running
    running.close()
