"""Where a run is shown: in the application or as lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, Ran
from stubs.endpoint import FakeEndpoint

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


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        raise AssertionError("a sandbox was started")

    monkeypatch.setattr("agent.sandbox.desktop.start_sandbox", started)


def the_only_event(ran: Ran) -> dict[str, Any]:
    (line,) = ran.out.splitlines()
    event: dict[str, Any] = json.loads(line)
    assert event["event"] == "RunFinished"
    assert event["status"] == ran.status
    assert event["message"] in ran.err
    return event


@pytest.mark.usefixtures("no_sandbox")
@pytest.mark.parametrize(
    ("options", "status", "why"),
    [
        (["--endpoint", "127.0.0.1:9"], 3, "no connection"),
        (["--endpoint", "{url}", "--model", "other"], 3, "does not serve 'other'"),
        (["--endpoint", "{url}", "--family", "none"], 2, "none"),
        (["--endpoint", "{url}", "--planner", "127.0.0.1:9"], 3, "no connection"),
        (["--engine", "literal", "--monitor", "2"], 2, "only monitor 1"),
        (["--engine", "literal", "--model", "m"], 2, "no model"),
        (["--maximum"], 2, "Unrecognized"),
    ],
)
def test_what_can_be_wrong_is_found_before_a_desktop_is_started_and_is_an_event_in_json(
    mai: CommandLine, tmp_path: Path, options: list[str], status: int, why: str
) -> None:
    with FakeEndpoint([]) as endpoint:
        named = [word.format(url=endpoint.url) for word in options]
        ran = mai("--json", "--sandbox", "--runs", str(tmp_path / "runs"), *named, "open the settings")
    event = the_only_event(ran)
    assert (ran.status, event["outcome"]) == (status, "failed")
    assert why in event["message"]
    assert not (tmp_path / "runs").exists()
