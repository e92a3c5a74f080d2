"""Track settings in dconf, which `gsettings` writes.

The database file is read directly, so nothing can hang, and keys of relocatable schemas are found too. The file is a
GVDB table (GLib's gvdb-format.h); every offset is checked. The GVariant values in it are printed and serialized by GLib
through ctypes: every machine with dconf has GLib. PyGObject has no wheels; `gsettings get` cannot read a key without a
schema.
"""

import ctypes
import struct
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import Setting, differences
from agent.desktop.changes.entries import Entry, entry_at, read_bounded
from agent.desktop.linux import places

#: Files larger than this are not read. The largest file seen had 60 KB.
_LARGEST = 8_000_000
#: Seconds for `gsettings` to list all defaults. It takes 26 ms for 2,168 keys.
_PATIENCE = 2.0
_SIGNATURE = b"GVariant"
_NO_PARENT = 0xFFFFFFFF
#: Most parts in an item's name; a longer chain of parents means that the file is damaged.
_DEEPEST = 64
_POINTER, _TEXT, _SIZE, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
_FUNCTIONS = {
    "g_bytes_new": (_POINTER, _TEXT, _SIZE),
    "g_bytes_unref": (None, _POINTER),
    "g_free": (None, _POINTER),
    "g_variant_get_data": (_POINTER, _POINTER),
    "g_variant_get_size": (_SIZE, _POINTER),
    "g_variant_get_variant": (_POINTER, _POINTER),
    "g_variant_is_normal_form": (_INT, _POINTER),
    "g_variant_new_from_bytes": (_POINTER, _POINTER, _POINTER, _INT),
    "g_variant_parse": (_POINTER, _POINTER, _TEXT, _POINTER, _POINTER, _POINTER),
    "g_variant_print": (_POINTER, _POINTER, _INT),
    "g_variant_ref_sink": (_POINTER, _POINTER),
    "g_variant_unref": (None, _POINTER),
}


class DconfStore:
    """A `Store`. A setting whose value equals its default counts as not set."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file = places.config_home(environ) / "dconf" / "user"
        self._before = b""
        self.remark = ""

    def begin(self) -> None:
        self._before = self._read()

    def changes(self) -> list[Change]:
        now = self._read()
        if now == self._before:
            return []
        old, new = self._values(self._before), self._values(now)
        differing = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        was, is_now = (
            {key: setting for key in differing if (setting := self._setting(key, values.get(key)))}
            for values in (old, new)
        )
        return list(differences("dconf", was, is_now, name=str, place=str))

    def mark(self) -> Entry | None:
        return entry_at(str(self._file))

    def current(self, key: str) -> str | None:
        """Return a key's value in GVariant's text form, or None if it is not set. Raises ValueError: it is damaged."""
        data = self._values(self._read()).get(key)
        return None if data is None else text_of(data)

    def _setting(self, key: str, data: bytes | None) -> Setting | None:
        if data is None:
            default = self._defaults.get(key)
            return None if default is None else Setting(default, None)  # putting it back means resetting the key
        with suppress(ValueError):
            text = text_of(data)
            return Setting(text, text)
        return Setting(f"{len(data)} bytes of an unknown kind", None)

    @cached_property
    def _defaults(self) -> dict[str, str]:
        """The defaults of all keys that have a fixed path; empty if `gsettings` is missing."""
        found: dict[str, str] = {}
        with suppress(OSError, subprocess.SubprocessError):
            paths = dict(line.split(" ", 1) for line in self._listed("list-schemas", "--print-paths"))
            for schema, key, value in (line.split(" ", 2) for line in self._listed("list-recursively")):
                found.setdefault(paths.get(schema, "") + key, value)
        return found

    def _listed(self, *arguments: str) -> list[str]:
        output = subprocess.run(
            ["gsettings", *arguments], env={**self._environ, "GSETTINGS_BACKEND": "memory"}, timeout=_PATIENCE,
            stdin=subprocess.DEVNULL, capture_output=True, check=True,
        ).stdout  # fmt: skip
        return output.decode("utf-8", "replace").splitlines()

    def _values(self, data: bytes) -> dict[str, bytes]:
        with suppress(ValueError):
            return table(data) if data else {}
        self.remark = f"{self._file} cannot be read: it is not known which settings in dconf change."
        return {}

    def _read(self) -> bytes:
        for _ in range(3):  # while the file is being replaced, its header is zeroed
            data = read_bounded(self._file, _LARGEST)
            if not data or data[:8].strip(b"\0"):
                return data
        return b""


def table(data: bytes) -> dict[str, bytes]:
    """Return the serialized variants in a GVDB file by their full names. Raises ValueError: the file is damaged."""
    if data[:8] != _SIGNATURE:
        raise ValueError("no GVDB file")
    items: list[tuple[int, str, bytes, bytes]] = []  # index of the parent, own part of the name, kind, value
    try:
        start, end = struct.unpack_from("<II", data, 16)
        blooms, buckets = struct.unpack_from("<II", data, start)
        first = start + 8 + 4 * ((blooms & (1 << 27) - 1) + buckets)
        for at in range(first, min(end, len(data)) - 23, 24):
            _, parent, name, length, kind, _, begins, ends = struct.unpack_from("<IIIHccII", data, at)
            if name + length > len(data) or not begins <= ends <= len(data):
                raise ValueError("an item outside the file")
            items.append((parent, data[name : name + length].decode(), kind, data[begins:ends]))
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"a damaged GVDB file: {error}") from error
    found: dict[str, bytes] = {}
    for above, last, kind, value in items:
        name, parent, depth = last, above, 0
        while parent != _NO_PARENT:
            if parent >= len(items) or depth > _DEEPEST:
                raise ValueError("a name without its beginning")
            name, parent, depth = items[parent][1] + name, items[parent][0], depth + 1
        if kind == b"v":
            found[name] = value
    return found


def text_of(data: bytes) -> str:
    """Return the value in a serialized variant as `gsettings get` and `dconf read` print it. Raises ValueError."""
    glib = _glib()
    held = glib.g_bytes_new(data, len(data))
    boxed = glib.g_variant_ref_sink(glib.g_variant_new_from_bytes(b"v", held, 0))
    glib.g_bytes_unref(held)
    try:
        if not glib.g_variant_is_normal_form(boxed):
            raise ValueError("a damaged value")
        value = glib.g_variant_get_variant(boxed)
        printed = glib.g_variant_print(value, 1)
        glib.g_variant_unref(value)
    finally:
        glib.g_variant_unref(boxed)
    try:
        return ctypes.string_at(printed).decode("utf-8", "replace")
    finally:
        glib.g_free(printed)


def serialized(kind: str, text: str) -> bytes:
    """Serialize a value of a valid type from its text form. Raises ValueError: the text is no value of this type."""
    glib = _glib()
    value = None if "\0" in text else glib.g_variant_parse(kind.encode(), text.encode(), None, None, None)
    if not value:
        raise ValueError(f"no value of the type {kind}")
    size = glib.g_variant_get_size(value)
    data = ctypes.string_at(glib.g_variant_get_data(value), size) if size else b""
    glib.g_variant_unref(value)
    return data


@cache
def _glib() -> Any:
    """Load GLib. Raises ValueError: GLib is not installed."""
    try:
        library = ctypes.CDLL("libglib-2.0.so.0")
    except OSError as error:
        raise ValueError("GLib is missing") from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
