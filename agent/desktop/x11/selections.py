"""Selections of X11: offers a text for pasting, reads them by xclip, and puts back what they held before."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent.desktop.protocol.clipboard import HungError
from agent.desktop.x11.connection import client_of, open_display

_PROGRAM_TIMEOUT = 3.0
#: Seconds for each question about the clipboard; an owner that hangs answers none.
_ANSWERS = 0.3
_KEEPER = Path(__file__).with_name("selection_keeper_process.py")
#: All that the keeper needs: no key and no mark of a sandbox may end up in a process that outlives us.
_ENVIRONMENT = ("DISPLAY", "XAUTHORITY", "HOME", "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
#: Kinds that are kept, of those that there are. Reading each takes some milliseconds, and programs offer up to fifty,
#: most of them the same picture or text in other words.
_KEPT = (
    "UTF8_STRING", "text/html", "text/rtf", "text/uri-list", "image/png", "image/svg+xml",
    "x-special/gnome-copied-files", "x-special/mate-copied-files", "application/x-kde-cutselection",
    "x-kde-passwordManagerHint",
)  # fmt: skip
#: Where a program offers no UTF-8 itself.
_OLD = "STRING"
#: More bytes than this are not kept.
_MOST = 64_000_000
#: An application that has asked nothing for so many seconds has what it wants; longer is not waited.
_QUIET, _LONGEST = 0.06, 0.6


@contextmanager
def saved(display: Any, names: Sequence[str]) -> Iterator[None]:
    """Put these selections back afterwards, whatever happens meanwhile."""
    contents = {name: _save(name) for name in names}
    try:
        yield
    finally:
        for name, kinds in contents.items():
            if kinds:
                _own(name, kinds)
                _wait_for_owner(display, name)


class X11Clipboard:
    """The clipboard of an X11 desktop."""

    def __init__(self) -> None:
        self.lacks = "" if shutil.which("xclip") else "the program xclip is missing."

    def kinds(self) -> list[str]:
        return (self.read("TARGETS") or b"").decode("ascii", "replace").split()

    def read(self, kind: str) -> bytes | None:
        try:
            return _run_xclip("clipboard", "-o", "-t", kind, seconds=_ANSWERS)
        except (subprocess.TimeoutExpired, OSError) as error:
            raise HungError from error


def _save(selection: str) -> dict[str, bytes]:
    """What a selection holds, by its kinds; none where that is nothing that can be kept."""
    listed = _xclip(selection, "-o", "-t", "TARGETS")
    targets = listed.decode("ascii", "replace").split("\n") if listed else []
    wanted = [one for one in _KEPT if one in targets] or [one for one in (_OLD,) if one in targets]
    found: dict[str, bytes] = {}
    for target in wanted:
        data = _xclip(selection, "-o", "-t", target)
        if data is not None and sum(map(len, found.values())) + len(data) <= _MOST:
            found[target] = data
    return found


def _own(selection: str, kinds: dict[str, bytes]) -> None:
    """Own a selection in another process, which lives until somebody copies."""
    if len(kinds) == 1:
        [(target, data)] = kinds.items()
        _xclip(selection, "-i", "-t", target, data=data)
        return
    told = b"".join(f"{name} {len(data)}\n".encode() + data for name, data in kinds.items())
    with suppress(subprocess.TimeoutExpired, OSError):
        subprocess.run(
            [sys.executable, "-P", str(_KEEPER), selection],
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}, start_new_session=True,
            input=told, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_PROGRAM_TIMEOUT, check=False,
        )  # fmt: skip


def _wait_for_owner(display: Any, selection: str) -> None:
    """Wait until the selection has an owner, so that we do not take it from a program that copies next."""
    deadline = time.monotonic() + _PROGRAM_TIMEOUT
    while isinstance(display.get_selection_owner(display.intern_atom(selection)), int):
        if time.monotonic() >= deadline:
            return
        time.sleep(0.005)


def _xclip(selection: str, *arguments: str, data: bytes | None = None) -> bytes | None:
    """Run xclip; None when it has nothing to say. A hung owner costs at most the timeout."""
    with suppress(subprocess.TimeoutExpired, OSError):
        return _run_xclip(selection.lower(), *arguments, data=data)
    return None


def _run_xclip(
    selection: str, *arguments: str, data: bytes | None = None, seconds: float = _PROGRAM_TIMEOUT
) -> bytes | None:
    # As an owner, xclip stays in the background with its output open: only readers get a pipe.
    done = subprocess.run(
        ["xclip", "-selection", selection, *arguments],
        input=data or b"", stdout=subprocess.DEVNULL if data is not None else subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=seconds, check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else None


class SelectionOwner:
    """Offers a text for pasting, and knows when it was fetched; answers only while it serves.

    With a plain clipboard tool nobody can tell whether the text arrived, and restoring the person's clipboard too early
    pastes that instead. Being the owner answers both: a paste is over when the application has asked for the text.

    The text is for `client`, a connection, or for the focused application if that is None. Others look at any time, and
    do not count; another application that has the focus gets nothing, and is kept as `thief`.
    """

    def __init__(self, text: str, names: Sequence[str], client: int | None = None) -> None:
        from Xlib import X

        self._data = text.encode("utf-8")
        self._client = client
        self.thief = False
        self._asked = 0.0  # when it asked last, for anything
        self._display = open_display()
        window = self._display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        for name in names:
            window.set_selection_owner(self._display.intern_atom(name), X.CurrentTime)
        self._display.sync()

    def serve(self, seconds: float, *, until_fetched: bool = False) -> bool:
        """Answer requests for so long; whether the application that it is for fetched the text."""
        fetched, deadline = False, time.monotonic() + seconds
        while True:
            fetched = self._answer_all() or fetched
            left = deadline - time.monotonic()
            if left <= 0 or (fetched and until_fetched):
                return fetched
            select.select([self._display.fileno()], [], [], left)

    def serve_paste(self, timeout: float, check: Callable[[], None]) -> bool:
        """Serve until the text was fetched, and until that application asks nothing more; False when it was not."""
        deadline = time.monotonic() + timeout
        while not self.serve(_QUIET, until_fetched=True):
            check()
            if self.thief or time.monotonic() >= deadline:
                return False
        # Some fetch twice, and Chromium looks again and again at what there is before it takes what it fetched.
        deadline, self._asked = time.monotonic() + _LONGEST, time.monotonic()
        while (now := time.monotonic()) < deadline and now < self._asked + _QUIET:
            self.serve(self._asked + _QUIET - now)
        return True

    def close(self) -> None:
        """Offer it no more."""
        self._display.close()

    def _answer_all(self) -> bool:
        """Answer what was asked so far; whether the text was fetched."""
        from Xlib import X

        fetched = False
        while self._display.pending_events():
            event = self._display.next_event()
            fetched = (event.type == X.SelectionRequest and self._answer(event)) or fetched
        return fetched

    def _answer(self, request: Any) -> bool:
        """Answer one request; whether it was that of the application that the text is for, and for the text."""
        from Xlib import Xatom
        from Xlib.protocol import event

        atom = self._display.intern_atom
        utf8, targets = atom("UTF8_STRING"), atom("TARGETS")
        kinds = {utf8, Xatom.STRING, atom("TEXT"), atom("text/plain;charset=utf-8")}
        where = request.property or request.target  # obsolete clients leave the property out
        asks, has_focus = client_of(self._display, request.requestor.id), self._with_focus()
        wanted = has_focus if self._client is None else self._client
        self._asked = time.monotonic() if asks == wanted else self._asked
        steals = asks == has_focus != wanted and request.target in kinds
        self.thief = self.thief or steals
        if request.target == targets:
            request.requestor.change_property(where, Xatom.ATOM, 32, [targets, *sorted(kinds)])
        elif steals:
            where = 0
        elif request.target == Xatom.STRING:
            latin = self._data.decode("utf-8").encode("latin-1", "replace")
            request.requestor.change_property(where, Xatom.STRING, 8, latin)
        elif request.target in kinds:
            request.requestor.change_property(where, utf8, 8, self._data)
        else:
            where = 0
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=request.requestor, selection=request.selection,
                target=request.target, property=where,
            )
        )  # fmt: skip
        self._display.flush()
        return request.target in kinds and asks == wanted

    def _with_focus(self) -> int | None:
        """The connection whose window has the focus; None for no window."""
        focus = self._display.get_input_focus().focus
        return None if isinstance(focus, int) else client_of(self._display, focus.id)
