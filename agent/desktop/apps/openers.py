"""Which application opens a file on Linux: its type, and who was chosen for that (MIME applications associations)."""

import configparser
import mimetypes
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.desktop.apps.linux import application_folders, desktops

#: Bytes that tell whether a file of no known type is text.
_SAMPLE = 4096
#: A file of choices larger than this is not read.
_LARGEST = 1_000_000


def types_of(path: Path) -> list[str]:
    """The MIME type of a file or folder, by its name and else by its beginning; then what is more general."""
    if path.is_dir():
        return ["inode/directory"]
    guessed, encoding = mimetypes.guess_type(path.name, strict=False)
    if guessed is None or encoding is not None:
        guessed = "text/plain" if encoding is None and _is_text(path) else "application/octet-stream"
    general = ["text/plain"] if guessed.startswith("text/") and guessed != "text/html" else []
    return list(dict.fromkeys([guessed, *general]))


def chosen_for(types: list[str], environ: Mapping[str, str]) -> list[str]:
    """The desktop files chosen for a type, best first, without ".desktop"."""
    found: list[str] = []
    files = list(_choices(environ))
    for kind in types:
        for choices in files:
            names = choices.get(kind, "").split(";")
            found += [name.strip().removesuffix(".desktop") for name in names if name.strip()]
    return list(dict.fromkeys(found))


def _choices(environ: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """The default applications of each `mimeapps.list`, in order of precedence."""
    home = Path(environ.get("HOME", "/"))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [Path(folder) for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]
    names = [*(f"{desktop.lower()}-mimeapps.list" for desktop in sorted(desktops(environ))), "mimeapps.list"]
    for folder in (config, *shared, *application_folders(environ)):
        for name in names:
            parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",))
            parser.optionxform = str  # type: ignore[assignment,method-assign]  # types are compared as they are
            try:
                path = folder / name
                if path.stat().st_size <= _LARGEST:
                    parser.read_string(path.read_text(encoding="utf-8", errors="replace"))
                    yield dict(parser["Default Applications"])
            except (OSError, configparser.Error, KeyError):
                continue


def _is_text(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            beginning = file.read(_SAMPLE)
    except OSError:
        return False
    try:
        beginning.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(beginning) - 4:
            return False
    return b"\0" not in beginning
