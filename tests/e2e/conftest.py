"""Helpers for end-to-end tests: the real command line in real throw-away desktops."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from stubs.browser import browser  # noqa: F401 -- a fixture

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

    def inside(self, *program):
        """How a program ended that was run beside the sandbox that the run kept, with its environment."""
        command = ["sh", "-c", f'{self._kept.split("`")[1]}; "$@"', "sh", *program]
        return subprocess.run(command, capture_output=True, text=True, timeout=20)

    def in_home(self, script):
        """What a shell prints in the home of that sandbox."""
        return self.inside("sh", "-c", f'cd "$HOME"; {script}').stdout

    def stop_kept(self):
        stop_sandbox(self._kept.split("mai-agent sandbox stop ")[1].rstrip("`."))

    @property
    def _kept(self):
        [line] = [line for line in self.err.splitlines() if line.startswith("The sandbox stays")]
        return line


@pytest.fixture
def kept():
    """Stops the sandbox that the test's run kept."""
    outcomes = []
    yield outcomes.append
    for outcome in outcomes:
        outcome.stop_kept()


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
