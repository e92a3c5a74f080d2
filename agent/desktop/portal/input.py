"""Pointer and keyboard in a session of the portal or Mutter: by D-Bus calls or libei.

When the session ends, for whatever reason, the desktop removes its virtual devices, which releases everything held.
"""

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from typing_extensions import override

from agent.core.geometry import DesktopPoint
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.session import Session, Stream
from agent.desktop.protocol.hand import ActionFailedError, Press
from agent.desktop.wayland.desktop import Pointer, WaylandInput
from agent.desktop.wayland.devices import EVDEV, KEYBOARD, KNOWN, POINTER, Stroke, caps_lock_is_on, us_layout
from agent.safety.stop import StopSwitch

_KEYS: Mapping[str, int] = EVDEV["keys"]
_BUTTONS: Mapping[str, int] = EVDEV["buttons"]
#: Timeout in seconds for devices to appear, or to resume after a pause; the slowest seen took 0.1 s.
_DEVICES = 3.0
#: One wheel step in libei's units.
_STEP = 120


class PortalInput(WaylandInput):
    """Mouse and keyboard of a session. `wires` send single input events, and raise BusError.

    `seat` has the capabilities from before these wires were opened. `layout` returns the keyboard's characters, and is
    called once. After the session has ended, `stop` holds the reason.
    """

    def __init__(
        self,
        wires: "Session | LibeiWires",
        pointer: Pointer,
        seat: int,
        layout: Callable[[], Mapping[str, Stroke]],
        stop: StopSwitch,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(pointer)
        self._close = close
        self._wires = wires
        self._read_layout = layout
        self._stop = stop
        self._has_pointer, self._has_keyboard = bool(seat & POINTER), bool(seat & KEYBOARD)

    def move(self, x: int, y: int) -> None:
        """Move the pointer to the middle of the unit."""
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
        self._wires.scroll(dx, dy)

    def strokes(self, text: str) -> list[Stroke] | None:
        """Return the strokes for a text, or None if the keyboard is unknown or lacks a character at present."""
        if any(char.isalpha() for char in text) and caps_lock_is_on():
            return None
        found = [self._layout.get(char) for char in text]
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
        stroke = (self._layout.get(name) or us_layout().get(name)) if len(name) == 1 else None
        if stroke is None:
            return []
        return [_KEYS["shift"], stroke.code] if stroke.shift else [stroke.code]

    def _need_keyboard(self) -> None:
        """Press shift alone, which has no effect, because the first key creates the keyboard on a seat without one."""
        if not self._has_keyboard:
            self._has_keyboard = True
            self._stroke(Stroke(_KEYS["shift"]))
            time.sleep(KNOWN)

    @cached_property
    def _layout(self) -> Mapping[str, Stroke]:
        self._need_keyboard()
        return self._read_layout()


def open_libei(session: Session) -> "LibeiWires | None":
    """Open libei wires for a session. Return None, to use D-Bus calls, if this machine or the desktop lacks libei."""
    try:
        from libei import ei
    except ImportError:
        return None
    if not ei.is_available():
        return None
    connection = session.eis()
    if connection is None:
        return None
    try:
        return LibeiWires(ei, connection, session.stream)
    finally:
        os.close(connection)


class LibeiWires:
    """Sends input events through libei, as `Session` does. Raises BusError: the desktop offers no devices for that."""

    def __init__(self, ei: Any, connection: int, stream: Stream) -> None:
        self._ei = ei
        self._stream = stream
        self._devices: dict[str, Any] = {}  # the device for each of pointer, button, wheel and key
        self._sender = ei.Sender.create_for_fd(os.dup(connection), name="mai-agent")
        self._gone = False
        can = ei.DeviceCapability
        self._needed = {"pointer": can.POINTER_ABSOLUTE, "button": can.BUTTON, "wheel": can.SCROLL, "key": can.KEYBOARD}
        try:
            self._wait(lambda: self._devices.keys() == self._needed.keys())
        except BaseException:
            self.close()
            raise

    def move(self, point: DesktopPoint) -> None:
        box, region = self._stream.region, self._region()
        left, top = (box.left, box.top) if region is None else region.position
        x, y = left + point.x - box.left, top + point.y - box.top
        self._do("pointer", lambda device: device.pointer_motion_absolute(x, y))

    def button(self, code: int, *, down: bool) -> None:
        self._do("button", lambda device: device.button(code, down))

    def key(self, code: int, *, down: bool) -> None:
        self._do("key", lambda device: device.keyboard_key(code, down))

    def scroll(self, dx: int, dy: int) -> None:
        self._do("wheel", lambda device: device.scroll_discrete(dx * _STEP, dy * _STEP))

    def close(self) -> None:
        """Disconnect. Never raises; safe to call twice."""
        if not self._gone:
            self._gone = True
            with suppress(Exception):
                self._sender.disconnect()

    def _do(self, name: str, act: Callable[[Any], Any]) -> None:
        self._take_in(0)
        if name not in self._devices:
            self._wait(lambda: name in self._devices)
        device = self._devices[name]
        act(device)
        device.frame()
        self._sender.dispatch()

    def _region(self) -> Any:
        """Return the stream's region in the pointer's coordinate space, or None if the device does not report it."""
        self._take_in(0)
        regions = self._devices["pointer"].regions if "pointer" in self._devices else ()
        named = [one for one in regions if self._stream.mapping and one.mapping_id == self._stream.mapping]
        box = self._stream.region
        return next((one for one in (*named, *regions) if one in named or one.position == (box.left, box.top)), None)

    def _wait(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _DEVICES
        while not true():
            left = deadline - time.monotonic()
            if left <= 0:
                raise BusError("the desktop gives no devices for input")
            self._take_in(left)

    def _take_in(self, seconds: float) -> None:
        """Process events about devices, waiting up to some seconds for them."""
        self._check()
        if seconds:
            select.select([self._sender.fd], [], [], seconds)
        self._sender.dispatch()
        kinds, needed = self._ei.EventType, self._needed
        for event in self._sender.events:
            kind = event.event_type
            if kind == kinds.SEAT_ADDED:
                event.seat.bind(tuple(needed.values()))
            elif kind == kinds.DEVICE_RESUMED:
                device = event.device
                device.start_emulating()
                self._devices |= {name: device for name, one in needed.items() if one in device.capabilities}
            elif kind in (kinds.DEVICE_PAUSED, kinds.DEVICE_REMOVED):
                self._devices = {name: one for name, one in self._devices.items() if one is not event.device}
            elif kind == kinds.DISCONNECT:
                self._gone = True
        self._check()  # otherwise, events sent from now on would be lost silently

    def _check(self) -> None:
        if self._gone:
            raise BusError("the desktop took its devices for input away")
