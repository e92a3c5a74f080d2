"""Enters text by pasting it, and puts the person's clipboard back.

Typing key by key drops every character that the keyboard layout lacks, so text goes through the selections.
"""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress

from agent.desktop.hand import ActionFailedError
from agent.desktop.x11.text import SelectionOwner, type_keys
from foundation.errors import EnvironmentLacksError

#: Pasted at once; longer text goes in pieces. X servers refuse properties above 256 KiB without special requests.
_PIECE_BYTES = 60_000
#: An application that has not fetched the text after this many seconds does not take pasted text.
_FETCH_TIMEOUT = 1.5
#: Text that is not taken when pasted is typed key by key, if it is at most this long.
_MOST_KEYS = 200
_PROGRAM_TIMEOUT = 2.0


class X11TextEntry:
    """Text through the clipboards; needs xclip to put the old clipboard back.

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
                if not _paste(piece, press_paste, check_stop) and (number or not _type(text, check_stop)):
                    raise ActionFailedError("nothing on the screen took the text: is the right field focused?")
        finally:
            for name, content in saved.items():
                if content is not None:
                    _xclip(name, "-i", "-t", content[0], data=content[1])


def _paste(text: str, press_paste: Callable[[], None], check_stop: Callable[[], None]) -> bool:
    """Paste it; False when nothing took it."""
    with closing(SelectionOwner(text)) as owner:
        owner.serve(0.03)  # a clipboard manager looks at once; its look must not count as the paste
        press_paste()
        return owner.serve_paste(_FETCH_TIMEOUT, check_stop)


def _type(text: str, check_stop: Callable[[], None]) -> bool:
    """Type it key by key; False when it is long or this keyboard cannot."""
    # A late fetch by an application that hung must not get the person's own.
    with closing(SelectionOwner("")) as nothing:

        def before_each() -> None:
            check_stop()
            nothing.serve(0)

        return len(text) <= _MOST_KEYS and type_keys(text, before_each)


def pieces(text: str, most: int) -> list[str]:
    """The text in pieces of at most `most` UTF-8 bytes, cut between characters."""
    found: list[str] = []
    data = text.encode("utf-8")
    while data:
        piece = data[:most].decode("utf-8", "ignore")
        found.append(piece)
        data = data[len(piece.encode("utf-8")) :]
    return found


def _save(selection: str) -> tuple[str, bytes] | None:
    """What a selection holds: one target with its bytes; None where that is nothing that can be kept."""
    listed = _xclip(selection, "-o", "-t", "TARGETS")
    targets = listed.decode("ascii", "replace").split() if listed else []
    for target in ("UTF8_STRING", "image/png", "text/html"):
        if target in targets and (data := _xclip(selection, "-o", "-t", target)) is not None:
            return target, data
    return None


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
