"""Installed applications on Linux: desktop files (freedesktop.org Desktop Entry Specification 1.5)."""

import codecs
import configparser
import mimetypes
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from agent.core.languages import languages_of
from agent.desktop.apps.catalogue import App
from agent.desktop.linux import places

#: MIME types that are kept per application.
_MOST_TYPES = 1000
#: Folders that everybody may write to.
_EVERYBODYS = ("/tmp", "/var/tmp", "/dev/shm", "/run/user")  # noqa: S108 -- nothing is written there
_TERMINALS = ("x-terminal-emulator", "xfce4-terminal", "gnome-terminal", "konsole", "xterm")
#: Bytes that are read to tell whether a file of unknown type is text.
_SAMPLE = 4096
#: Bytes. A larger key file is not read.
_LARGEST = 1_000_000


def installed_apps(environ: Mapping[str, str]) -> Iterator[App]:
    """Return the applications that the running desktop would show. A file in an earlier folder hides later ones."""
    languages = languages_of(environ)
    running = desktops(environ)
    seen: set[str] = set()
    for folder in application_folders(environ):
        for path in sorted(folder.rglob("*.desktop")):
            identifier = str(path.relative_to(folder)).removesuffix(".desktop").replace("/", "-")
            if identifier in seen:
                continue
            seen.add(identifier)
            app = read_desktop_file(path, identifier, languages, running)
            if app is not None:
                yield app


def application_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders of desktop files, in order of precedence (XDG Base Directory Specification)."""
    exported = (Path("/var/lib/flatpak/exports/share"), Path("/var/lib/snapd/desktop"))
    folders = [places.data_home(environ), *places.data_dirs(environ), *exported]
    return [path for folder in dict.fromkeys(folders) if (path := folder / "applications").is_dir()]


def read_desktop_file(path: Path, identifier: str, languages: Sequence[str], desktops: frozenset[str]) -> App | None:
    """Parse a desktop file; None if it is hidden, broken, not installed, or meant for other desktops."""
    entry = section(path, "Desktop Entry")
    if entry is None:
        return None
    # Panels of a settings application are in no menu, but "open the sound settings" means one of them.
    panel = "Settings" in _list(entry.get("Categories", ""))
    if (
        entry.get("Hidden") == "true"
        or (entry.get("NoDisplay") == "true" and not panel)
        or entry.get("Type", "Application") != "Application"
    ):
        return None
    only, not_in = _list(entry.get("OnlyShowIn", "")), _list(entry.get("NotShowIn", ""))
    if (only and not desktops & set(only)) or desktops & set(not_in):
        return None

    def localized(key: str) -> str:
        return next((entry[f"{key}[{tag}]"] for tag in languages if f"{key}[{tag}]" in entry), entry.get(key, ""))

    others = [entry.get("Name", ""), localized("GenericName"), entry.get("GenericName", "")]
    app = App(
        id=identifier,
        name=localized("Name") or identifier,
        other_names=tuple(name for name in dict.fromkeys(others) if name),
        command=_command(entry.get("Exec", "")),
        terminal=entry.get("Terminal") == "true",
        files=tuple(_list(entry.get("MimeType", ""))[:_MOST_TYPES]),
        source=path,
        categories=tuple(_list(entry.get("Categories", ""))),
        in_menus=entry.get("NoDisplay") != "true",
    )
    return app if app.command and shutil.which(entry.get("TryExec") or app.program) else None


def is_foreign(app: App, environ: Mapping[str, str], since: float) -> bool:
    """Whether the system did not install an application, or its desktop file is newer than `since` (Unix seconds).

    Both its desktop file and its program must be in system folders. A desktop file in the home hides the system's file
    of the same name, and a program in the home can hide one of the same name elsewhere.
    """
    program = shutil.which(app.program, path=environ.get("PATH"))
    with suppress(OSError):
        if app.source is not None and program is not None and app.source.stat().st_ctime < since:
            return any(_is_own(Path(path), environ) for path in (app.source, program))
    return True


def _is_own(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether a file is in a place where the person, or any of their programs, may write."""
    folders = [environ.get(name, "") for name in ("HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR")]
    own = [Path(folder).resolve() for folder in (*folders, *_EVERYBODYS) if folder]
    real = path.resolve()
    if any(place.is_relative_to(folder) for place in (path.absolute(), real) for folder in own if folder != Path("/")):
        return True
    # Root may write everywhere, so this check says nothing about root.
    return os.geteuid() != 0 and any(os.access(place, os.W_OK) for place in (real, real.parent))


