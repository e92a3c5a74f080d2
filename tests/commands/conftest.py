"""The command line as a fixture."""

import pytest
from commandline import CommandLine


@pytest.fixture
def mai(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """`mai-agent` with captured streams."""
    return CommandLine(monkeypatch, capsys)
