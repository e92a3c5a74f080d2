"""What the window tells of what reached it, and what is asked of it: lines of JSON out, words in.

The window lives in a process of its own, so that it is a client of the desktop like any other, and so that it can hold
the person's clipboard after the trial: whoever put something there loses it to the window, and has to get it back.
"""

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from agent.desktop.trial.pattern import Pattern
from foundation.errors import EnvironmentLacksError, MaiError
from foundation.printing import close_output, put_json


class Report:
    """Tells what happens to the window, and keeps its text; `copy` and `paste` are what the window does for chords."""

    def __init__(self) -> None:
        self._text = ""
        self.copy: Callable[[], None] = lambda: None
        self.paste: Callable[[], None] = lambda: None

    def tell(self, kind: str, **more: Any) -> None:
        """One line."""
        with suppress(OSError):  # nobody listens any more: the window still has things to put back
            put_json({"kind": kind, **more})

    def key(self, name: str, modifiers: list[str], character: str, *, down: bool) -> None:
        """A key went down or came up."""
        self.tell("key" if down else "key up", name=name, modifiers=sorted(modifiers))
        if not down:
            return
        if "ctrl" in modifiers and name.lower() == "c":
            self.copy()
        elif ("ctrl" in modifiers and name.lower() == "v") or ("shift" in modifiers and name == "Insert"):
            self.paste()
        elif character.isprintable() and not {"ctrl", "alt", "super"} & set(modifiers):
            self.enter(character)

    def enter(self, text: str) -> None:
        """Text was typed or pasted."""
        if text:
            self._text += text
            self.tell("text", text=self._text)

    def clear(self) -> None:
        """Forget the text."""
        self._text = ""


class Shown(Protocol):
    """A window that is shown. All its methods may raise EnvironmentLacksError: the desktop is gone."""

    def fileno(self) -> int:
        """For waiting on it."""

    def take(self) -> None:
        """Take in what came."""

    def turn(self) -> None:
        """Draw the pattern with its colours turned, and tell when that is shown."""

    def end(self) -> bool:
        """Put the clipboard back and close the window; whether the clipboard has still to be served."""

    def close(self) -> None:
        """Hang up."""


#: Shows a window with a pattern, and the text that it gives for copying.
Show = Callable[[Pattern, str, Report], Shown]


def serve(show: Show) -> None:
    """Show a window with the pattern of the number in the arguments, until standard input ends or says so."""
    report, number = Report(), int(sys.argv[1])
    try:
        window = show(Pattern(number), copied_text(number), report)
    except MaiError as error:
        report.tell("failed", why=str(error))
        return
    try:
        _listen(window, report)
        staying = window.end()
        report.tell("ended")
        close_output()
        os.close(1)
        while staying and select.select([window.fileno()], [], []):
            window.take()
            staying = window.end()
    except EnvironmentLacksError as error:
        report.tell("failed", why=str(error))
    finally:
        window.close()


def copied_text(number: int) -> str:
    """What the window gives when something is copied in it."""
    return f"mai-agent doctor {number}"


def _listen(window: Shown, report: Report) -> None:
    while True:
        window.take()
        ready, _, _ = select.select([window.fileno(), 0], [], [])
        if 0 not in ready:
            continue
        words = os.read(0, 4096).decode("ascii", "replace").split()
        if not words or "end" in words:
            return
        for word in words:
            if word == "turn":
                window.turn()
            elif word == "clear":
                report.clear()
                report.tell("cleared")
