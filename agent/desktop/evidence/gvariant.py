"""Values of GVariant, in which dconf keeps settings: from bytes, to bytes, and as text, by GLib itself.

Every machine with dconf has GLib, so its library is called by ctypes: PyGObject has no wheels, and the command
`gsettings get` takes a process of 29 ms for each key and knows no key without a schema.
"""

import ctypes
from functools import cache
from typing import Any

_Library = Any
_POINTER, _TEXT, _SIZE, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
_FUNCTIONS = {
    "g_bytes_new": (_POINTER, _TEXT, _SIZE),
    "g_bytes_unref": (None, _POINTER),
    "g_free": (None, _POINTER),
    "g_variant_get_child_value": (_POINTER, _POINTER, _SIZE),
    "g_variant_get_data": (_POINTER, _POINTER),
    "g_variant_get_size": (_SIZE, _POINTER),
    "g_variant_get_string": (_TEXT, _POINTER, _POINTER),
    "g_variant_get_type_string": (_TEXT, _POINTER),
    "g_variant_is_normal_form": (_INT, _POINTER),
    "g_variant_lookup_value": (_POINTER, _POINTER, _TEXT, _POINTER),
    "g_variant_n_children": (_SIZE, _POINTER),
    "g_variant_new_from_bytes": (_POINTER, _POINTER, _POINTER, _INT),
    "g_variant_new_string": (_POINTER, _TEXT),
    "g_variant_parse": (_POINTER, _POINTER, _TEXT, _POINTER, _POINTER, _POINTER),
    "g_variant_print": (_POINTER, _POINTER, _INT),
    "g_variant_ref_sink": (_POINTER, _POINTER),
    "g_variant_type_string_is_valid": (_INT, _TEXT),
    "g_variant_unref": (None, _POINTER),
}


class Variant:
    """One value; made by `read`, `parse` and `string`."""

    def __init__(self, pointer: int) -> None:
        self._glib = _glib()
        self._pointer = self._glib.g_variant_ref_sink(pointer)

    def __del__(self) -> None:
        self._glib.g_variant_unref(self._pointer)

    @property
    def type(self) -> str:
        """Its type, such as a{sv}."""
        return str(self._glib.g_variant_get_type_string(self._pointer).decode())

    def text(self) -> str:
        """The value with its types as `gsettings get` and `dconf read` write it."""
        printed = self._glib.g_variant_print(self._pointer, 1)
        try:
            return ctypes.string_at(printed).decode("utf-8", "replace")
        finally:
            self._glib.g_free(printed)

    def bytes(self) -> bytes:
        """The value as GLib stores it."""
        size = self._glib.g_variant_get_size(self._pointer)
        return ctypes.string_at(self._glib.g_variant_get_data(self._pointer), size) if size else b""

    def plain(self) -> str:
        """The content of a string. Raises ValueError: it is none."""
        if self.type != "s":
            raise ValueError(f"{self.type} is no string")
        return str(self._glib.g_variant_get_string(self._pointer, None).decode("utf-8", "replace"))

    def children(self) -> "list[Variant]":
        """The values in a container."""
        count = self._glib.g_variant_n_children(self._pointer)
        return [_taken(self._glib.g_variant_get_child_value(self._pointer, at)) for at in range(count)]

    def lookup(self, key: str) -> "Variant | None":
        """The value of a key in a dictionary a{sv}; None where it has no such key."""
        found = self._glib.g_variant_lookup_value(self._pointer, key.encode(), None)
        return _taken(found) if found else None


def read(data: bytes) -> Variant:
    """The value in the bytes of a variant. Raises ValueError: they are no such value."""
    glib = _glib()
    held = glib.g_bytes_new(data, len(data))
    try:
        boxed = Variant(glib.g_variant_new_from_bytes(b"v", held, 0))
    finally:
        glib.g_bytes_unref(held)
    if not glib.g_variant_is_normal_form(boxed._pointer):
        raise ValueError("a damaged value")
    return boxed.children()[0]


def parse(kind: str, text: str) -> Variant:
    """The value of a type from its text. Raises ValueError: it is none of that type."""
    glib = _glib()
    if not glib.g_variant_type_string_is_valid(kind.encode()) or "\0" in text:
        raise ValueError(f"{kind!r} is no type, or its value no text")
    pointer = glib.g_variant_parse(kind.encode(), text.encode(), None, None, None)
    if not pointer:
        raise ValueError(f"no value of the type {kind}")
    return _taken(pointer)


def string(text: str) -> Variant:
    """A string as a value."""
    return Variant(_glib().g_variant_new_string(text.encode()))


def _taken(pointer: int) -> Variant:
    """A value that GLib handed over with a reference of ours."""
    value = Variant(pointer)
    value._glib.g_variant_unref(pointer)
    return value


@cache
def _glib() -> _Library:
    """GLib. Raises ValueError: this machine has none, so no value can be read."""
    try:
        library = ctypes.CDLL("libglib-2.0.so.0")
    except OSError as error:
        raise ValueError("GLib is missing") from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
