"""Keymaps by libxkbcommon, which every Wayland desktop and toolkit uses, through ctypes.

The package xkbcommon has no wheels: it would need a compiler and headers at installation.
"""

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import Any

from foundation.errors import EnvironmentLacksError

_TEXT_V1 = 1  # XKB_KEYMAP_FORMAT_TEXT_V1 (xkbcommon.h), which is also what Wayland calls it
_EFFECTIVE = 1 << 3  # XKB_STATE_MODS_EFFECTIVE
#: XKB's codes are those of Linux and 8 more (the X11 protocol keeps the first ones).
_OFFSET = 8
_MOST_MASKS = 8
_MODIFIERS = {b"Shift": "shift", b"Control": "ctrl", b"Mod1": "alt", b"Mod4": "super"}


class Keymap:
    """A keymap as the compositor gave it, and the modifiers that are down.

    Raises:
        EnvironmentLacksError: libxkbcommon is missing, or does not understand it.
    """

    def __init__(self, text: bytes) -> None:
        self._library = library = _library()
        self._context = library.xkb_context_new(0)
        self._map = library.xkb_keymap_new_from_string(self._context, text.rstrip(b"\0"), _TEXT_V1, 0)
        if not self._map:
            library.xkb_context_unref(self._context)
            raise EnvironmentLacksError("The keymap of this desktop is not understood by libxkbcommon.")
        self._state = library.xkb_state_new(self._map)

    def set_modifiers(self, held: int, latched: int, locked: int, group: int) -> None:
        """Take over the modifiers that the compositor tells."""
        self._library.xkb_state_update_mask(self._state, held, latched, locked, 0, 0, group)

    def name(self, code: int) -> str:
        """XKB's name of a key with the present modifiers, such as Escape or Cyrillic_ya; by Linux's code."""
        keysym = self._library.xkb_state_key_get_one_sym(self._state, code + _OFFSET)
        room = ctypes.create_string_buffer(64)
        self._library.xkb_keysym_get_name(keysym, room, len(room))
        return room.value.decode("ascii", "replace")

    def character(self, code: int) -> str:
        """The text that a key types with the present modifiers; "" for none."""
        room = ctypes.create_string_buffer(64)
        self._library.xkb_state_key_get_utf8(self._state, code + _OFFSET, room, len(room))
        return room.value.decode("utf-8", "replace")

    def modifiers(self) -> list[str]:
        """The modifiers that are down, by our names."""
        active = self._library.xkb_state_mod_name_is_active
        return [ours for theirs, ours in _MODIFIERS.items() if active(self._state, theirs, _EFFECTIVE) == 1]

    def layouts(self) -> list[str]:
        """The names of its layouts, such as English (US)."""
        told = (self._library.xkb_keymap_layout_get_name(self._map, one) for one in range(self.count()))
        return [(name or b"without a name").decode("utf-8", "replace") for name in told]

    def count(self) -> int:
        """The number of its layouts."""
        return int(self._library.xkb_keymap_num_layouts(self._map))

    def levels(self, code: int, layout: int) -> Iterator[tuple[str, set[int]]]:
        """The character of each level of a key in a layout ("" for a dead key or none), and how the level is reached.

        A level is reached by any of some sets of modifiers, as bits of XKB's real modifiers.
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
        """Free it."""
        self._library.xkb_state_unref(self._state)
        self._library.xkb_keymap_unref(self._map)
        self._library.xkb_context_unref(self._context)


def character_of(keysym: int) -> str:
    """The character of a keysym; "" for none. Raises EnvironmentLacksError."""
    number = _library().xkb_keysym_to_utf32(keysym)
    return chr(number) if number else ""


def name_of(keysym: int) -> str:
    """The name of a keysym. Raises EnvironmentLacksError."""
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
        ("xkb_keymap_layout_get_name", text, (pointer, number)),
        ("xkb_keymap_num_levels_for_key", number, (pointer, number, number)),
        ("xkb_keymap_key_get_syms_by_level", ctypes.c_int, (pointer, number, number, number, pointer)),
        ("xkb_keymap_key_get_mods_for_level", size, (pointer, number, number, number, pointer, size)),
        ("xkb_state_new", pointer, (pointer,)),
        ("xkb_state_unref", None, (pointer,)),
        ("xkb_state_update_mask", number, (pointer, *(number,) * 6)),
        ("xkb_state_key_get_one_sym", number, (pointer, number)),
        ("xkb_state_key_get_utf8", ctypes.c_int, (pointer, number, text, size)),
        ("xkb_state_mod_name_is_active", ctypes.c_int, (pointer, text, number)),
        ("xkb_keysym_get_name", ctypes.c_int, (number, text, size)),
        ("xkb_keysym_to_utf32", number, (number,)),
    ):
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise EnvironmentLacksError(
                "The library libxkbcommon is older than 1.0.", "Install a newer one."
            ) from error
        function.restype, function.argtypes = result, arguments
    return library
