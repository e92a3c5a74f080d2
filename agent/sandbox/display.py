"""The size, number, cookie and socket of a sandbox's X display."""

import os
import random
import secrets
import socket
import struct
from contextlib import closing, suppress
from pathlib import Path

from agent.core.geometry import Size
from foundation.errors import EnvironmentLacksError, UsageError

#: Folder of the X servers' sockets.
SOCKETS = Path("/tmp/.X11-unix")  # noqa: S108 -- all programs expect it here
#: Lower numbers belong to servers that take the first free number, and to displays forwarded over SSH.
_NUMBERS = range(100, 10_000)
_TRIES = 50
#: FamilyLocal in an Xauthority file (libXau).
_LOCAL = 256


def reserve(folder: Path, *, elsewhere: bool) -> int:
    """Reserve a display number that no other X server uses.

    With `elsewhere`, the server's socket is in the sandbox's own /tmp, and a symbolic link to it reserves the number.
    Raises EnvironmentLacksError if there is no folder for sockets.
    """
    problem: OSError | None = None
    for number in random.sample(_NUMBERS, _TRIES):
        place = SOCKETS / f"X{number}"
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as one:
            answers = one.connect_ex(f"\0{SOCKETS}/X{number}") == 0
        if answers or (SOCKETS.parent / f".X{number}-lock").exists():
            continue
        try:
            SOCKETS.mkdir(mode=0o1777, exist_ok=True)
            if elsewhere:
                place.symlink_to(inside(folder) / place.name)
            elif os.path.lexists(place):
                continue
            return number
        except OSError as error:
            problem = error
    raise EnvironmentLacksError(
        f"The sandbox's display gets no socket in {SOCKETS} ({problem or 'all numbers are taken'}).",
        "May you write there? It is made when the machine starts.",
    )


def release(folder: Path) -> None:
    """Remove the link to a sandbox's socket, and links to sandboxes that are gone."""
    target = inside(folder)
    with suppress(OSError):
        for place in SOCKETS.iterdir():
            with suppress(OSError):
                destination = place.readlink() if place.is_symlink() else place
                lost = destination.parent.match("mai-agent-sandbox-*/tmp/.X11-unix") and not destination.parent.exists()
                if destination.parent == target or lost:
                    place.unlink()


def inside(folder: Path) -> Path:
    """Return the path of the sandbox's socket folder as seen from outside."""
    return folder / "tmp" / SOCKETS.name


def write_cookie(path: Path, number: int) -> None:
    """Write a new X cookie for a display of this machine."""
    fields = (os.uname().nodename.encode(), str(number).encode(), b"MIT-MAGIC-COOKIE-1", secrets.token_bytes(16))
    record = struct.pack(">H", _LOCAL) + b"".join(struct.pack(">H", len(field)) + field for field in fields)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(record)


#: On a smaller screen, dialogs of the common desktops do not fit.
SMALLEST = Size(640, 480)
#: 8K in both orientations: 236 MB for the display, and as much for each screenshot in memory.
LONGEST = 7680


def check_size(size: Size) -> None:
    """Raise UsageError for a size at which a desktop is not usable."""
    if size.width < SMALLEST.width or size.height < SMALLEST.height:
        raise UsageError(f"A sandbox of {size} is too small: its windows would not fit.", f"Take at least {SMALLEST}.")
    if max(size.width, size.height) > LONGEST:
        raise UsageError(f"A sandbox of {size} is too large.", f"Take at most {LONGEST} on a side.")
