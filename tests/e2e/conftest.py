"""Helpers for end-to-end tests: the real command line in real throw-away desktops."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.sandbox.desktop import find_sandboxes, stop_sandbox

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Outcome:
    status: int
    out: str
    err: str
    runs: Path

    @property
    def bundle(self) -> Path:
        [folder] = self.runs.iterdir()
        return folder

    @property
    def meta(self):
        return json.loads((self.bundle / "run.json").read_text())

    @property
    def steps(self):
        return [json.loads(line) for line in (self.bundle / "steps.jsonl").read_text().splitlines()]


@pytest.fixture
def command(tmp_path):
    """Runs `mai-agent ARGUMENTS` from another folder, with a display only if one is given."""

    def run(*arguments, environ=None, timeout=110):
        runs = tmp_path / "runs"
        own = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "XAUTHORITY")}
        done = subprocess.run(
            [sys.executable, "-m", "agent", *arguments, "--runs", str(runs)],
            env=own | {"PYTHONPATH": str(ROOT), "MAI_AGENT_STATE": str(tmp_path / "state")} | (environ or {}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr, runs)

    return run


@pytest.fixture
def no_sandbox_left():
    """Fails the test if it leaves a sandbox behind; those of others on this machine are kept or in use."""
    yield
    left = [found for found in find_sandboxes() if not found.owned and not found.kept]
    for found in left:
        stop_sandbox(found.name)
    assert left == []
