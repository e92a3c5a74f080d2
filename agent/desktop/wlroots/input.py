"""Our own virtual pointer and keyboard on a Wayland desktop (wlr-virtual-pointer, virtual-keyboard).

The keyboard has the US layout, with further characters on spare keys. When the connection closes, the compositor
removes both devices and releases held keys; `releaser_process.py` releases buttons.
"""

import os
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from typing_extensions import override

from agent.core.geometry import around
from agent.desktop.programs import HelperProcess
from agent.desktop.protocol.hand import ActionFailedError, Press
from agent.desktop.wayland.desktop import Pointer, WaylandInput
from agent.desktop.wayland.devices import (
    CAPABILITIES,
    EVDEV,
    KEYBOARD,
    KNOWN,
    POINTER,
    Stroke,
    read_outputs,
    us_layout,
)
from agent.desktop.wayland.wire import Arguments, Connection

_KEYS: dict[str, int] = EVDEV["keys"]
_SPARE = range(EVDEV["spare"]["first"], EVDEV["spare"]["last"] + 1)
#: XKB keycodes are Linux keycodes plus 8 (the X11 protocol reserves the first 8).
_OFFSET = 8
#: Characters that have keys of their own.
_CONTROLS = {"\n": "enter", "\r": "enter", "\t": "tab", "\b": "backspace", "\x1b": "escape"}
_LAYOUT = us_layout()


class Keymap:
    """The present position of each character. Named keys and the US layout's own characters never move."""

    def __init__(self) -> None:
        self._spare: dict[str, int] = {}  # characters on spare keys, most recently used last

    def add(self, characters: Iterable[str], *, as_keys: bool = False) -> bool:
        """Add all these characters (see `portions` for how many fit). Return whether the keymap changed.

        If no key is free, the least recently used characters lose theirs, so that a key that is down keeps its meaning.

        Args:
            characters: those to add.
            as_keys: also add characters that the layout has only with shift: ctrl++ needs + without shift.
        """
        wanted = dict.fromkeys(one for one in characters if not (self.of_key(one) if as_keys else _is_there(one)))
        fresh = [one for one in wanted if one not in self._spare]
        for one in wanted:
            if one in self._spare:  # becomes the most recently used
                self._spare[one] = self._spare.pop(one)
        for one in fresh:
            taken = set(self._spare.values())
            free = next((code for code in _SPARE if code not in taken), None)
            self._spare[one] = self._spare.pop(next(iter(self._spare))) if free is None else free
        return bool(fresh)

    def of_key(self, name: str) -> Stroke | None:
        """Return the stroke of a key name of `agent.core.keys`, or None if the key must be added first."""
        if name in _KEYS:
            return Stroke(_KEYS[name])
        stroke = _LAYOUT.get(name)
        if stroke is not None and not stroke.shift:
            return stroke
        return Stroke(self._spare[name]) if name in self._spare else None

    def of_character(self, character: str) -> Stroke:
        """Return the stroke of a character that was added. Raises KeyError: it was not added."""
        if character in _CONTROLS:
            return Stroke(_KEYS[_CONTROLS[character]])
        return _LAYOUT.get(character) or Stroke(self._spare[character])

    def text(self) -> str:
        """Return the keymap in XKB's text format. The compositor's libxkbcommon resolves the includes."""
        codes = "".join(f" <M{code}> = {code + _OFFSET};" for code in self._spare.values())
        symbols = "".join(f" key <M{code}> {{ [ U{ord(one):04X} ] }};" for one, code in self._spare.items())
        return (
            'xkb_keymap { xkb_keycodes { include "evdev" ' + codes + " };"
            ' xkb_types { include "complete" }; xkb_compatibility { include "complete" };'
            ' xkb_symbols { include "pc+us+inet(evdev)+level3(ralt_switch)"' + symbols + " }; };"
        )


def is_key(name: str) -> bool:
    """Whether a key name of `agent.core.keys` can be pressed."""
    return name in _KEYS or (len(name) == 1 and name.isprintable())


