"""Input through libei, where the desktop supports it: events go straight to the compositor.

Coordinates are in the desktop's logical units. Use it only from the hand's thread.
"""

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from agent.core.geometry import DesktopPoint
from agent.desktop.linux.bus import BusError
from agent.desktop.portal.session import Axis, Session, Stream

#: Timeout in seconds for devices to appear, or to resume after a pause; the slowest seen took 0.1 s.
_DEVICES = 3.0
#: One wheel step in libei's units.
_STEP = 120


def open_libei(session: Session) -> "LibeiWires | None":
    """Open libei wires for a session. Return None if this machine or desktop has no libei, so that D-Bus calls are
    used.
    """
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
    """`Wires` through libei. Raises BusError: the desktop offers no input devices, or has removed them."""

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

    def wheel(self, axis: Axis, steps: int) -> None:
        turn = (0, steps * _STEP) if axis == "vertical" else (steps * _STEP, 0)
        self._do("wheel", lambda device: device.scroll_discrete(*turn))

    def close(self) -> None:
        """Disconnect. Never raises; safe to call twice."""
        if not self._gone:
            self._gone = True
            with suppress(Exception):
                self._sender.disconnect()

    def _do(self, what: str, act: Callable[[Any], Any]) -> None:
        self._take_in(0)
        if what not in self._devices:
            self._wait(lambda: what in self._devices)
        device = self._devices[what]
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
