"""The program that shows the self-test window: draws a pattern, and prints the window's events as lines of JSON.

The window has a process of its own, so that it is a client of the desktop like any other.
"""

import os
import select
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent.core.geometry import Size
from agent.desktop.self_test.capture import Pattern
from foundation.errors import MaiError
from foundation.printing import put_json

TITLE, APP = "mai-agent doctor", "mai-agent-doctor"


class Shown(ABC):
    """A window of one display system. All methods raise EnvironmentLacksError if the desktop is gone."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern, self.turned, self.size = pattern, False, Size(640, 480)
        self._text, self._there = "", False

    @abstractmethod
    def fileno(self) -> int:
        """Return the file descriptor to wait on."""

    @abstractmethod
    def take(self) -> None:
        """Handle all pending events."""

    @abstractmethod
    def draw(self) -> None:
        """Draw the pattern, and call `drawn` once it is shown."""

    @abstractmethod
    def clipboard(self) -> str:
        """Return the text on the clipboard; "" for none."""

    @abstractmethod
    def close(self) -> None:
        """Close the window."""

    def tell(self, kind: str, **more: Any) -> None:
        with suppress(OSError):  # the reader is gone
            put_json({"kind": kind, **more})

    def drawn(self, *, turned: bool) -> None:
        self.tell("turned" if self._there else "there", width=self.size.width, height=self.size.height, turned=turned)
        self._there = True

    def key(self, name: str, modifiers: list[str], character: str, *, down: bool) -> None:
        """Report a key that went down or came up, and keep the text that it enters or pastes."""
        self.tell("key" if down else "key up", name=name, modifiers=sorted(modifiers))
        if not down:
            return
        entered = character if character.isprintable() and not {"ctrl", "alt", "super"} & set(modifiers) else ""
        if ("ctrl" in modifiers and name.lower() == "v") or ("shift" in modifiers and name == "Insert"):
            entered = self.clipboard()
        if entered:
            self._text += entered
            self.tell("text", text=self._text)

    def obey(self, word: str) -> None:
        if word == "turn":
            self.turned = not self.turned
            self.draw()
        elif word == "clear":
            self._text = ""
            self.tell("cleared")


def serve(show: Callable[[Pattern], Shown]) -> None:
    """Show a window whose pattern has the seed in `sys.argv`, until standard input ends or says "end"."""
    try:
        window = show(Pattern(int(sys.argv[1])))
        words: list[str] = []
        while "end" not in words:
            window.take()
            if 0 in select.select([window.fileno(), 0], [], [])[0]:
                words = os.read(0, 4096).decode("ascii", "replace").split() or ["end"]
                for word in words:
                    window.obey(word)
        window.close()
    except MaiError as error:
        put_json({"kind": "failed", "why": str(error)})
