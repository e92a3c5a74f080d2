"""Checks the user's session: folders, the portal's configuration and PipeWire. Each check is a finding."""

import configparser
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agent.desktop.linux import places
from agent.desktop.protocol.desktop import Finding
from foundation.configs import state_folder

#: The portal interfaces that a run needs.
NEEDED = ("RemoteDesktop", "ScreenCast")
_IMPLEMENTED = "org.freedesktop.impl.portal."
_FOLDER = "xdg-desktop-portal"
_PATIENCE = 1.0
_PACKAGES = "apt-get install xdg-desktop-portal and the backend of your desktop (xdg-desktop-portal-gnome, -kde)"


def folders(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check the runtime folder, shared memory, and the file of the portal's restore token."""
    yield _runtime(environ.get("XDG_RUNTIME_DIR", ""))
    yield _shared_memory(Path("/dev/shm"))  # noqa: S108 -- only checked, never written
    token = state_folder() / "portal.json"
    if token.exists():  # anyone who can read it has our access to the desktop
        mode = _mode(token)
        told = f"what the desktop's dialog allowed is kept in {token} (mode {mode:04o})"
        yield _finding("consent", told, f"chmod 0600 {token}" if mode & 0o077 else "")


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
        told = f"{path} belongs to user {owner}, and this is user {os.getuid()}"
        return _finding(name, told, "Do not start it with sudo or su.")
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


def portal(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check what the desktop portal (GNOME, KDE) needs."""
    for interface in NEEDED:
        found = served(interface, environ)
        desktop = environ.get("XDG_CURRENT_DESKTOP") or "a desktop without a name"
        good, bad = f"{found.backend} serves it ({found.by})", f"no backend serves it on {desktop} ({found.by})"
        yield _finding(f"portal {interface}", good if found.backend else bad, "" if found.backend else _PACKAGES)
    for file in (*_configurations(environ), *_portal_files(environ)):
        if not os.access(file, os.R_OK):  # the portal then uses another backend, or none
            told = f"{file} cannot be read (mode {_mode(file):04o}), so the portal leaves it out without a word"
            yield _finding("portal configuration", told, f"sudo chmod 0644 {file}")
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
            return _finding("PipeWire", told, remedy)
    return _finding("PipeWire", f"answers at {path}", "")


@dataclass(frozen=True, slots=True)
class Served:
    """The backend that implements a portal interface."""

    backend: str  # "" if there is none
    by: str  # the file that names it, or an explanation


def served(interface: str, environ: Mapping[str, str]) -> Served:
    """Return which backend the portal uses for an interface, such as ScreenCast (portals.conf(5))."""
    wanted_name = f"{_IMPLEMENTED}{interface}"
    installed = {name: uses for name, interfaces, uses in _backends(environ) if wanted_name in interfaces}
    readable = next((one for one in _configurations(environ) if os.access(one, os.R_OK)), None)
    if readable is None:
        desktops = set(_desktops(environ))
        fitting = (name for name, uses in installed.items() if uses & desktops)
        return Served(next(fitting, ""), "no portals.conf; its own file names the desktop")
    preferred = _read(readable).get("preferred", {})
    for name in filter(None, preferred.get(wanted_name, preferred.get("default", "")).split(";")):
        if name in installed or (name == "*" and installed):
            return Served(min(installed) if name == "*" else name, str(readable))
    return Served("", str(readable))


def _desktops(environ: Mapping[str, str]) -> list[str]:
    return [one.lower() for one in environ.get("XDG_CURRENT_DESKTOP", "").split(":") if one]


def _configurations(environ: Mapping[str, str]) -> list[Path]:
    """Return the existing portals.conf files; the first is the one that counts."""
    names = [*(f"{one}-portals.conf" for one in _desktops(environ)), "portals.conf"]
    roots = [places.config_home(environ), *places.config_dirs(environ), Path("/etc"), *_data(environ)]
    return [file for root in roots for name in names if (file := root / _FOLDER / name).is_file()]


def _data(environ: Mapping[str, str]) -> list[Path]:
    return [places.data_home(environ), *places.data_dirs(environ)]


def _portal_files(environ: Mapping[str, str]) -> list[Path]:
    return [file for root in _data(environ) for file in sorted((root / _FOLDER / "portals").glob("*.portal"))]


def _backends(environ: Mapping[str, str]) -> Iterator[tuple[str, set[str], set[str]]]:
    """Yield the installed backends: name, implemented interfaces, and the desktops each is for."""
    for file in _portal_files(environ):
        table = _read(file).get("portal", {})
        uses = {one.lower() for one in table.get("usein", "").split(";") if one}
        yield file.stem, set(table.get("interfaces", "").split(";")), uses


def _read(file: Path) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    # Interface names are case-sensitive.
    parser.optionxform = lambda option: option if "." in option else option.lower()  # type: ignore[method-assign, assignment]
    try:
        parser.read_string(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, configparser.Error):
        return {}
    return {name.lower(): dict(parser[name]) for name in parser.sections()}
