"""Settings of KDE: the keys in its configuration files."""

import re
import stat
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import Setting, differences, entry, is_kde_file, matches
from agent.desktop.changes.entries import read_bounded
from agent.desktop.linux import places

#: Files larger than this hold no user settings. The file of shortcuts has 40 KB.
_LARGEST = 1_000_000
_GROUP = re.compile(r"\[([^\]]*)\]")

Place = tuple[str, tuple[str, ...], str]  # file, groups from the outermost in, and key


class KdeStore:
    """A `Store` of KDE's settings."""

    remark = ""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._folder = places.config_home(environ)
        self._before: dict[str, tuple[object, bytes]] = {}
        self._first: dict[tuple[str, tuple[str, ...]], dict[Place, Setting]] = {}  # written on first starts, by group

    def begin(self) -> None:
        self._before = dict(self._read({}))

    def changes(self) -> list[Change]:
        now = dict(self._read(self._before))
        old: dict[Place, Setting] = {}
        new: dict[Place, Setting] = {}
        for name in sorted(self._before.keys() | now.keys()):
            before, after = self._before.get(name, (0, b""))[1], now.get(name, (0, b""))[1]
            if before != after:
                was = {(name, *key): Setting(value, value) for key, value in parse(before).items()}
                now_is = {(name, *key): Setting(value, value) for key, value in parse(after).items()}
                old |= was | self._first_start(name, was, now_is)
                new |= now_is
        return list(
            differences(
                "kde",
                old,
                new,
                name=lambda place: "/".join([place[0], *place[1], place[2]]),
                place=lambda place: [place[0], list(place[1]), place[2]],
            )
        )

    def mark(self) -> Hashable:
        return tuple(_marks(self._folder))

    def _first_start(
        self, name: str, was: Mapping[Place, Setting], now: Mapping[Place, Setting]
    ) -> dict[Place, Setting]:
        """Return the settings that applications wrote on their first start, with the values first seen."""
        if matches("settings", "kde_desktop_files", name):
            return {}
        known = {groups for _, groups, _ in was} | {groups for file, groups in self._first if file == name}
        written = {place: setting for place, setting in now.items() if place[1] not in known}
        if len(written) >= entry("settings", "kde_first_keys"):
            for place, setting in written.items():
                self._first.setdefault((name, place[1]), {})[place] = setting
        return {place: one for (file, _), wrote in self._first.items() if file == name for place, one in wrote.items()}

    def _read(self, known: Mapping[str, tuple[object, bytes]]) -> Iterator[tuple[str, tuple[object, bytes]]]:
        """Yield each file's name with its mark and content. Files with an unchanged mark are not read again."""
        for name, mark in _marks(self._folder):
            before = known.get(name)
            yield name, before if before and before[0] == mark else (mark, read_bounded(self._folder / name, _LARGEST))


def _marks(folder: Path) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield KDE's files, by path relative to the configuration folder, with a mark that changes on every write."""
    for path in [*folder.glob("*"), *folder.glob("kdedefaults/*")]:
        name = str(path.relative_to(folder))
        with suppress(OSError):
            if is_kde_file(name) and stat.S_ISREG((status := path.stat()).st_mode):
                yield name, (status.st_ino, status.st_size, status.st_mtime_ns)


def parse(data: bytes) -> dict[tuple[tuple[str, ...], str], str]:
    """Return the values in a KConfig file by group and key, as they are written there."""
    found: dict[tuple[tuple[str, ...], str], str] = {}
    groups: tuple[str, ...] = ()
    for raw in data.decode("utf-8", "replace").split("\n"):
        line = raw.strip()
        if line.startswith("["):
            groups = tuple(_GROUP.findall(line))
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[groups, key.strip()] = value.strip()
    return found


def edited(data: bytes, groups: tuple[str, ...], key: str, value: str | None) -> bytes:
    """Return the file with one key set, or removed if the value is None. Everything else stays as it is."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    here: tuple[str, ...] = ()
    group_end: int | None = None if groups else 0
    for number, raw in enumerate(lines):
        line = raw.strip()
        if line.startswith("["):
            here = tuple(_GROUP.findall(line))
        elif here == groups and "=" in line and not line.startswith("#") and line.partition("=")[0].strip() == key:
            lines[number : number + 1] = [] if value is None else [f"{key}={value}"]
            break
        if here == groups and line:
            group_end = number + 1
    else:
        if value is not None and group_end is None:
            while lines and not lines[-1]:
                lines.pop()
            lines += [*([""] if lines else []), "".join(f"[{one}]" for one in groups), ""]
            group_end = len(lines) - 1
        if value is not None and group_end is not None:
            lines.insert(group_end, f"{key}={value}")
    return "\n".join(lines).encode("utf-8", "surrogateescape")
