"""Pointer and keyboard in a session of the portal or Mutter: by D-Bus calls or libei.

When the session ends, for whatever reason, the desktop removes its virtual devices, which releases everything held.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from typing_extensions import override

from agent.core.geometry import DesktopPoint
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.session import Axis
from agent.desktop.protocol.hand import ActionFailedError, Press
from agent.desktop.wayland.desktop import Pointer, WaylandInput
from agent.desktop.wayland.keys import EVDEV, Stroke, us_layout
from agent.desktop.wayland.layout import KNOWN, Seat, caps_lock_is_on
from agent.safety.stop import StopSwitch

_KEYS: Mapping[str, int] = EVDEV["keys"]
_BUTTONS: Mapping[str, int] = EVDEV["buttons"]


class Wires(Protocol):
    """Transport for single input events; see `Session` for its methods. Raises BusError."""

    def move(self, point: DesktopPoint) -> None:
        """Move the pointer."""

    def button(self, code: int, *, down: bool) -> None:
        """Press or release a button."""

    def key(self, code: int, *, down: bool) -> None:
        """Press or release a key."""

    def wheel(self, axis: Axis, steps: int) -> None:
        """Turn the wheel."""


class PortalInput(WaylandInput):
    """Mouse and keyboard of a session.

    `seat` has the devices before these wires existed. `layout` returns the keyboard's characters, and is called once.
    `stop` gives the reason if the session has ended.
    """

    def __init__(
        self,
        wires: Wires,
        pointer: Pointer,
        seat: Seat,
        layout: Callable[[], Mapping[str, Stroke]],
        stop: StopSwitch,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(pointer)
        self._close = close
        self._wires = wires
        self._read_layout = layout
        self._layout: Mapping[str, Stroke] | None = None
        self._stop = stop
        self._has_pointer, self._has_keyboard = seat.pointer, seat.keyboard

    def move(self, x: int, y: int) -> None:
        """Moves to the middle of that unit."""
        if not self._has_pointer:
            # The first motion creates a pointer, which is in no window before it moves again.
            self._has_pointer = True
            self._wires.move(DesktopPoint(x - 0.5, y + 0.5))
            time.sleep(KNOWN)
        self._wires.move(DesktopPoint(x + 0.5, y + 0.5))
        self._at.at = x, y

    def has_key(self, name: str) -> bool:
        return bool(self._codes(name))

    def press(self, press: Press) -> None:
        self._set(press, down=True)

    def release(self, presses: Sequence[Press]) -> None:
        failed: Exception | None = None
        for press in presses:
            try:
                self._set(press, down=False)
            except BusError as error:  # still release the others
                failed = error
        if failed is not None:
            raise failed

    def scroll(self, dx: int, dy: int) -> None:
        if dy:
            self._wires.wheel("vertical", dy)
        if dx:
            self._wires.wheel("horizontal", dx)

    def strokes(self, text: str) -> list[Stroke] | None:
        """Return the strokes for a text, or None if the keyboard is unknown or lacks a character at present."""
        if any(char.isalpha() for char in text) and caps_lock_is_on():
            return None
        layout = self._known_layout()
        found = [layout.get(char) for char in text]
        return None if None in found else [one for one in found if one is not None]

    def type(self, strokes: Sequence[Stroke], check: Callable[[], None]) -> None:
        """Press keys one after the other. `check` is called before each, and may raise."""
        for stroke in strokes:
            check()
            self._stroke(stroke)

    @override
    def lost(self, error: Exception) -> Exception:
        try:
            self._stop.check()  # raises the reason if the session has ended
        except Exception as why:
            return why
        return super().lost(error)

    def close(self) -> None:
        """The session stays open."""
        self._close()

    @override
    def _key(self, code: int, *, down: bool) -> None:
        self._wires.key(code, down=down)

    def _set(self, press: Press, *, down: bool) -> None:
        if press.kind == "button":
            if down and not self._has_pointer:
                self.move(*self._at.at)
            self._wires.button(_BUTTONS[press.name], down=down)
            return
        codes = self._codes(press.name)
        if not codes:
            raise ActionFailedError(f"this keyboard has no key {press.name!r}: use type for text")
        self._need_keyboard()
        for code in codes if down else codes[::-1]:
            self._key(code, down=down)

    def _codes(self, name: str) -> list[int]:
        """Return the key codes for a name of `agent.core.keys`, in press order; empty if there is no such key.

        A character uses its position in the present layout, or else in the US layout: programs accept ctrl+c at that
        position if the layout has no such letter.
        """
        if name in _KEYS:
            return [_KEYS[name]]
        stroke = (self._known_layout().get(name) or us_layout().get(name)) if len(name) == 1 else None
        if stroke is None:
            return []
        return [_KEYS["shift"], stroke.code] if stroke.shift else [stroke.code]

    def _need_keyboard(self) -> None:
        """Press shift alone, which has no effect, because the first key creates the keyboard on a seat without one."""
        if not self._has_keyboard:
            self._has_keyboard = True
            self._stroke(Stroke(_KEYS["shift"]))
            time.sleep(KNOWN)

    def _known_layout(self) -> Mapping[str, Stroke]:
        if self._layout is None:
            self._need_keyboard()
            self._layout = self._read_layout()
        return self._layout
