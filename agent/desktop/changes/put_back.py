"""Undo a `Change` recorded by the witness, using its `undo` data, and check first how things are now."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from agent.core.changes import CannotPutBackError, Standing, is_empty_file
from agent.desktop.changes import dconf, kde, xfconf
from agent.desktop.changes.entries import LARGEST_READ, entry_at, read_bounded, state
from agent.desktop.changes.files import TRASH
from agent.desktop.linux import places
from agent.desktop.linux.bus import BusError
from agent.desktop.programs import MARK
from foundation.files import write_atomically

Undo: TypeAlias = Mapping[str, Any]

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_TAKEN = "dconf did not take it: it may be locked"
#: Stands for an unreachable folder: nothing exists in it, and nothing can be created.
_NOWHERE = "/proc/self/fd/none"


@contextmanager
def confined_path(environ: Mapping[str, str], path: str) -> Iterator[str]:
    """Yield a path to the same file in a sandbox's home. Symbolic links cannot redirect it while it is used.

    Programs in a sandbox can create links in its home while we, who can write outside of it, put something back. If a
    link is in the path, or the place is outside of the home, the yielded path leads nowhere. In the user's own home,
    the path stays as it is.
    """
    folder, name = os.path.split(path)
    with confined_folder(environ, Path(folder)) as parent:
        yield f"{parent}/{name}"


@contextmanager
def confined_folder(environ: Mapping[str, str], folder: Path, *, make: bool = False) -> Iterator[str]:
    """Do the same as `confined_path` for a folder. With `make`, create it and its parents."""
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
    """Open a folder.

    Raises OSError: the folder does not exist, or its path contains a link. ValueError: it is outside of the home.
    """
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


def standing(environ: Mapping[str, str], undo: Undo) -> Standing:
    """Return the present state of a changed thing. Raises CannotPutBackError."""
    with _guarded():
        if undo.get("store") == "file":
            with (
                confined_path(environ, _path(undo["path"])) as path,
                confined_path(environ, _path(undo.get("to", "/"))) as target,
            ):
                return _standing_at(path, target, undo)
        now = _current(environ, undo)
        return "as_left" if now == undo["after"] else "as_before" if now == undo["before"] else "otherwise"


def put_back(environ: Mapping[str, str], undo: Undo) -> str:
    """Undo a change whose state is still `as_left`, and return what was done, in words. Raises CannotPutBackError."""
    with _guarded():
        return (_put_back_file if undo.get("store") == "file" else _put_back_setting)(environ, undo)


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotPutBackError(error.strerror or str(error)) from error
    except subprocess.SubprocessError as error:
        raise CannotPutBackError(_NOT_TAKEN) from error
    except BusError as error:
        raise CannotPutBackError(f"its settings cannot be reached: {error}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise CannotPutBackError("the record of it is damaged") from error


def _current(environ: Mapping[str, str], undo: Undo) -> Any:
    match undo["store"]:
        case "dconf":
            return dconf.current(environ, undo["key"])
        case "xfconf":
            return xfconf.current(environ, *undo["key"])
        case "kde":
            file, groups, key = undo["key"]
            return kde.parse(read_bounded(_kde_file(environ, file), LARGEST_READ)).get((tuple(groups), key))
    raise CannotPutBackError("this version does not know such settings")


def _put_back_setting(environ: Mapping[str, str], undo: Undo) -> str:
    before = undo["before"]
    match undo["store"]:
        case "dconf":
            dconf.set_again(environ, undo["key"], before)
            if before is not None and dconf.current(environ, undo["key"]) != before:
                raise CannotPutBackError(_NOT_TAKEN)
        case "xfconf":
            channel, name = undo["key"]
            xfconf.set_again(environ, channel, name, before)
        case "kde":
            file, groups, key = undo["key"]
            path = _kde_file(environ, file)
            with confined_path(environ, str(path)) as place:
                now = entry_at(place)
                if now is not None and now.is_link and MARK in environ:
                    raise CannotPutBackError("a link is there now")
                read = read_bounded(Path(place), LARGEST_READ, now.inode if now and MARK in environ else None)
                write_atomically(Path(place), kde.edited(read, tuple(groups), key, before))
    return "reset" if before is None else "put back"


def _kde_file(environ: Mapping[str, str], name: str) -> Path:
    path = places.config_home(environ) / name
    if ".." in path.parts or Path(name).is_absolute():
        raise ValueError("no file of configurations")
    return path


def _standing_at(path: str, to: str, undo: Undo) -> Standing:
    how = undo["how"]
    now = entry_at(path)
    stands = None if now is None else state(path, now)
    if how == "made":
        return "as_before" if stands is None else "as_left" if stands == undo["state"] else "otherwise"
    if how == "moved":
        target = entry_at(to)
        if target is None or (target.is_folder, target.inode) != (undo["folder"], undo["inode"]):
            return "as_before" if stands is not None and target is None else "otherwise"
        return "as_left" if stands is None else "otherwise"
    if not undo["folder"] and undo.get("content") is None:
        raise CannotPutBackError("what it held is not known any more")
    if how == "gone":
        if stands is None:
            return "as_left"
        return "as_before" if (stands["folder"] if undo["folder"] else _holds(path, undo)) else "otherwise"
    return "as_left" if stands == undo["state"] else "as_before" if _holds(path, undo) else "otherwise"


def _holds(path: str, undo: Undo) -> bool:
    return read_bounded(Path(path), LARGEST_READ) == str(undo["content"]).encode()


def _put_back_file(environ: Mapping[str, str], undo: Undo) -> str:
    path = _path(undo["path"])
    match undo["how"]:
        case "made" if is_empty_file(undo):
            with confined_path(environ, path) as place:
                Path(place).unlink()
            return "deleted"
        case "made":
            return f"moved to the trash, as {move_to_trash(environ, path)}"
        case "moved":
            source = _path(undo["to"])
            with confined_path(environ, source) as source_place, confined_path(environ, path) as place:
                _move(source_place, place)
            trash = places.home(environ) / TRASH
            if Path(source).parent == trash:
                with suppress(OSError), confined_folder(environ, trash.parent / "info") as info:
                    Path(info, f"{Path(source).name}.trashinfo").unlink()
            return "moved back"
        case "gone" if undo["folder"]:
            with confined_path(environ, path) as place:
                Path(place).mkdir(0o700)
                _at(place, os.O_RDONLY | os.O_DIRECTORY, lambda number: os.fchmod(number, _mode(undo, 0o755)))
            return "made again, as an empty folder"
    with confined_path(environ, path) as place:
        now = entry_at(place)
        content = str(undo["content"]).encode()
        if now is not None and now.is_file and Path(place).lstat().st_nlink > 1:
            # Write in place, so that other hard links to the file still lead to it.
            _at(place, os.O_WRONLY | os.O_TRUNC, lambda number: os.write(number, content))
        else:
            kept = now.mode & 0o777 if now is not None and now.is_file else _mode(undo, 0o644)
            write_atomically(Path(place), content, kept)
    return "written as it was"


def _at(place: str, flags: int, use: Callable[[int], object]) -> None:
    """Open what is at a place, unless a program has put a link there meanwhile, and use its descriptor."""
    number = os.open(place, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        use(number)
    finally:
        os.close(number)


def _mode(undo: Undo, otherwise: int) -> int:
    """Return the permissions that a deleted file or folder had; `otherwise` if they are not recorded."""
    return (int(undo.get("mode") or 0) & 0o777) or otherwise


def _path(quoted: str) -> str:
    path = os.fsdecode(unquote_to_bytes(quoted))
    if not path.startswith("/"):
        raise ValueError("no full path")
    return path


def _move(source: str, target: str) -> None:
    """Rename, but never overwrite."""
    if entry_at(target) is not None:
        raise CannotPutBackError("something else is there now")
    os.rename(source, target)  # noqa: PTH104 -- names need not be text


def move_to_trash(environ: Mapping[str, str], path: str) -> str:
    """Move a file or folder to the home's trash (FreeDesktop.org Trash specification 1.0), and return its new path.

    Raises OSError: it cannot be moved; nothing has changed.
    """
    name = os.path.basename(path)  # noqa: PTH119 -- names need not be text
    trash_info = f"[Trash Info]\nPath={quote(os.fsencode(path))}\nDeletionDate={time.strftime('%FT%T')}\n"
    trash = places.home(environ) / TRASH
    with (
        confined_folder(environ, trash, make=True) as files,
        confined_folder(environ, trash.parent / "info", make=True) as info,
        confined_path(environ, path) as source,
    ):
        for number in count(1):
            own = name if number == 1 else f"{name}.{number}"
            note = Path(info, f"{own}.trashinfo")
            with suppress(FileExistsError), note.open("x", encoding="ascii") as file:
                file.write(trash_info)
                break
        try:
            _move(source, f"{files}/{own}")
        except BaseException:
            note.unlink()
            raise
        return str(trash / own)
