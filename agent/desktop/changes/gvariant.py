"""Print and serialize GVariant values, the format of dconf's settings, by calling GLib through ctypes.

Every machine with dconf has GLib. PyGObject has no wheels; `gsettings get` cannot read a key without a schema.
"""

import ctypes
from functools import cache
from typing import Any

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


def text_of(data: bytes) -> str:
    """Return the value inside a serialized variant with type annotations, as `gsettings get` and `dconf read` print it.

    Raises ValueError: the bytes are not a valid variant.
    """
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
