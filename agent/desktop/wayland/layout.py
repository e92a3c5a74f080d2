"""Which characters the keyboard of a Wayland session has, and by which keys: read from the compositor's own keymap.

Which of several layouts is in use, nobody tells a program without a window: a character counts only where the same
keys make it in all of them.
"""

import ctypes
import mmap
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.desktop.wayland.strokes import Stroke
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

_GET_KEYBOARD, _CAPABILITIES, _KEYMAP = 1, 0, 0
_POINTER, _KEYBOARD = 1, 2  # a seat's capabilities
_XKB = 1
#: XKB's codes are those of Linux and 8 more (the X11 protocol keeps the first ones).
_OFFSET = 8
_SHIFT = 1  # of XKB's real modifiers, which every keymap numbers alike
_MOST_MASKS = 8
#: The keys that people type with, ordinary ones first: no other key with a sign on it does the same everywhere.
_KEYS = (*range(2, 54), 57, 86, 89, 124)
#: Seconds after which applications know of a pointer or keyboard that is new to its seat: what comes earlier is lost.
#: Lost after 0.07 on a busy machine, not after 0.15.
KNOWN = 0.3


def read_layout(path: str) -> dict[str, Stroke] | None:
    """The characters that the keyboard of a compositor has; None where it has no keyboard, or its map is not known.

    Args:
        path: of the compositor's socket.

    Raises:
        EnvironmentLacksError: it is gone.
    """
    keymap = keymap_of(path)
    if not keymap:
        return None
    with suppress(OSError, AttributeError):  # the library is not there, or older than 1.0
        return characters(keymap)
    return None


@dataclass(frozen=True, slots=True)
class Seat:
    """What a compositor's seat has."""

    pointer: bool
    keyboard: bool


def read_seat(path: str) -> Seat:
    """What the seat of a compositor has now: without a mouse, say, no pointer. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        _, told = _seat(connection)
        return Seat(bool(told & _POINTER), bool(told & _KEYBOARD))


def caps_lock_is_on(lights: Path = Path("/sys/class/leds")) -> bool:
    """Whether a keyboard's light says that Caps Lock is on, which Wayland tells only windows."""
    for light in lights.glob("*::capslock/brightness"):
        with suppress(OSError):
            if light.read_text(encoding="ascii").strip() not in ("", "0"):
                return True
    return False


def _seat(connection: Connection) -> tuple[int, int]:
    """The seat's number, and its capabilities; zeros where there is none."""
    capabilities = [0]

    def heard(opcode: int, arguments: Arguments) -> None:
        if opcode == _CAPABILITIES:
            capabilities.append(arguments.number())

    if not connection.has("wl_seat"):
        return 0, 0
    number = connection.bind("wl_seat", 5, heard)
    connection.roundtrip()
    return number, capabilities[-1]


def keymap_of(path: str) -> bytes:
    """The keymap as text; empty where there is no keyboard. Raises EnvironmentLacksError."""
    found: list[bytes] = []

    def heard(opcode: int, arguments: Arguments) -> None:
        if opcode == _KEYMAP and (text := take_keymap(arguments)):
            found.append(text)

    with closing(Connection(path)) as connection:
        seat, told = _seat(connection)
        if not told & _KEYBOARD:
            return b""
        connection.request(seat, _GET_KEYBOARD, "n", connection.new(heard))
        with suppress(EnvironmentLacksError):  # the keyboard went away in between
            connection.roundtrip()
    return found[-1] if found else b""


def take_keymap(arguments: Arguments) -> bytes:
    """The text of a keymap that a keyboard tells; empty where it is of another kind."""
    kind, file, size = arguments.number(), arguments.file(), arguments.number()
    try:
        if kind != _XKB or not size:
            return b""
        with closing(mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ)) as memory:
            return memory[:].rstrip(b"\0")
    finally:
        os.close(file)


def characters(keymap: bytes) -> dict[str, Stroke]:
    """Which strokes make which characters in all layouts of a keymap (XKB's text).

    Raises:
        OSError: the library that reads keymaps is missing, or does not understand this one.
        AttributeError: it is too old.
    """
    library = _library()
    context = library.xkb_context_new(0)
    try:
        read = library.xkb_keymap_new_from_string(context, keymap, _XKB, 0)
        if not read:
            raise OSError("the keymap cannot be read")
        try:
            layouts = [_characters_in(library, read, one) for one in range(library.xkb_keymap_num_layouts(read))]
        finally:
            library.xkb_keymap_unref(read)
    finally:
        library.xkb_context_unref(context)
    first, *others = layouts or [{}]
    return {char: stroke for char, stroke in first.items() if all(one.get(char) == stroke for one in others)}


def _characters_in(library: Any, keymap: int, layout: int) -> dict[str, Stroke]:
    found: dict[str, Stroke] = {}
    for code in _KEYS:
        key = code + _OFFSET
        for level in range(library.xkb_keymap_num_levels_for_key(keymap, key, layout)):
            symbols = ctypes.POINTER(ctypes.c_uint32)()
            count = library.xkb_keymap_key_get_syms_by_level(keymap, key, layout, level, ctypes.byref(symbols))
            masks = (ctypes.c_uint32 * _MOST_MASKS)()
            ways = library.xkb_keymap_key_get_mods_for_level(keymap, key, layout, level, masks, _MOST_MASKS)
            held = {masks[number] for number in range(ways)}
            letter = library.xkb_keysym_to_utf32(symbols[0]) if count == 1 else 0
            # Dead keys make no character by themselves, and control characters are keys of their own.
            if letter >= 0x20 and letter != 0x7F and held & {0, _SHIFT}:
                found.setdefault(chr(letter), Stroke(code, shift=0 not in held))
    return found


def _library() -> Any:
    """libxkbcommon, which every Wayland desktop needs itself. Raises OSError."""
    library = ctypes.CDLL("libxkbcommon.so.0")
    pointer, number, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
    for name, returns, takes in (
        ("xkb_context_new", pointer, [ctypes.c_int]),
        ("xkb_context_unref", None, [pointer]),
        ("xkb_keymap_new_from_string", pointer, [pointer, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]),
        ("xkb_keymap_unref", None, [pointer]),
        ("xkb_keymap_num_layouts", number, [pointer]),
        ("xkb_keymap_num_levels_for_key", number, [pointer, number, number]),
        ("xkb_keymap_key_get_syms_by_level", ctypes.c_int, [pointer, number, number, number, pointer]),
        ("xkb_keymap_key_get_mods_for_level", size, [pointer, number, number, number, pointer, size]),
        ("xkb_keysym_to_utf32", number, [number]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = returns, takes
    return library
