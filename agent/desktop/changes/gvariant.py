"""Parse, serialize and print GVariant values, the format of dconf's settings, by calling GLib through ctypes.

Every machine with dconf has GLib. PyGObject has no wheels; `gsettings get` costs 29 ms per key for its process and
cannot read a key without a schema.
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
    """A GVariant value; create it with `read`, `parse` or `string`."""

    def __init__(self, pointer: int) -> None:
        self._glib = _glib()
        self._pointer = self._glib.g_variant_ref_sink(pointer)

    def __del__(self) -> None:
        self._glib.g_variant_unref(self._pointer)

    @property
    def type(self) -> str:
        """The type string, such as a{sv}."""
        return str(self._glib.g_variant_get_type_string(self._pointer).decode())

    def text(self) -> str:
        """Return the value with type annotations, as `gsettings get` and `dconf read` print it."""
        printed = self._glib.g_variant_print(self._pointer, 1)
        try:
            return ctypes.string_at(printed).decode("utf-8", "replace")
        finally:
            self._glib.g_free(printed)

    def bytes(self) -> bytes:
        """Return the value in GLib's serialized form."""
        size = self._glib.g_variant_get_size(self._pointer)
        return ctypes.string_at(self._glib.g_variant_get_data(self._pointer), size) if size else b""

    def plain(self) -> str:
        """Return the content of a string. Raises ValueError: the value is not a string."""
        if self.type != "s":
            raise ValueError(f"{self.type} is no string")
        return str(self._glib.g_variant_get_string(self._pointer, None).decode("utf-8", "replace"))

    def children(self) -> "list[Variant]":
        """Return the values in a container."""
        count = self._glib.g_variant_n_children(self._pointer)
        return [_taken(self._glib.g_variant_get_child_value(self._pointer, at)) for at in range(count)]

    def lookup(self, key: str) -> "Variant | None":
        """Return the value of a key in an a{sv} dictionary, or None if the key is missing."""
        found = self._glib.g_variant_lookup_value(self._pointer, key.encode(), None)
        return _taken(found) if found else None


def read(data: bytes) -> Variant:
    """Deserialize the value inside a serialized variant. Raises ValueError: the bytes are not a valid variant."""
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
    """Parse a value from its text form. Raises ValueError: the text is not a value of this type."""
    glib = _glib()
    if not glib.g_variant_type_string_is_valid(kind.encode()) or "\0" in text:
        raise ValueError(f"{kind!r} is no type, or its value no text")
    pointer = glib.g_variant_parse(kind.encode(), text.encode(), None, None, None)
    if not pointer:
        raise ValueError(f"no value of the type {kind}")
    return _taken(pointer)


def string(text: str) -> Variant:
    """Return a text as a string value."""
    return Variant(_glib().g_variant_new_string(text.encode()))


def _taken(pointer: int) -> Variant:
    """Wrap a pointer whose reference GLib transferred to us."""
    value = Variant(pointer)
    value._glib.g_variant_unref(pointer)
    return value


@cache
def _glib() -> _Library:
    """Load GLib. Raises ValueError: GLib is not installed."""
    try:
        library = ctypes.CDLL("libglib-2.0.so.0")
    except OSError as error:
        raise ValueError("GLib is missing") from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
