"""Finds the file or folder in the home that a person means by a name or path. Opens nothing, and stays in the home."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agent.desktop.apps.catalogue import plain
from agent.desktop.protocol.hand import ActionFailedError

#: Levels of folders that are searched below the home, and entries that are looked at in total.
_DEEPEST = 4
_MOST_ENTRIES = 20_000
#: Captions of at least this many characters may be a part of a longer name.
_PART = 3
#: Menu entries whose names are read.
_MOST_ENTRIES_READ = 500
#: Characters of a desktop file that are searched for its names.
_ENTRY = 20_000
_CALLED = re.compile(r"^Name(?:\[[^]\n]{1,40}\])?\s*=\s*(.{1,200})$", re.MULTILINE)
#: Paths in the message if several files match.
_MOST_TOLD = 4
#: The folders of a home by their keys in user-dirs.dirs (xdg-user-dirs), and their English names.
_USER_FOLDERS = {
    "DESKTOP": "Desktop", "DOCUMENTS": "Documents", "DOWNLOAD": "Downloads", "MUSIC": "Music", "PICTURES": "Pictures",
    "PUBLICSHARE": "Public", "TEMPLATES": "Templates", "VIDEOS": "Videos",
}  # fmt: skip
_USER_FOLDER = re.compile(r'^\s*XDG_([A-Z]+)_DIR="\$HOME/([^"\n]{1,200})"', re.MULTILINE)
#: "./NAME/..": the folder that contains NAME.
_HOLDER = re.compile(r"\./([^/]*[^/.][^/]*)/\.\.")
#: Suffixes of files that run something when they are opened.
_PROGRAMS = frozenset(
    {
        ".appimage", ".bash", ".bat", ".cmd", ".com", ".command", ".csh", ".deb", ".desktop", ".dll", ".elf", ".exe",
        ".fish", ".flatpak", ".flatpakref", ".jar", ".js", ".ksh", ".kwinscript", ".lnk", ".lua", ".msi", ".pif", ".pl",
        ".plasmoid", ".ps1", ".py", ".pyc", ".pyw", ".rb", ".rpm", ".run", ".scr", ".service", ".sh", ".snap", ".so",
        ".tcl", ".url", ".vbs", ".wsf", ".zsh",
    }
)  # fmt: skip


def is_path(name: str) -> bool:
    """Whether a name can only mean a file or folder, not an application."""
    return name.startswith(("/", "~/", "./", "../", "file:")) or name.endswith("/") or name == "~"


def find_file(name: str, home: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the file or folder with this name or path in a home; None if there is none.

    A bare name is searched in the home and its usual folders first, then further below. Hidden files are skipped.
    "./NAME/.." is the folder that contains NAME. Raises ActionFailedError: several files have this name, or the path is
    outside of the home.
    """
    written = name.strip()
    if written.startswith("file:"):
        url = urlsplit(written)
        written = unquote(url.path) if url.netloc in ("", "localhost") else ""
    if "\0" in written or not written:
        return None
    if holder := _HOLDER.fullmatch(written):
        held = find_file(holder[1], home, environ)
        return held and _inside(held.parent, home, only_folders=True)
    only_folders = written.endswith("/") and written not in ("~/", "/")
    folders = user_folders(home, environ)
    if written in ("~", "~/") or plain(written) in ("home", "home folder", "home directory"):
        return home
    bare = written.removeprefix("./").rstrip("/")
    if written.startswith(("/", "~/", "../")):
        return _inside(Path(home, written.removeprefix("~/")), home, only_folders)
    if "/" in bare:
        first, _, rest = bare.partition("/")
        starts = [folders.get(plain(first)), *(base / first for base in _bases(home, folders))]
        found = [path for start in starts if start is not None if (path := _inside(start / rest, home, only_folders))]
        return _only_one(found, name, home)
    if (folder := folders.get(plain(bare))) is not None and folder.is_dir():
        return folder
    return _by_name(bare, home, folders, only_folders)


def may_start_something(path: Path) -> bool:
    """Whether opening a file may run something: programs, scripts, packages, desktop files, executable files."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return True
    if stat.S_ISDIR(mode):
        return False
    return not stat.S_ISREG(mode) or bool(mode & 0o111) or path.suffix.lower() in _PROGRAMS


def shows_program(name: str, home: Path, environ: Mapping[str, str]) -> bool:
    """Whether a file shown under this caption, in a home or its usual folders, would run something.

    Desktops show a desktop file by the name in it, and wrap and shorten long names, so a part of a name is enough.
    """
    shown = _shown(name)
    paths = (path for base in _bases(home, user_folders(home, environ)) for path in _listed(base)) if shown else ()
    return any(
        may_start_something(path) and any(_is_part(one, called) for one in shown for called in _calls_itself(path))
        for path in paths
    )


def shows_program_in(title: str, names: Iterable[str], home: Path, environ: Mapping[str, str]) -> bool:
    """Whether an icon with one of these captions may run something when it is opened.

    The icon is in the folder that `title` names, or on the desktop if `title` is "". The result is true if the folder
    contains a program and no caption is exactly the name of a harmless file there. If the folder is unknown, the
    result is true only if no caption could be read.
    """
    captions = list(names)
    folders = [user_folders(home, environ)[plain("desktop")]] if not title else _titled(title, home, environ)
    paths = [path for folder in folders for path in _listed(folder)]
    programs = [path for path in paths if may_start_something(path)]
    others = {called for path in paths if path not in programs for called in _calls_itself(path)}
    readable = any(len(one) >= _PART for name in captions for one in _shown(name))
    return (bool(programs) or not (folders or readable)) and not any(_shown(name) & others for name in captions)


def _titled(title: str, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders near the top of a home that a title may mean, by name or by path."""
    bases = _bases(home, user_folders(home, environ))
    near = dict.fromkeys([*bases, *(path for base in bases for path in _listed(base) if path.is_dir())])
    return [path for path in near if re.match(rf"(\S*/)?{re.escape(path.name)}(?!\w)", title, re.IGNORECASE)]


