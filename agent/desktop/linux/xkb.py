"""Keymaps by libxkbcommon, which every Wayland desktop and toolkit uses, through ctypes.

The Python package xkbcommon has no wheels: installing it would need a compiler and headers.
"""

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

_TEXT_V1 = 1  # XKB_KEYMAP_FORMAT_TEXT_V1 (xkbcommon.h); Wayland uses the same number
#: XKB keycodes are Linux keycodes plus 8 (the X11 protocol reserves the first 8).
_OFFSET = 8
_MOST_MASKS = 8
_KEYSYMS: dict[str, str] = load_config("keys.toml")["keysyms"]


class Keymap:
    """The compositor's keymap.

    Raises:
        EnvironmentLacksError: libxkbcommon is missing, or cannot parse the keymap.
    """

    def __init__(self, text: bytes) -> None:
        self._library = library = _library()
        self._context = library.xkb_context_new(0)
        self._map = library.xkb_keymap_new_from_string(self._context, text.rstrip(b"\0"), _TEXT_V1, 0)
        if not self._map:
            library.xkb_context_unref(self._context)
            raise EnvironmentLacksError("The keymap of this desktop is not understood by libxkbcommon.")

    def count(self) -> int:
        return int(self._library.xkb_keymap_num_layouts(self._map))

    def levels(self, code: int, layout: int) -> Iterator[tuple[str, set[int]]]:
        """Yield each level of a key in a layout: its character and the modifiers that select it.

        The character is "" for a dead key or none. The modifiers are alternative masks, as bits of XKB's real
        modifiers.
        """
        library, key = self._library, code + _OFFSET
        for level in range(library.xkb_keymap_num_levels_for_key(self._map, key, layout)):
            symbols = ctypes.POINTER(ctypes.c_uint32)()
            count = library.xkb_keymap_key_get_syms_by_level(self._map, key, layout, level, ctypes.byref(symbols))
            masks = (ctypes.c_uint32 * _MOST_MASKS)()
            ways = library.xkb_keymap_key_get_mods_for_level(self._map, key, layout, level, masks, _MOST_MASKS)
            letter = library.xkb_keysym_to_utf32(symbols[0]) if count == 1 else 0
            yield chr(letter) if letter else "", set(masks[:ways])

    def close(self) -> None:
        self._library.xkb_keymap_unref(self._map)
        self._library.xkb_context_unref(self._context)


def keysym_of(key: str) -> str:
    """Return the keysym name of a key of `agent.core.keys`."""
    return key if len(key) == 1 else _KEYSYMS.get(key, key.title())


def character_of(keysym: int) -> str:
    """Return the character of a keysym, or "" if it has none. Raises EnvironmentLacksError."""
    number = _library().xkb_keysym_to_utf32(keysym)
    return chr(number) if number else ""


def name_of(keysym: int) -> str:
    """Return the name of a keysym. Raises EnvironmentLacksError."""
    room = ctypes.create_string_buffer(64)
    _library().xkb_keysym_get_name(keysym, room, len(room))
    return room.value.decode("ascii", "replace")


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL("libxkbcommon.so.0")
    except OSError as error:
        raise EnvironmentLacksError(
            "The library libxkbcommon is missing.", "Install it: apt-get install libxkbcommon0."
        ) from error
    pointer, number, text, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t
    for name, result, arguments in (
        ("xkb_context_new", pointer, (number,)),
        ("xkb_context_unref", None, (pointer,)),
        ("xkb_keymap_new_from_string", pointer, (pointer, text, number, number)),
        ("xkb_keymap_unref", None, (pointer,)),
        ("xkb_keymap_num_layouts", number, (pointer,)),
        ("xkb_keymap_num_levels_for_key", number, (pointer, number, number)),
        ("xkb_keymap_key_get_syms_by_level", ctypes.c_int, (pointer, number, number, number, pointer)),
        ("xkb_keymap_key_get_mods_for_level", size, (pointer, number, number, number, pointer, size)),
        ("xkb_keysym_get_name", ctypes.c_int, (number, text, size)),
        ("xkb_keysym_to_utf32", number, (number,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
