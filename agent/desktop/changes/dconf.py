"""Track settings in dconf, which `gsettings` writes. The database file is read directly, so nothing is started and
nothing can hang.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from agent.core.changes import Change
from agent.desktop.changes.gvariant import Variant, read
from agent.desktop.changes.gvdb import Table
from agent.desktop.changes.settings import Setting, differences, read_bounded
from agent.desktop.linux import places

#: Files larger than this are not read. The largest file seen had 60 KB.
_LARGEST = 8_000_000


class DconfStore:
    """A `Source`. A setting whose value equals its default counts as not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._file = places.config_home(environ) / "dconf" / "user"
        self._schemas = Schemas(environ)
        self._before = b""
        self.remark = ""

    def begin(self) -> None:
        self._before = self._read()

    def changes(self) -> list[Change]:
        now = self._read()
        if now == self._before:
            return []
        old, new = self._values(self._before), self._values(now)
        differing = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        return list(
            differences(
                "dconf",
                {key: setting for key in sorted(differing) if (setting := self._setting(key, old.get(key)))},
                {key: setting for key in sorted(differing) if (setting := self._setting(key, new.get(key)))},
                name=str,
                place=str,
            )
        )

    def current(self, key: str) -> str | None:
        """Return a key's value in GVariant's text form, or None if it is not set. Raises ValueError: the value is
        damaged.
        """
        data = self._values(self._read()).get(key)
        return None if data is None else read(data).text()

    def _setting(self, key: str, data: bytes | None) -> Setting | None:
        if data is None:
            return self._schemas.default(key)
        with suppress(ValueError):
            text = read(data).text()
            return Setting(text, text)
        return Setting(f"{len(data)} bytes of an unknown kind", None)

    def _values(self, data: bytes) -> dict[str, bytes]:
        with suppress(ValueError):
            return dict(Table(data).values()) if data else {}
        self.remark = f"{self._file} cannot be read: it is not known which settings in dconf change."
        return {}

    def _read(self) -> bytes:
        for _ in range(3):  # while the file is being replaced, its header is zeroed
            data = read_bounded(self._file, _LARGEST)
            if not data or data[:8].strip(b"\0"):
                return data
        return b""


class Schemas:
    """The keys' defaults from GLib's compiled schemas, loaded on first use."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        folders = [places.data_home(environ), *places.data_dirs(environ)]
        self._files = [folder / "glib-2.0/schemas/gschemas.compiled" for folder in folders]
        if environ.get("GSETTINGS_SCHEMA_DIR"):
            own = environ["GSETTINGS_SCHEMA_DIR"].split(":")
            self._files = [*(Path(folder) / "gschemas.compiled" for folder in own), *self._files]
        self._desktops = environ.get("XDG_CURRENT_DESKTOP", "").split(":")

    def default(self, key: str) -> Setting | None:
        """Return a key's default, or None if no schema with a fixed path has the key."""
        folder, _, name = key.rpartition("/")
        with suppress(ValueError):
            for table in self._by_path.get(f"{folder}/", []):
                entry = self._entry(table, name)
                if entry is not None:
                    return self._default_in(entry)
        return None

    def _entry(self, table: Table | None, name: str, depth: int = 8) -> Variant | None:
        """Return the schema's entry for a key; inherited from the schema that it extends if needed."""
        if table is None or depth == 0:
            return None
        values = dict(table.values())
        if name in values:
            return read(values[name])
        parent = values.get(".extends")
        return None if parent is None else self._entry(self._by_id.get(read(parent).plain()), name, depth - 1)

    def _default_in(self, entry: Variant) -> Setting:
        """Return the default in a schema's entry: a tuple of the default and of options, each marked by a letter.

        It has no data: putting it back means resetting the key.
        """
        default, *options = entry.children()
        for option in options:
            if option.type == "(ya{sv})":
                letter, own = option.children()
                if letter.bytes() == b"d":  # defaults for particular desktops
                    found = next((one for desktop in self._desktops if (one := own.lookup(desktop))), None)
                    if found is not None:
                        return Setting(found.text(), None)
        return Setting(default.text(), None)

    @cached_property
    def _by_id(self) -> dict[str, Table]:
        found: dict[str, Table] = {}
        for file in self._files:
            with suppress(ValueError):
                data = read_bounded(file, _LARGEST)
                for name, table in Table(data).tables() if data else ():
                    found.setdefault(name, table)
        return found

    @cached_property
    def _by_path(self) -> dict[str, list[Table]]:
        found: dict[str, list[Table]] = {}
        for table in self._by_id.values():
            told = table.value(".path")
            if told is not None:
                found.setdefault(read(told).plain(), []).append(table)
        return found