def shows_own_entry(name: str, home: Path, environ: Mapping[str, str]) -> bool:
    """Whether the person, or one of their programs, has added a menu entry with this name."""
    folder = Path(environ.get("XDG_DATA_HOME") or home / ".local/share") / "applications"
    shown = _shown(name)
    entries = (path for path in _listed(folder) if path.suffix == ".desktop") if shown else ()
    return any(called in shown for path in islice(entries, _MOST_ENTRIES_READ) for called in _calls_itself(path)[1:])


def _shown(name: str) -> set[str]:
    return {line.strip().rstrip(".… ").casefold() for line in name.splitlines()} - {""}


def _is_part(shown: str, called: str) -> bool:
    """Whether a caption is a name, or a part of the name that starts at a word."""
    return shown == called or (len(shown) >= _PART and bool(re.search(rf"(?<!\w){re.escape(shown)}", called)))


def _calls_itself(path: Path) -> list[str]:
    """Return the file name, and the names in a desktop file."""
    names = [path.name.casefold()]
    if path.suffix == ".desktop":
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            names += [called.strip().casefold() for called in _CALLED.findall(file.read(_ENTRY))]
    return names


def user_folders(home: Path, environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the usual folders of a home by their names in the person's language and in English, as `plain` text."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "user-dirs.dirs"
    text = ""
    with suppress(OSError):
        text = config.read_text(encoding="utf-8", errors="replace")[:20_000]
    configured = {key: home / folder.rstrip("/") for key, folder in _USER_FOLDER.findall(text) if ".." not in folder}
    found: dict[str, Path] = {}
    for key, english in _USER_FOLDERS.items():
        folder = configured.get(key, home / english)
        for name in (folder.name, english):
            for words in (name, f"{name} folder"):
                found.setdefault(plain(words), folder)
    return found


def shown_path(home: Path, path: Path) -> str:
    """Return a path as shown to people: with `~` for the home."""
    if not path.is_relative_to(home):
        return str(path)
    return "/".join(["~", *path.relative_to(home).parts])


def _inside(path: Path, home: Path, only_folders: bool) -> Path | None:
    """Return a path if it exists. Raises ActionFailedError if it is outside of the home."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    if not real.is_relative_to(home.resolve()):
        raise ActionFailedError(f"{str(path)[:120]} is not in your home: open it yourself")
    return Path(os.path.normpath(path)) if real.is_dir() or not only_folders else None


def _bases(home: Path, folders: Mapping[str, Path]) -> list[Path]:
    """Return the folders that are searched first for a bare name."""
    return [home, *(folder for folder in dict.fromkeys(folders.values()) if folder != home)]


def _by_name(name: str, home: Path, folders: Mapping[str, Path], only_folders: bool) -> Path | None:
    near = (path for base in _bases(home, folders) for path in _listed(base))
    for paths in (near, islice(_below(home), _MOST_ENTRIES)):
        found = _named(name, [path for path in paths if path.is_dir() or not only_folders])
        within = []
        for path in found:
            with suppress(ActionFailedError):
                within += [path] if _inside(path, home, only_folders) else []
        if within:
            return _only_one(within, name, home)
    return None


def _named(name: str, paths: Iterable[Path]) -> list[Path]:
    """Return the paths with exactly this name; else those equal without case; else those equal without suffix."""
    wanted, known = name.casefold(), list(paths)
    exact = [path for path in known if path.name == name]
    alike = exact or [path for path in known if path.name.casefold() == wanted]
    return alike or [path for path in known if path.stem.casefold() == wanted]


def _only_one(found: Iterable[Path], name: str, home: Path) -> Path | None:
    paths = list(dict.fromkeys(found))
    if len(paths) > 1:
        shown_paths = [shown_path(home, path) for path in paths]
        more = f" and {len(shown_paths) - _MOST_TOLD} more" if len(shown_paths) > _MOST_TOLD else ""
        raise ActionFailedError(f"several are called {name[:60]!r}: {', '.join(shown_paths[:_MOST_TOLD])}{more}")
    return paths[0] if paths else None


def _listed(folder: Path) -> list[Path]:
    """Return the entries of a folder that are not hidden, sorted."""
    return sorted(Path(entry.path) for entry in _entries(folder))


def _entries(folder: Path) -> "Iterator[os.DirEntry[str]]":
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (entry for entry in islice(entries, _MOST_ENTRIES) if not entry.name.startswith("."))


def _below(home: Path) -> Iterator[Path]:
    """Yield the entries of a home level by level, within limits and only on the home's file system."""
    device, level = home.stat().st_dev, [home]
    for _ in range(_DEEPEST):
        deeper: list[Path] = []
        for entry in (entry for folder in level for entry in _entries(folder)):
            yield Path(entry.path)
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False) and Path(entry.path).stat().st_dev == device:
                    deeper.append(Path(entry.path))
        level = deeper
