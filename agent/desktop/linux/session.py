"""Checks the portal and PipeWire for `doctor`. Each check is a finding."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from agent.desktop.protocol.desktop import Finding

_TIMEOUT = 1.0
_PACKAGES = (
    "Install it: apt-get install xdg-desktop-portal and the backend of your desktop (xdg-desktop-portal-gnome, -kde)"
)


def _finding(name: str, detail: str, remedy: str) -> Finding:
    """Return a finding. An empty remedy means that the check passed."""
    return Finding(name, ok=not remedy, detail=detail, remedy=remedy)


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
