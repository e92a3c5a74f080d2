"""X11 selections: offers a text for pasting, reads selections with xclip, and restores their old contents."""

import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent.desktop.linux_desktop import LONGEST, QUIET
from agent.desktop.programs import bare_environ
from agent.desktop.protocol.clipboard import HungError, contents
from agent.desktop.x11.connection import client_of, open_display, with_focus
from agent.desktop.x11.selection_keeper_process import Owner
from foundation.configs import load_config

_PROGRAM_TIMEOUT = 3.0
#: Seconds for each request to the clipboard's owner, which may hang.
_ANSWERS = 0.3
_KEEPER = Path(__file__).with_name("selection_keeper_process.py")


@contextmanager
def saved(display: Any, names: Sequence[str]) -> Iterator[None]:
    """Restore these selections after the block, even if it raises."""
    contents = {name: _save(name) for name in names}
    try:
        yield
    finally:
        for name, kinds in contents.items():
            if kinds:
                _own(name, kinds)
                _wait_for_owner(display, name)


class X11Clipboard:
    """The clipboard of an X11 desktop, or another selection."""

    def __init__(self, selection: str = "CLIPBOARD", seconds: float = _ANSWERS) -> None:
        self._selection, self._seconds = selection, seconds
        self.lacks = "" if shutil.which("xclip") else "the program xclip is missing."

    def kinds(self) -> list[str]:
        return (self.read("TARGETS") or b"").decode("ascii", "replace").split()

    def read(self, kind: str) -> bytes | None:
        return _xclip(self._selection, "-o", "-t", kind, seconds=self._seconds)


def _save(selection: str) -> dict[str, bytes]:
    """Read a selection's contents by type; empty if there is nothing that can be kept."""
    clipboard = X11Clipboard(selection, _PROGRAM_TIMEOUT)
    with suppress(HungError):
        kinds = clipboard.kinds()
        return contents(clipboard, [one for one in load_config("pasting.toml")["kept"] if one in kinds] or ["STRING"])
    return {}


def _own(selection: str, kinds: dict[str, bytes]) -> None:
    """Let another process own a selection until another program copies something."""
    if len(kinds) == 1:
        [(target, data)] = kinds.items()
        with suppress(HungError):
            _xclip(selection, "-i", "-t", target, data=data)
        return
    payload = b"".join(f"{name} {len(data)}\n".encode() + data for name, data in kinds.items())
    with suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(
            [sys.executable, "-P", str(_KEEPER), selection],
            env=bare_environ(), start_new_session=True,
            input=payload, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_PROGRAM_TIMEOUT, check=False,
        )  # fmt: skip


def _wait_for_owner(display: Any, selection: str) -> None:
    """Wait until the selection has an owner, so that our late owner cannot replace what a program copies next."""
    deadline = time.monotonic() + _PROGRAM_TIMEOUT
    while isinstance(display.get_selection_owner(display.intern_atom(selection)), int):
        if time.monotonic() >= deadline:
            return
        time.sleep(0.005)


def _xclip(
    selection: str, *arguments: str, data: bytes | None = None, seconds: float = _PROGRAM_TIMEOUT
) -> bytes | None:
    """Run xclip; None if it fails. Raises HungError: the selection's owner does not answer in time."""
    # As a selection's owner, xclip stays in the background with its output open, so only readers get a pipe.
    try:
        done = subprocess.run(
            ["xclip", "-selection", selection.lower(), *arguments],
            input=data or b"", stdout=subprocess.DEVNULL if data is not None else subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=seconds, check=False,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, OSError) as error:
        raise HungError from error
    return done.stdout if done.returncode == 0 else None


class SelectionOwner(Owner):
    """Offers a text for pasting, and knows when it was fetched. It answers requests only during `serve`.

    If the person's clipboard is restored before the application has requested the text, its content is pasted instead.

    The text is for the application with the connection `client`, or for the focused application if `client` is None.
    Requests of background applications do not count. Another focused application gets nothing, and `thief` is set.
    """

    def __init__(self, text: str, names: Sequence[str], client: int | None = None) -> None:
        self._client = client
        self.thief = False
        self._asked = 0.0  # the time of the application's last request of any kind
        utf8 = "UTF8_STRING", text.encode("utf-8")
        kinds = dict.fromkeys(("UTF8_STRING", "TEXT", "text/plain;charset=utf-8"), utf8)
        super().__init__(open_display(), names, {**kinds, "STRING": ("STRING", text.encode("latin-1", "replace"))})

    def serve(self, seconds: float, *, until_fetched: bool = False) -> bool:
        """Answer requests for some seconds. Return whether the intended application fetched the text."""
        fetched, deadline = False, time.monotonic() + seconds
        while True:
            fetched = self._answer_all() or fetched
            left = deadline - time.monotonic()
            if left <= 0 or (fetched and until_fetched):
                return fetched
            select.select([self.display.fileno()], [], [], left)

    def serve_paste(self, timeout: float, check: Callable[[], None]) -> bool:
        """Serve until the application has fetched the text and requests no more. Return False if it did not fetch."""
        deadline = time.monotonic() + timeout
        while not self.serve(QUIET, until_fetched=True):
            check()
            if self.thief or time.monotonic() >= deadline:
                return False
        deadline, self._asked = time.monotonic() + LONGEST, time.monotonic()
        while (now := time.monotonic()) < deadline and now < self._asked + QUIET:
            self.serve(self._asked + QUIET - now)
        return True

    def close(self) -> None:
        """Stop offering the text."""
        self.display.close()

    def _answer_all(self) -> bool:
        """Answer all pending requests. Return whether the text was fetched."""
        from Xlib import X

        fetched = False
        while self.display.pending_events():
            event = self.display.next_event()
            fetched = (event.type == X.SelectionRequest and self._was_fetched(event)) or fetched
        return fetched

    def _was_fetched(self, request: Any) -> bool:
        """Answer one request. Return whether the intended application requested the text."""
        focus = with_focus(self.display)
        asks, has_focus = (
            None if one is None else client_of(self.display, one.id) for one in (request.requestor, focus)
        )
        wanted = has_focus if self._client is None else self._client
        self._asked = time.monotonic() if asks == wanted else self._asked
        steals = asks == has_focus != wanted and request.target in self.kinds
        self.thief = self.thief or steals
        self.answer(request, refuses=steals)
        return request.target in self.kinds and asks == wanted
