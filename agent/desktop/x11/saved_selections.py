"""What the selections held before a text was pasted, and putting that back."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

_PROGRAM_TIMEOUT = 2.0


@contextmanager
def saved(display: Any, names: Sequence[str]) -> Iterator[None]:
    """Put these selections back afterwards, whatever happens meanwhile."""
    contents = {name: _save(name) for name in names}
    try:
        yield
    finally:
        for name, content in contents.items():
            if content is not None:
                _xclip(name, "-i", "-t", content[0], data=content[1])
                _wait_for_owner(display, name)


def _wait_for_owner(display: Any, selection: str) -> None:
    """Wait until xclip owns it, some time after it has returned: it must not take it from who copies next."""
    deadline = time.monotonic() + _PROGRAM_TIMEOUT
    while isinstance(display.get_selection_owner(display.intern_atom(selection)), int):
        if time.monotonic() >= deadline:
            return
        time.sleep(0.005)


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
            ["xclip", "-selection", selection.lower(), *arguments],
            input=data, stdout=subprocess.DEVNULL if data is not None else subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=_PROGRAM_TIMEOUT, check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None
    return None
