"""Enters text by pasting it, and puts the person's clipboard back.

Typing key by key drops every character that the keyboard layout lacks, so text goes through the selections.
"""

import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from agent.desktop.hand import ActionFailedError
from agent.desktop.x11.text import Keyboard, SelectionOwner
from foundation.errors import EnvironmentLacksError

#: Pasted at once; longer text goes in pieces. X servers refuse properties above 256 KiB without special requests.
_PIECE_BYTES = 60_000
#: An application that has not fetched the text after this many seconds does not take pasted text.
_FETCH_TIMEOUT = 1.5
#: Text that is not taken when pasted is typed key by key, if it is at most this long.
_MOST_KEYS = 200
_PROGRAM_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class _Saved:
    """What the clipboard held: one target with its bytes; None where it held nothing that can be kept."""

    target: str
    data: bytes


class X11TextEntry:
    """Text through CLIPBOARD and PRIMARY; needs xclip to put the old clipboard back.

    Raises:
        EnvironmentLacksError: xclip is missing.
    """

    def __init__(self) -> None:
        if shutil.which("xclip") is None:
            raise EnvironmentLacksError("The program xclip is missing.", "Install it: apt-get install xclip.")

    def enter(self, text: str, press_paste: Callable[[], None], check_stop: Callable[[], None]) -> None:
        """Paste the text, or type it where pasting is not taken; the selections are restored whatever happens."""
        saved = {name: _save(name) for name in ("clipboard", "primary")}
        try:
            for number, piece in enumerate(pieces(text, _PIECE_BYTES)):
                check_stop()
                with SelectionOwner(piece) as owner:
                    time.sleep(0.03)  # a clipboard manager looks at once; its look must not count as the paste
                    owner.arm()
                    press_paste()
                    if owner.wait_fetched(_FETCH_TIMEOUT, check_stop):
                        continue
                with SelectionOwner(""):  # a late fetch by an application that hung must not get the person's own
                    if number or not _type_keys(text, check_stop):
                        raise ActionFailedError("nothing on the screen took the text: is the right field focused?")
        finally:
            for name, content in saved.items():
                _restore(name, content)


def _type_keys(text: str, check_stop: Callable[[], None]) -> bool:
    """Type short plain text key by key; False when this keyboard cannot."""
    if len(text) > _MOST_KEYS:
        return False
    keyboard = Keyboard()
    try:
        strokes = keyboard.strokes(text)
        if strokes is None:
            return False
        keyboard.press(strokes, check_stop)
        return True
    finally:
        keyboard.close()


def pieces(text: str, most: int) -> list[str]:
    """The text in pieces of at most `most` UTF-8 bytes, cut between characters."""
    found: list[str] = []
    start = size = 0
    for index, char in enumerate(text):
        length = len(char.encode("utf-8"))
        if size + length > most and index > start:
            found.append(text[start:index])
            start, size = index, 0
        size += length
    return [*found, text[start:]] if text else []


def _save(selection: str) -> _Saved | None:
    listed = _xclip(selection, "-o", "-t", "TARGETS")
    targets = listed.decode("ascii", "replace").split() if listed else []
    for target in ("UTF8_STRING", "image/png", "text/html"):
        if target in targets and (data := _xclip(selection, "-o", "-t", target)) is not None:
            return _Saved(target, data)
    return None


def _restore(selection: str, saved: _Saved | None) -> None:
    if saved is not None:
        _xclip(selection, "-i", "-t", saved.target, data=saved.data)


def _xclip(selection: str, *arguments: str, data: bytes | None = None) -> bytes | None:
    """Run xclip; None when it has nothing to say. A hung owner costs at most the timeout."""
    with suppress(subprocess.TimeoutExpired, OSError):
        # As an owner, xclip stays in the background with its output open: only readers get a pipe.
        done = subprocess.run(
            ["xclip", "-selection", selection, *arguments],
            input=data, stdout=subprocess.DEVNULL if data is not None else subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=_PROGRAM_TIMEOUT, check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None
    return None