def portions(text: str) -> list[str]:
    """Split a text into portions that each fit into one keymap."""
    found: list[str] = []
    portion, held = "", set[str]()
    for character in text:
        new = set() if _is_there(character) else {character}
        if len(held | new) > len(_SPARE):
            found.append(portion)
            portion, held = "", set()
        portion += character
        held |= new
    return [*found, portion] if portion else found


def _is_there(character: str) -> bool:
    """Whether a character, or its key, needs no spare key."""
    return character in _CONTROLS or character in _LAYOUT


POINTERS = "zwlr_virtual_pointer_manager_v1"
KEYBOARDS = "zwp_virtual_keyboard_manager_v1"
_CREATE_POINTER, _MOVE_TO, _BUTTON, _FRAME, _AXIS_SOURCE, _AXIS_STEPS = 0, 1, 2, 4, 5, 7
_CREATE_KEYBOARD, _KEYMAP, _KEY, _MODIFIERS = 0, 0, 1, 2
_WHEEL, _VERTICAL, _HORIZONTAL = 0, 0, 1
_XKB = 1
#: One wheel step in scroll units, as in libinput.
_STEP = 15.0
_BUTTONS = EVDEV["buttons"]
_NAMES = {code: name for name, code in EVDEV["keys"].items()}
_RELEASER = Path(__file__).with_name("releaser_process.py")


