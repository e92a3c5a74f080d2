"""The monitors, seat and keyboard of a Wayland compositor, and which characters its keyboard can type.

A program without a window cannot know which of several layouts is active. So a character counts only if the same keys
type it in all layouts of the compositor's keymap.
"""

import mmap
import os
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agent.core.geometry import Region
from agent.desktop.linux.xkb import Keymap
from agent.desktop.wayland.wire import Arguments, Connection
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

#: Key and button codes of Linux.
EVDEV = load_config("evdev.toml")


class Stroke(NamedTuple):
    """A Linux key code (configs/evdev.toml), and whether shift is held with it."""

    code: int
    shift: bool = False


@cache
def us_layout() -> dict[str, Stroke]:
    """Return the stroke of each character. The dict is cached: do not modify it."""
    found: dict[str, Stroke] = {}
    for row in EVDEV["rows"]:
        for index, (plain, shifted) in enumerate(zip(row["plain"], row["shifted"], strict=True)):
            found.setdefault(shifted, Stroke(row["first"] + index, shift=True))
            found[plain] = Stroke(row["first"] + index)
    return found


_MANAGER = "zxdg_output_manager_v1"
_GET_OUTPUT = 1
#: An event of wl_output.
_GEOMETRY = 0


@dataclass(slots=True)
class Output:
    """One monitor, as its wl_output and zxdg_output_v1 describe it."""

    number: int = 0  # object ID of its wl_output
    at: tuple[int, int] = (0, 0)  # in logical units, which the pointer uses too
    size: tuple[int, int] = (0, 0)  # in logical units; zeros if it is off
    transform: int = 0  # wl_output.transform: quarter turns, plus 4 if mirrored

    @property
    def region(self) -> Region:
        """Its rectangle in logical units."""
        return Region(*self.at, *self.size)

    def of_output(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of wl_output."""
        if opcode == _GEOMETRY:
            for _ in range(5):
                arguments.signed()
            arguments.text(), arguments.text()
            self.transform = arguments.signed()

    def of_logical(self, opcode: int, arguments: Arguments) -> None:
        """Handle an event of zxdg_output_v1."""
        if opcode == 0:
            self.at = arguments.signed(), arguments.signed()
        elif opcode == 1:
            self.size = arguments.signed(), arguments.signed()


def read_outputs(connection: Connection) -> list[Output]:
    """Return all active monitors, in the compositor's order. Raises EnvironmentLacksError."""
    found: list[Output] = []
    manager = connection.bind(_MANAGER, 3)
    for which in range(len(connection.globals.get("wl_output", []))):
        one = Output()
        found.append(one)
        one.number = connection.bind("wl_output", 3, one.of_output, which)
        connection.request(manager, _GET_OUTPUT, "no", connection.new(one.of_logical), one.number)
    connection.roundtrip()
    return [one for one in found if min(one.size) > 0]


_GET_KEYBOARD, CAPABILITIES, _KEYMAP = 1, 0, 0
POINTER, KEYBOARD = 1, 2  # a seat's capabilities
_XKB = 1
_SHIFT = 1  # an XKB real modifier, with the same number in every keymap
#: The keys for text, ordinary ones first. Other keys with characters on them do not behave the same everywhere.
_KEYS = (*range(2, 54), 57, 86, 89, 124)
#: Seconds until applications have noticed a new pointer or keyboard; earlier input is lost. On a busy machine, input
#: was lost after 0.07 s, but not after 0.15 s.
KNOWN = 0.3


def read_layout(path: str) -> dict[str, Stroke]:
    """Return the strokes of the characters that the keyboard can type, if known. Raises EnvironmentLacksError."""
    if keymap := keymap_of(path):
        with suppress(EnvironmentLacksError):  # libxkbcommon is missing
            return characters(keymap)
    return {}


def read_seat(path: str) -> int:
    """Return the seat's capabilities; without a mouse, it has no pointer. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        return _seat(connection)[1]


def caps_lock_is_on(lights: Path = Path("/sys/class/leds")) -> bool:
    """Whether a keyboard's LED shows Caps Lock. Wayland reports the lock only to windows."""
    for light in lights.glob("*::capslock/brightness"):
        with suppress(OSError):
            if light.read_text(encoding="ascii").strip() not in ("", "0"):
                return True
    return False


def _seat(connection: Connection) -> tuple[int, int]:
    """Return the seat's object ID and its capabilities; zeros if there is no seat."""
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
    """Return the keymap as text; empty if there is no keyboard. Raises EnvironmentLacksError."""
    found: list[bytes] = []

    def heard(opcode: int, arguments: Arguments) -> None:
        if opcode == _KEYMAP and (text := take_keymap(arguments)):
            found.append(text)

    with closing(Connection(path)) as connection:
        seat, capabilities = _seat(connection)
        if not capabilities & KEYBOARD:
            return b""
        connection.request(seat, _GET_KEYBOARD, "n", connection.new(heard))
        with suppress(EnvironmentLacksError):  # the keyboard went away in between
            connection.roundtrip()
    return found[-1] if found else b""


def take_keymap(arguments: Arguments) -> bytes:
    """Return the keymap's text from a keymap event; empty if the keymap has another format."""
    kind, file, size = arguments.number(), arguments.file(), arguments.number()
    try:
        if kind != _XKB or not size:
            return b""
        with closing(mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ)) as memory:
            return memory[:].rstrip(b"\0")
    finally:
        os.close(file)


def characters(text: bytes) -> dict[str, Stroke]:
    """Return the strokes of the characters that are the same in all layouts of an XKB keymap.

    Raises EnvironmentLacksError: libxkbcommon is missing, or cannot parse the keymap.
    """
    with closing(Keymap(text)) as keymap:
        first, *others = [_characters_in(keymap, layout) for layout in range(keymap.count())] or [{}]
    return {char: stroke for char, stroke in first.items() if all(one.get(char) == stroke for one in others)}


def _characters_in(keymap: Keymap, layout: int) -> dict[str, Stroke]:
    found: dict[str, Stroke] = {}
    for code in _KEYS:
        for char, ways in keymap.levels(code, layout):
            # Dead keys type no character by themselves, and control characters have keys of their own.
            if char >= " " and char != "\x7f" and ways & {0, _SHIFT}:
                found.setdefault(char, Stroke(code, shift=0 not in ways))
    return found
