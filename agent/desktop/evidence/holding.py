"""Places in a home by the numbers of their folders, so that no link on the way leads out of it.

Programs of a sandbox can put links into its home, also while something is being put back in there by us, who are
outside and can write where they cannot.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.desktop.linux import places
from agent.desktop.programs import MARK

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: The folder of what cannot be reached: nothing is in it, and nothing can be.
_NOWHERE = "/proc/self/fd/none"


@contextmanager
def held(environ: Mapping[str, str], path: str) -> Iterator[str]:
    """The same place, by a path that strangers cannot lead elsewhere while it is used; a person's own home is as it is.

    Where links are on the way to it, or it is outside of the home, it is nowhere: nothing is there or can be written.
    """
    if MARK not in environ:
        yield path
        return
    folder, name = os.path.split(path)
    with held_folder(environ, Path(folder)) as there:
        yield f"{there}/{name}"


@contextmanager
def held_folder(environ: Mapping[str, str], folder: Path, *, make: bool = False) -> Iterator[str]:
    """The same for a folder; made on demand, with those above it."""
    if MARK not in environ:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield str(folder)
        return
    number = -1
    try:
        with suppress(OSError, ValueError):
            number = _opened(places.home(environ), folder, make=make)
        yield _NOWHERE if number < 0 else f"/proc/self/fd/{number}"
    finally:
        if number >= 0:
            os.close(number)


def _opened(home: Path, folder: Path, *, make: bool) -> int:
    """The number of a folder. Raises OSError: it is not there, or a link is on the way; ValueError: it is outside."""
    parts = folder.relative_to(home).parts
    if ".." in parts:
        raise ValueError("outside of the home")
    number = os.open(home, _FOLDER)
    for part in parts:
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=number)
            inner = os.open(part, _FOLDER, dir_fd=number)
        finally:
            os.close(number)
        number = inner
    return number
