"""The real `mai-agent`, run as a person runs it, and what is left when it has ended."""

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
from stubs.display import PlainDisplay

from agent.record.read import Bundle, list_bundles

PROGRAM = (sys.executable, "-m", "agent")
ROOT = Path(__file__).resolve().parents[2]
_MARK = "MAI_TEST_RUN"


class Program:
    """One `mai-agent` process.

    Args:
        home: a folder for its HOME, its runs and its output.
        environ: its environment; HOME and settings are replaced.
        arguments: the command line after `mai-agent`, without --runs.
    """

    def __init__(self, home: Path, environ: dict[str, str], *arguments: str, runs: Path | None = None) -> None:
        self.runs = runs or home / "runs"
        self._mark = secrets.token_hex(8)
        home.mkdir(parents=True, exist_ok=True)
        (home / "none.toml").touch()
        own = {
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "MAI_AGENT_CONFIG": str(home / "none.toml"),
            "MAI_AGENT_CALIBRATE": "off",  # a script of answers has none for it
            _MARK: self._mark,
        }
        kept = {name: value for name, value in environ.items() if not name.startswith(("XDG_", "MAI_", "WAYLAND"))}
        self._out, self._err = (home / "stdout").open("w+"), (home / "stderr").open("w+")
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments, "--runs", str(self.runs)], env={**kept, **own}, cwd=home,
            stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
        )  # fmt: skip

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._out.close()
        self._err.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit status; the limit only catches what would never end."""
        return self.process.wait(60)

    @property
    def out(self) -> str:
        return Path(self._out.name).read_text()

    @property
    def err(self) -> str:
        return Path(self._err.name).read_text()

    @property
    def bundle(self) -> Bundle:
        (bundle,) = list_bundles(self.runs)
        return bundle

    def left_over(self) -> list[str]:
        """Processes of this run that are still there."""
        found: list[str] = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.name())
            except (psutil.Error, OSError):
                continue
        return found

    def events(self) -> list[dict[str, Any]]:
        """What --json printed: every line one object."""
        return [json.loads(line) for line in self.out.splitlines()]


def ended(program: Program, status: int, outcome: str | None, says: str, display: PlainDisplay | None = None) -> None:
    """Check everything that must hold however a run ends.

    Args:
        program: the run.
        status: the exit status it must have.
        outcome: the outcome its bundle must have. None if the run must not have begun: then there is no bundle.
        says: a part of the one sentence.
        display: where nothing may be held down any more.
    """
    assert program.wait() == status, program.out + program.err
    told = program.out + program.err
    assert "Traceback" not in told
    assert "Exception" not in told
    assert "never retrieved" not in told
    assert "Task was destroyed" not in told
    sentences = [
        line for line in told.splitlines() if says in line and not line.startswith(("  ", "task:", "recorded"))
    ]
    assert len(sentences) == 1, told
    assert sentences[0].startswith(("not done: ", "stopped: ", "done: ", "dry run over: ", "mai-agent: "))
    if outcome is None:
        assert not list_bundles(program.runs)
    else:
        bundle = program.bundle
        assert (bundle.outcome, bundle.run.status) == (outcome, status)
        assert says in bundle.run.message
        assert [step.step for step in bundle.steps] == list(range(1, len(bundle.steps) + 1))
    if display is not None:
        assert display.pressed() == []
    assert program.left_over() == []


def environ_without_display() -> dict[str, str]:
    """The environment of a machine without a screen."""
    return {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
