"""The real `mai-agent` in a real terminal (tmux), read from its pane and from every byte that it wrote."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Pane:
    """One tmux server of its own, with one pane in which `mai-agent` runs.

    Args:
        folder: where its runs, its state and its output go.
        engine: the options that say which model it follows.
    """

    def __init__(self, folder: Path, *engine: str) -> None:
        self._engine = engine or ("--engine", "literal")
        self.written = folder / "written"
        self.runs = folder / "runs"
        self._socket = str(folder / "tmux")
        self._environ = {**os.environ, "MAI_AGENT_STATE": str(folder / "state"), "COLORTERM": "truecolor"}
        self._environ.pop("TMUX", None)
        self._environ.pop("DISPLAY", None)

    def start(self, *arguments: str, size: tuple[int, int] = (120, 36)) -> None:
        words = [
            sys.executable,
            "-m",
            "agent",
            "--sandbox",
            *self._engine,
            "--runs",
            str(self.runs),
            *arguments,
        ]
        shell = " ".join(f"'{word}'" for word in words) + "; echo exit=$?; exec cat"
        width, height = map(str, size)
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "-c", str(ROOT), shell)
        self._tmux("pipe-pane", "-O", f"cat > '{self.written}'")

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *arguments], env=self._environ, capture_output=True, text=True, check=True
        ).stdout

    @property
    def text(self) -> str:
        return self._tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def wait(self, *words: str, seconds: float = 60) -> str:
        return self.wait_until(lambda text: all(word in text for word in words), " and ".join(words), seconds)

    def wait_until(self, condition: Callable[[str], bool], what: str, seconds: float = 60) -> str:
        deadline = time.monotonic() + seconds
        while not condition(text := self.text):
            assert time.monotonic() < deadline, f"never: {what}\n{text}"
            time.sleep(0.05)
        return text

    def bundle(self) -> tuple[dict[str, object], list[dict[str, object]]]:
        newest = max(self.runs.iterdir())
        steps = [json.loads(line) for line in (newest / "steps.jsonl").read_text().splitlines()]
        return json.loads((newest / "run.json").read_text()), steps

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], env=self._environ, capture_output=True)
