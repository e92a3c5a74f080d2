"""Which characters the keyboard of a Wayland session has, and by which keys: read from the compositor's own keymap.

Which of several layouts is in use, nobody tells a program without a window: a character counts only where the same
keys make it in all of them.
"""

import mmap
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from agent.desktop.linux.xkb import Keymap
from agent.desktop.wayland.keys import Stroke
from agent.desktop.wayland.outputs import read_outputs
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.errors import EnvironmentLacksError

_GET_KEYBOARD, CAPABILITIES, _KEYMAP = 1, 0, 0
_POINTER, _KEYBOARD = 1, 2  # a seat's capabilities
POINTER_AND_KEYBOARD = _POINTER | _KEYBOARD
_XKB = 1
_SHIFT = 1  # of XKB's real modifiers, which every keymap numbers alike
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
    with suppress(EnvironmentLacksError):  # without the library, or with an old one
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
        if opcode == CAPABILITIES:
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


def characters(text: bytes) -> dict[str, Stroke]:
    """Which strokes make which characters in all layouts of a keymap (XKB's text).

    Raises EnvironmentLacksError: libxkbcommon is missing, or does not understand it.
    """
    with closing(Keymap(text)) as keymap:
        first, *others = [_characters_in(keymap, layout) for layout in range(keymap.count())] or [{}]
    return {char: stroke for char, stroke in first.items() if all(one.get(char) == stroke for one in others)}


def _characters_in(keymap: Keymap, layout: int) -> dict[str, Stroke]:
    found: dict[str, Stroke] = {}
    for code in _KEYS:
        for char, ways in keymap.levels(code, layout):
            # Dead keys make no character by themselves, and control characters are keys of their own.
            if char >= " " and char != "\x7f" and ways & {0, _SHIFT}:
                found.setdefault(char, Stroke(code, shift=0 not in ways))
    return found


def describe_display(path: str) -> tuple[list[str], list[str]]:
    """The monitors of a compositor, and the layouts of its keyboard, in words. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        monitors = [one.words for one in read_outputs(connection)]
    text = keymap_of(path)
    if not text:
        return monitors, []
    with closing(Keymap(text)) as keymap:
        return monitors, keymap.layouts()
