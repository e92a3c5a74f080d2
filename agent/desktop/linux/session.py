"""Checks the user's session: folders, the portal and PipeWire. Each check is a finding."""

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from agent.desktop.protocol.desktop import Finding
from foundation.configs import state_folder

_TIMEOUT = 1.0
_PACKAGES = (
    "Install it: apt-get install xdg-desktop-portal and the backend of your desktop (xdg-desktop-portal-gnome, -kde)"
)


def folders(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check the runtime folder, shared memory, and the file of the portal's restore token."""
    yield _runtime(environ.get("XDG_RUNTIME_DIR", ""))
    yield _shared_memory(Path("/dev/shm"))  # noqa: S108 -- only checked, never written
    token = state_folder() / "portal.json"
    if token.exists():  # anyone who can read it has our access to the desktop
        mode = _mode(token)
        detail = f"what the desktop's dialog allowed is kept in {token} (mode {mode:04o})"
        yield _finding("consent", detail, f"chmod 0600 {token}" if mode & 0o077 else "")


def _finding(name: str, detail: str, remedy: str) -> Finding:
    """Return a finding. An empty remedy means that the check passed."""
    return Finding(name, ok=not remedy, detail=detail, remedy=remedy)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _runtime(path: str) -> Finding:
    name = "runtime folder"
    if not path:
        remedy = "Start from a terminal of the desktop; over SSH: export XDG_RUNTIME_DIR=/run/user/$(id -u)."
        return _finding(name, "XDG_RUNTIME_DIR is not set", remedy)
    try:
        mode, owner = _mode(Path(path)), Path(path).stat().st_uid
    except OSError as error:
        return _finding(name, f"{path}: {error.strerror}", "Log out and in again.")
    if owner != os.getuid():
        detail = f"{path} belongs to user {owner}, and this is user {os.getuid()}"
        return _finding(name, detail, "Do not start it with sudo or su.")
    if mode & 0o077:
        return _finding(name, f"others may use {path} (mode {mode:04o})", f"chmod 0700 {path}")
    return _finding(name, f"{path}, yours alone (mode {mode:04o})", "")


def _shared_memory(path: Path) -> Finding:
    name = "shared memory"
    try:
        mode = _mode(path)
    except OSError as error:
        return _finding(name, f"{path}: {error.strerror}", f"mount -t tmpfs tmpfs {path}")
    if os.access(path, os.W_OK | os.X_OK) and mode & stat.S_ISVTX:
        return _finding(name, f"{path} has mode {mode:04o}", "")
    return _finding(name, f"{path} has mode {mode:04o}, not 1777", f"sudo chmod 1777 {path}")


def portal(environ: Mapping[str, str], lacking: str) -> Iterator[Finding]:
    """Report what the desktop portal (GNOME, KDE) lacks, and check PipeWire. `lacking` is "" if nothing is missing."""
    yield _finding("portal", lacking or "it lets programs see and use the screen, by consent", lacking and _PACKAGES)
    yield _pipewire(environ)


def _pipewire(environ: Mapping[str, str]) -> Finding:
    path = Path(environ.get("XDG_RUNTIME_DIR") or "/nowhere", environ.get("PIPEWIRE_REMOTE") or "pipewire-0")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as tried:
        tried.settimeout(_TIMEOUT)
        try:
            tried.connect(str(path))
        except OSError as error:
            remedy = "systemctl --user start pipewire wireplumber (packages pipewire, wireplumber)"
            detail = f"PipeWire, which brings the picture, does not answer at {path} ({error.strerror})"
            return _finding("PipeWire", detail, remedy)
    return _finding("PipeWire", f"answers at {path}", "")
