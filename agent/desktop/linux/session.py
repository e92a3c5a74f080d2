"""What else has to be right in a person's session, each as a finding: folders, the portal, PipeWire."""

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from agent.desktop.linux import portals
from agent.desktop.protocol.desktop import Finding
from foundation.configs import state_folder

_PATIENCE = 1.0
_PACKAGES = "apt-get install xdg-desktop-portal and the backend of your desktop (xdg-desktop-portal-gnome, -kde)"


def folders(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The folder for sockets, shared memory, and what the portal gave us."""
    yield _runtime(environ)
    yield _shared_memory(Path("/dev/shm"))  # noqa: S108 -- is looked at only
    token = state_folder() / "portal.json"
    if token.exists():
        yield _token(token)


def _runtime(environ: Mapping[str, str]) -> Finding:
    name, path = "runtime folder", environ.get("XDG_RUNTIME_DIR", "")
    if not path:
        remedy = "Start from a terminal of the desktop; over SSH: export XDG_RUNTIME_DIR=/run/user/$(id -u)."
        return Finding(name, ok=False, detail="XDG_RUNTIME_DIR is not set", remedy=remedy)
    try:
        found = Path(path).stat()
    except OSError as error:
        return Finding(name, ok=False, detail=f"{path}: {error.strerror}", remedy="Log out and in again.")
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid():
        told = f"{path} belongs to user {found.st_uid}, and this is user {os.getuid()}"
        return Finding(name, ok=False, detail=told, remedy="Do not start it with sudo or su.")
    if mode & 0o077:
        return Finding(name, ok=False, detail=f"others may use {path} (mode {mode:04o})", remedy=f"chmod 0700 {path}")
    return Finding(name, ok=True, detail=f"{path}, yours alone (mode {mode:04o})")


def _shared_memory(path: Path) -> Finding:
    name = "shared memory"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return Finding(name, ok=False, detail=f"{path}: {error.strerror}", remedy=f"mount -t tmpfs tmpfs {path}")
    ok = os.access(path, os.W_OK | os.X_OK) and bool(mode & stat.S_ISVTX)
    told = f"{path} has mode {mode:04o}"
    return Finding(
        name, ok=ok, detail=told if ok else f"{told}, not 1777", remedy="" if ok else f"sudo chmod 1777 {path}"
    )


def _token(path: Path) -> Finding:
    """Whoever reads it can use the desktop as we can."""
    mode = stat.S_IMODE(path.stat().st_mode)
    ok = not mode & 0o077
    told = f"what the desktop's dialog allowed is kept in {path} (mode {mode:04o})"
    return Finding("consent", ok=ok, detail=told, remedy="" if ok else f"chmod 0600 {path}")


def portal(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The ways of the desktop portal (GNOME, KDE)."""
    for interface in portals.NEEDED:
        found = portals.served(interface, environ)
        desktop = environ.get("XDG_CURRENT_DESKTOP") or "a desktop without a name"
        if found.backend:
            yield Finding(f"portal {interface}", ok=True, detail=f"{found.backend} serves it ({found.by})")
        else:
            told = f"no backend serves it on {desktop} ({found.by})"
            yield Finding(f"portal {interface}", ok=False, detail=told, remedy=_PACKAGES)
    for file in portals.unreadable(environ):
        mode = stat.S_IMODE(file.stat().st_mode)
        told = f"{file} cannot be read (mode {mode:04o}), so the portal leaves it out without a word"
        yield Finding("portal configuration", ok=False, detail=told, remedy=f"sudo chmod 0644 {file}")
    yield _pipewire(environ)


def _pipewire(environ: Mapping[str, str]) -> Finding:
    path = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", environ.get("PIPEWIRE_REMOTE") or "pipewire-0")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as tried:
        tried.settimeout(_PATIENCE)
        try:
            tried.connect(str(path))
        except OSError as error:
            remedy = "systemctl --user start pipewire wireplumber (packages pipewire, wireplumber)"
            told = f"PipeWire, which brings the picture, does not answer at {path} ({error.strerror})"
            return Finding("PipeWire", ok=False, detail=told, remedy=remedy)
    return Finding("PipeWire", ok=True, detail=f"answers at {path}")