class WlrootsInput(WaylandInput):
    """Mouse and keyboard of our own. Raises EnvironmentLacksError: the compositor accepts no input from programs."""

    def __init__(self, path: str, pointer: Pointer) -> None:
        super().__init__(pointer)
        self._path = path
        self._connection = connection = Connection(path)
        self._keymap = Keymap()
        self._down: dict[int, str] = {}  # the names of the keys that are down, by code
        self._locked = 0
        self._releaser: HelperProcess | None = None
        self._lacked = False  # the seat lacked a mouse or keyboard, if only briefly after another hand closed
        try:
            pointers, keyboards = connection.bind(POINTERS, 2), connection.bind(KEYBOARDS, 1)
            seat = connection.bind("wl_seat", 5, self._of_seat)
            # The seat's capabilities have arrived after this.
            self._around = around([one.region for one in read_outputs(connection)])
            self._pointer, self._keyboard = connection.new(), connection.new()
            connection.request(pointers, _CREATE_POINTER, "on", seat, self._pointer)
            connection.request(keyboards, _CREATE_KEYBOARD, "on", seat, self._keyboard)
            self._send_keymap()
            connection.roundtrip()
            self._known = time.monotonic() + (KNOWN if self._lacked else 0.0)
        except BaseException:
            connection.close()
            raise

    def move(self, x: int, y: int) -> None:
        """Move the pointer to the middle of the unit, because positions between two units are rounded."""
        box = self._around
        place = 2 * (x - box.left) + 1, 2 * (y - box.top) + 1
        inside = max(0, min(place[0], 2 * box.width)), max(0, min(place[1], 2 * box.height))
        self._point(_MOVE_TO, "uuuu", *inside, 2 * box.width, 2 * box.height)
        self._connection.roundtrip()
        self._at.at = x, y

    def has_key(self, name: str) -> bool:
        return is_key(name)

    def press(self, press: Press) -> None:
        if press.kind == "button":
            # sway 1.7 keeps buttons down after the virtual pointer of a killed process is gone.
            self._releaser = self._releaser or HelperProcess(_RELEASER, self._path)
            self._releaser.tell(f"+{_BUTTONS[press.name]}")
            self._point(_BUTTON, "uu", _BUTTONS[press.name], 1)
        else:
            self._add([press.name] if len(press.name) == 1 else [], as_keys=True)
            stroke = self._keymap.of_key(press.name)
            if stroke is None:
                raise ActionFailedError(f"this keyboard has no key {press.name!r}: use type for text")
            self._down[stroke.code] = press.name
            self._key(stroke.code, down=True)
        self._connection.roundtrip()

    def release(self, presses: Sequence[Press]) -> None:
        for press in presses:
            if press.kind == "button":
                self._point(_BUTTON, "uu", _BUTTONS[press.name], 0)
            for code in [code for code, name in self._down.items() if press.kind == "key" and name == press.name]:
                self._key(code, down=False)
        self._connection.roundtrip()
        for press in presses:
            if press.kind == "button" and self._releaser is not None:
                self._releaser.tell(f"-{_BUTTONS[press.name]}")

    def scroll(self, dx: int, dy: int) -> None:
        """Turn the wheel, by one step per call: sway 1.7 delivers several steps of one call as a single step."""
        for axis, steps in ((_VERTICAL, dy), (_HORIZONTAL, dx)):
            if steps:
                self._connection.request(self._pointer, _AXIS_SOURCE, "u", _WHEEL)
                self._point(_AXIS_STEPS, "ufi", axis, _STEP * steps, steps)
        self._connection.roundtrip()

    def type(self, text: str, check: Callable[[], None]) -> None:
        """Type a text of any script by keys. `check` is called before every key. Raises ActionFailedError."""
        for character in text:
            if character not in "\n\r\t" and unicodedata.category(character) in ("Cc", "Cs"):
                raise ActionFailedError(f"no keyboard has a key for {character!r}")
        for portion in portions(text):
            self._add(portion)
            for character in portion:
                check()
                self._stroke(self._keymap.of_character(character))
                self._connection.roundtrip()

    def close(self) -> None:
        self._connection.close()
        if self._releaser is not None:
            self._releaser.close()

    def _point(self, opcode: int, signature: str, *arguments: float) -> None:
        """Send a pointer request, whose first argument is a time, and the frame event that completes it."""
        self._wait_until_known()
        self._connection.request(self._pointer, opcode, f"u{signature}", _now(), *arguments)
        self._connection.request(self._pointer, _FRAME)

    @override
    def _key(self, code: int, *, down: bool) -> None:
        self._wait_until_known()
        name = _NAMES.get(code, "")
        if down:
            self._down.setdefault(code, name)
            self._locked ^= EVDEV["locks"].get(name, 0)
        else:
            self._down.pop(code, None)
        self._connection.request(self._keyboard, _KEY, "uuu", _now(), code, int(down))
        if name in EVDEV["modifiers"] or name in EVDEV["locks"]:
            self._send_modifiers()

    def _of_seat(self, opcode: int, arguments: Arguments) -> None:
        if opcode == CAPABILITIES and ~arguments.number() & (POINTER | KEYBOARD):
            self._lacked = True

    def _wait_until_known(self) -> None:
        """Wait until applications have noticed our devices, if the seat had no mouse or keyboard, as in a sandbox."""
        left = self._known - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _send_modifiers(self) -> None:
        """Send the modifier state: a virtual keyboard must report it itself."""
        held = sum(EVDEV["modifiers"].get(name, 0) for name in set(self._down.values()))
        self._connection.request(self._keyboard, _MODIFIERS, "uuuu", held, 0, self._locked, 0)

    def _add(self, characters: Sequence[str] | str, *, as_keys: bool = False) -> None:
        if self._keymap.add(characters, as_keys=as_keys):
            self._send_keymap()
            self._send_modifiers()  # a new keymap starts without modifiers

    def _send_keymap(self) -> None:
        data = self._keymap.text().encode() + b"\0"
        file = os.memfd_create("mai-agent-keymap", os.MFD_CLOEXEC)
        try:
            os.write(file, data)
            self._connection.request(self._keyboard, _KEYMAP, "uu", _XKB, len(data), files=[file])
        finally:
            os.close(file)


def release_buttons(path: str, buttons: Sequence[int]) -> None:
    """Release these buttons (Linux codes) with a new virtual pointer. Raises EnvironmentLacksError."""
    with closing(Connection(path)) as connection:
        pointers, seat = connection.bind(POINTERS, 2), connection.bind("wl_seat", 5)
        pointer = connection.new()
        connection.request(pointers, _CREATE_POINTER, "on", seat, pointer)
        for button in buttons:
            connection.request(pointer, _BUTTON, "uuu", _now(), button, 0)
            connection.request(pointer, _FRAME)
        connection.roundtrip()


def _now() -> int:
    """Return the time in milliseconds, by the compositors' clock, as 32 bits."""
    return int(time.monotonic() * 1000) & 0xFFFFFFFF
