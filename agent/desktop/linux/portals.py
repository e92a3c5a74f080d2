"""Which backend the desktop portal takes for what we need of it, as its configuration says (portals.conf(5)).

The portal says nothing of a file that it cannot read, and takes another backend, or none.
"""

import configparser
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: What a run needs of it.
NEEDED = ("RemoteDesktop", "ScreenCast")
_IMPLEMENTED = "org.freedesktop.impl.portal."
_FOLDER = "xdg-desktop-portal"


@dataclass(frozen=True, slots=True)
class Served:
    """Who serves one part of the portal."""

    backend: str  # "" for nobody
    by: str  # what says so: a file, or words


def served(interface: str, environ: Mapping[str, str]) -> Served:
    """Who serves an interface, such as ScreenCast, in the session of an environment."""
    installed = {name: table for name, table in _backends(environ) if f"{_IMPLEMENTED}{interface}" in table[0]}
    readable = next((one for one in configurations(environ) if os.access(one, os.R_OK)), None)
    if readable is None:
        desktops = {one.lower() for one in _desktops(environ)}
        fitting = [name for name, (_, uses) in installed.items() if uses & desktops]
        return Served(next(iter(fitting), ""), "no portals.conf; its own file names the desktop")
    preferred = _read(readable).get("preferred", {})
    wanted = preferred.get(f"{_IMPLEMENTED}{interface}", preferred.get("default", ""))
    for name in filter(None, wanted.split(";")):
        if name == "*" and installed:
            return Served(next(iter(sorted(installed))), str(readable))
        if name in installed:
            return Served(name, str(readable))
    return Served("", str(readable))


def unreadable(environ: Mapping[str, str]) -> list[Path]:
    """Files of its configuration that are there and that it cannot read."""
    return [one for one in (*configurations(environ), *_files(environ)) if not os.access(one, os.R_OK)]


def configurations(environ: Mapping[str, str]) -> list[Path]:
    """The files that say which backends are taken, the one that counts first."""
    desktops = [one.lower() for one in _desktops(environ)]
    names = [*(f"{one}-portals.conf" for one in desktops), "portals.conf"]
    home = Path(environ.get("HOME") or "/nowhere")
    folders = [
        Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
        *map(Path, (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")),
        Path("/etc"),
        *_data(environ),
    ]
    return [file for folder in folders for name in names if (file := folder / _FOLDER / name).is_file()]


def _data(environ: Mapping[str, str]) -> list[Path]:
    home = environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or "/nowhere", ".local/share")
    return [Path(home), *map(Path, (environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":"))]


def _desktops(environ: Mapping[str, str]) -> list[str]:
    return [one for one in environ.get("XDG_CURRENT_DESKTOP", "").split(":") if one]


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    for folder in _data(environ):
        yield from sorted((folder / _FOLDER / "portals").glob("*.portal"))


def _backends(environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[set[str], set[str]]]]:
    """The installed backends: what they implement, and for which desktops."""
    for file in _files(environ):
        table = _read(file).get("portal", {})
        uses = {one.lower() for one in table.get("usein", "").split(";") if one}
        yield file.stem, (set(table.get("interfaces", "").split(";")), uses)


def _read(file: Path) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = _option  # type: ignore[method-assign]  # names of interfaces keep their case
    try:
        parser.read_string(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, configparser.Error):
        return {}
    return {name.lower(): dict(parser[name]) for name in parser.sections()}


def _option(optionstr: str) -> str:
    """Names of interfaces as they are written; all others in small letters."""
    return optionstr if "." in optionstr else optionstr.lower()
