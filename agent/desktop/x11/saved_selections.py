"""Reads selections by xclip, and puts back what they held before a text was pasted."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agent.desktop.protocol.clipboard import HungError

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
    """See `Clipboard`."""

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
    """Wait until it is owned, some time after that was asked for: it must not be taken from who copies next."""
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
