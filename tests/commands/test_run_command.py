"""Where a run is shown: in the application or as lines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.commands.run import main
from foundation.errors import UsageError

ROOT = Path(__file__).parents[2]


def test_it_is_an_application_in_a_browser_too(tmp_path: Path) -> None:
    """textual-serve reads and writes packets through pipes: a letter, the length, the data."""
    environ = {**os.environ, "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "100", "ROWS": "30"}
    environ |= {"MAI_AGENT_STATE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    quitting = json.dumps({"type": "quit"}).encode()
    with subprocess.Popen(
        [sys.executable, "-m", "agent", "--sandbox", "--runs", str(tmp_path)], env=environ, cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            seen = b""
            while b"What shall I do?" not in seen:
                read = os.read(process.stdout.fileno(), 65536)
                assert read, f"it ended: {seen[-500:]!r}"
                seen += read
            process.stdin.write(b"M" + len(quitting).to_bytes(4, "big") + quitting)
            process.stdin.flush()
            while os.read(process.stdout.fileno(), 65536):
                pass
            assert process.wait(20) == 0
        finally:
            process.kill()


def test_a_pipe_gets_lines_and_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    with pytest.raises(UsageError, match="no instruction"):
        main(["--sandbox", "--dry-run"])


def test_a_system_prompt_that_cannot_be_read_is_said_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    missing = str(tmp_path / "none.txt")
    with pytest.raises(UsageError, match=r"none\.txt cannot be read"):
        main(["--no-tui", "--engine", "literal", "--system-prompt", missing, "--runs", str(tmp_path), "open x"])