def start_command(app: App, opened: Path | str | None = None) -> list[str] | None:
    """Return the command that starts an application and opens a file or an address.

    None if the application runs in a terminal and no terminal is installed.
    """
    command = [*app.command, *([] if opened is None else [str(opened)])]
    if not app.terminal:
        return command
    terminal = next((name for name in _TERMINALS if shutil.which(name)), None)
    return None if terminal is None else [terminal, "-e", *command]


def desktops(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the running desktop: XFCE, GNOME, KDE, MATE, X-Cinnamon, ..."""
    return frozenset(environ.get("XDG_CURRENT_DESKTOP", "").split(":")) - {""}


def _command(text: str) -> tuple[str, ...]:
    """Split an Exec line and drop its field codes (%f, %U, ...); empty if it cannot be parsed."""
    try:
        parts = shlex.split(text)
    except ValueError:
        return ()
    return tuple(part.replace("%%", "%") for part in parts if not re.fullmatch("%[^%]", part))


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(";") if item.strip()]


def types_of(path: Path) -> list[str]:
    """Return the MIME type of a file or folder, from its name or else its first bytes, then more general types."""
    if path.is_dir():
        return ["inode/directory"]
    guessed, encoding = mimetypes.guess_type(path.name, strict=False)
    if guessed is None or encoding is not None:
        guessed = "text/plain" if encoding is None and _is_text(path) else "application/octet-stream"
    general = ["text/plain"] if guessed.startswith("text/") and guessed != "text/html" else []
    return list(dict.fromkeys([guessed, *general]))


def chosen_for(types: list[str], environ: Mapping[str, str]) -> list[str]:
    """Return the desktop files chosen as default for these types, best first, without ".desktop"."""
    names = [*(f"{desktop.lower()}-mimeapps.list" for desktop in sorted(desktops(environ))), "mimeapps.list"]
    folders = [places.config_home(environ), *places.config_dirs(environ), *application_folders(environ)]
    choices = [section(folder / name, "Default Applications") or {} for folder in folders for name in names]
    found = [name for kind in types for one in choices for name in _list(one.get(kind, ""))]
    return list(dict.fromkeys(name.removesuffix(".desktop") for name in found))


def section(path: Path, name: str) -> Mapping[str, str] | None:
    """Return a section of a key file; None if the file cannot be read or has no such section."""
    with suppress(OSError, configparser.Error, KeyError):
        status = path.stat()
        if status.st_size <= _LARGEST:
            return _parsed(path, status.st_mtime_ns, status.st_ctime_ns)[name]
    return None


@cache
def _parsed(path: Path, *_changed: int) -> Mapping[str, Mapping[str, str]]:
    """Parse a key file. Hundreds are read at the start of each run, so one is parsed again only when it has changed."""
    parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys are case-sensitive
    parser.read_string(path.read_text(encoding="utf-8", errors="replace"))
    return {name: dict(section) for name, section in parser.items()}


def _is_text(path: Path) -> bool:
    with suppress(OSError, UnicodeDecodeError), path.open("rb") as file:
        beginning = file.read(_SAMPLE)
        codecs.getincrementaldecoder("utf-8")().decode(beginning)  # its end may cut a character
        return b"\0" not in beginning
    return False
