"""What the application remembers between sessions: its theme, and the past instructions."""

import json
from contextlib import suppress
from pathlib import Path

from foundation.configs import state_folder
from foundation.files import write_atomically

#: Instructions kept; older ones are forgotten.
_MOST = 500


class Memory:
    """Two small files: the theme, and past instructions. Write errors are ignored."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder()
        self.theme = ""
        with suppress(OSError, ValueError, TypeError, KeyError):
            self.theme = str(json.loads((self._folder / "tui.json").read_text(encoding="utf-8"))["theme"])
        self.instructions: list[str] = []
        self._unwritten: set[str] = set()
        with suppress(OSError):
            for line in (self._folder / "instructions.jsonl").read_text(encoding="utf-8").split("\n"):
                with suppress(ValueError):
                    if isinstance(text := json.loads(line), str):
                        self.instructions.append(text)
        self.instructions = self.instructions[-_MOST:]

    def keep_theme(self, name: str) -> None:
        if name != self.theme:
            self.theme = name
            self._write("tui.json", json.dumps({"theme": name}))

    def add_instruction(self, text: str) -> None:
        """Remember an instruction as the newest; one with a secret is not written to disk."""
        from agent.record.redactor import Redactor

        self.instructions = [*(old for old in self.instructions if old != text), text][-_MOST:]
        if Redactor().instruction(text) != text:
            self._unwritten.add(text)
        kept = (old for old in self.instructions if old not in self._unwritten)
        self._write("instructions.jsonl", "".join(json.dumps(old) + "\n" for old in kept))

    def _write(self, name: str, text: str) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._folder / name, text)
