"""Read GVDB files: the hash tables of GVariant values in which dconf stores settings and GLib stores schemas.

Parsing the files directly starts no process, needs no installed program, and finds relocatable schemas too. The format
is defined in GLib's gvdb-format.h; every offset is checked.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SIGNATURE = b"GVariant"
_NO_PARENT = 0xFFFFFFFF
#: Most parts in an item's name; a longer chain of parents means that the file is damaged.
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class _Item:
    parent: int
    name: str
    kind: str  # "v": a value; "H": a table; "L": a list of the items below it
    start: int
    end: int


class Table:
    """One hash table of a GVDB file.

    Raises:
        ValueError: the file is damaged or not in the GVDB format.
    """

    def __init__(self, data: bytes, start: int | None = None, end: int | None = None) -> None:
        if start is None or end is None:
            if data[:8] != _SIGNATURE or len(data) < 24:
                raise ValueError("no GVDB file")
            start, end = struct.unpack_from("<II", data, 16)
        self._data = data
        self._items = list(_read_items(data, start, min(end, len(data))))

    def values(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name of each value and its bytes, a serialized variant."""
        for item in self._items:
            if item.kind == "v":
                yield self._full_name(item), self._data[item.start : item.end]

    def tables(self) -> Iterator[tuple[str, "Table"]]:
        """Yield each nested table with its name."""
        for item in self._items:
            if item.kind == "H":
                yield self._full_name(item), Table(self._data, item.start, item.end)

    def value(self, name: str) -> bytes | None:
        """Return the bytes of a value, or None if there is no value of this name."""
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
