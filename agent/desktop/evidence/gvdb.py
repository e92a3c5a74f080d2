"""Reads GVDB files, in which dconf keeps settings and GLib their schemas: hash tables of GVariant values.

Read here because nothing has to be started and no program has to be installed for it, and relocatable schemas are in
it like all others. The format is that of gvdb-format.h in GLib; every offset is checked.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SIGNATURE = b"GVariant"
_NO_PARENT = 0xFFFFFFFF
#: A path of more names than this is a damaged file.
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class _Item:
    parent: int
    name: str
    kind: str  # "v": a value; "H": a table; "L": a list of the items below it
    start: int
    end: int


class Table:
    """One hash table of a file.

    Raises:
        ValueError: it is no such file, or damaged.
    """

    def __init__(self, data: bytes, start: int | None = None, end: int | None = None) -> None:
        if start is None or end is None:
            if data[:8] != _SIGNATURE or len(data) < 24:
                raise ValueError("no GVDB file")
            start, end = struct.unpack_from("<II", data, 16)
        self._data = data
        self._items = list(_read_items(data, start, min(end, len(data))))

    def values(self) -> Iterator[tuple[str, bytes]]:
        """Each value's name, and its bytes: a variant."""
        for item in self._items:
            if item.kind == "v":
                yield self._full_name(item), self._data[item.start : item.end]

    def tables(self) -> Iterator[tuple[str, "Table"]]:
        """Each table within it, by its name."""
        for item in self._items:
            if item.kind == "H":
                yield self._full_name(item), Table(self._data, item.start, item.end)

    def value(self, name: str) -> bytes | None:
        """The bytes of one value."""
        return next((data for other, data in self.values() if other == name), None)

    def _full_name(self, item: _Item) -> str:
        names = [item.name]
        while item.parent != _NO_PARENT:
            if item.parent >= len(self._items) or len(names) > _DEEPEST:
                raise ValueError("a name without its beginning")
            item = self._items[item.parent]
            names.append(item.name)
        return "".join(reversed(names))


def _read_items(data: bytes, start: int, end: int) -> Iterator[_Item]:
    try:
        blooms, buckets = struct.unpack_from("<II", data, start)
        first = start + 8 + 4 * ((blooms & (1 << 27) - 1) + buckets)
        for at in range(first, end - 23, 24):
            _, parent, name, length, kind, _, begins, ends = struct.unpack_from("<IIIHccII", data, at)
            if name + length > len(data) or not begins <= ends <= len(data):
                raise ValueError("an item outside the file")
            yield _Item(parent, data[name : name + length].decode(), kind.decode("latin-1"), begins, ends)
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"a damaged GVDB file: {error}") from error
