"""Listens to mouse and keyboard through X11's RECORD extension, which also reports input that a grab hides."""

import queue
import threading
from contextlib import suppress
from typing import Any

from agent.core.actions import Button
from agent.core.geometry import DesktopPoint
from agent.core.keys import UnknownKeyError, canonical_key
from agent.desktop.linux.xkb import character_of, name_of
from agent.desktop.protocol.input_log import ButtonPressed, ButtonReleased, KeyPressed, PersonInput, WheelTurned
from agent.desktop.x11.connection import display_lost, open_display
from foundation.errors import EnvironmentLacksError

_BUTTONS: dict[int, Button] = {1: "left", 2: "middle", 3: "right"}
#: The wheel's buttons: dx and dy.
_WHEEL = {4: (0, -1), 5: (0, 1), 6: (-1, 0), 7: (1, 0)}
#: Masks of an event's state (X.h). In most layouts, Mod1 is Alt, Mod2 Num Lock, Mod4 Super and Mod5 AltGr.
_SHIFT, _LOCK, _CTRL, _ALT, _NUM, _SUPER, _ALTGR = 1, 2, 4, 8, 16, 64, 128
_HELD = (("ctrl", _CTRL), ("alt", _ALT), ("super", _SUPER))
#: Keysyms of the keypad, which Num Lock changes.
_KEYPAD = range(0xFF80, 0xFFBE)


class X11InputLog:
    """The person's input on this display. Raises EnvironmentLacksError if the display does not report it."""

    def __init__(self) -> None:
        from Xlib import X
        from Xlib.ext import record

        self._control, self._listening = open_display(), open_display()
        if not self._control.has_extension("RECORD"):
            self._close_displays()
            raise EnvironmentLacksError(
                "This display does not report input (its X server lacks the RECORD extension).",
                "Run the task with mai-agent and keep it with `mai-agent save`.",
            )
        self._codes = {code for codes in self._control.get_modifier_mapping() for code in codes if code}
        self._alone = 0  # the modifier that went down last, if no other key followed
        self._queue: queue.SimpleQueue[PersonInput | Exception] = queue.SimpleQueue()
        wanted = {
            "core_requests": (0, 0), "core_replies": (0, 0), "ext_requests": (0, 0, 0, 0), "ext_replies": (0, 0, 0, 0),
            "delivered_events": (0, 0), "device_events": (X.KeyPress, X.ButtonRelease), "errors": (0, 0),
            "client_started": False, "client_died": False,
        }  # fmt: skip
        self._context = self._control.record_create_context(0, [record.AllClients], [wanted])
        self._control.sync()
        threading.Thread(target=self._listen, name="input log", daemon=True).start()

    def next(self, timeout: float) -> PersonInput | None:
        try:
            found = self._queue.get(timeout=timeout)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise display_lost(found)
        return found

    def close(self) -> None:
        with suppress(Exception):
            self._control.record_disable_context(self._context)
            self._control.record_free_context(self._context)
            self._control.sync()
        self._close_displays()

    def _close_displays(self) -> None:
        for display in (self._control, self._listening):
            with suppress(Exception):
                display.close()

    # On the thread

    def _listen(self) -> None:
        try:
            self._listening.record_enable_context(self._context, self._receive)
        except Exception as error:  # python3-xlib raises any of a dozen exceptions for a lost connection
            self._queue.put(error)

    def _receive(self, reply: Any) -> None:
        from Xlib.ext import record
        from Xlib.protocol import rq

        data = reply.data if reply.category == record.FromServer else b""
        while data:
            event, data = rq.EventField(None).parse_binary_value(data, self._listening.display, None, None)
            if (read := self._read(event)) is not None:
                self._queue.put(read)

    def _read(self, event: Any) -> PersonInput | None:
        from Xlib import X

        at = DesktopPoint(event.root_x, event.root_y)
        held = tuple(name for name, mask in _HELD if event.state & mask)
        match event.type:
            case X.ButtonPress if event.detail in _BUTTONS:
                with_shift = (*held, "shift") if event.state & _SHIFT else held
                return ButtonPressed(at, _BUTTONS[event.detail], with_shift)
            case X.ButtonPress if event.detail in _WHEEL:
                return WheelTurned(at, *_WHEEL[event.detail])
            case X.ButtonRelease if event.detail in _BUTTONS:
                return ButtonReleased(at)
            case X.KeyPress:
                self._alone = event.detail if event.detail in self._codes else 0
                return None if self._alone else self._key(event.detail, event.state, held)
            case X.KeyRelease if event.detail == self._alone:
                name = _canonical(self._keysym(event.detail, 0))
                return KeyPressed(name) if name == "super" else None  # pressed alone, Super opens a menu
        return None

    def _key(self, code: int, state: int, held: tuple[str, ...]) -> KeyPressed:
        keysym = self._keysym(code, state)
        text = character_of(keysym) if keysym else ""
        if not text.isprintable() or text == "\x7f":
            text = ""
        if held or not text:  # a chord is named by the unshifted characters of its keys
            name = _canonical(self._keysym(code, state & _NUM))
            return KeyPressed(name, "" if held else text, (*held, "shift") if state & _SHIFT else held)
        return KeyPressed(_canonical(keysym), text)

    def _keysym(self, code: int, state: int) -> int:
        """Return what a key means with these modifiers; 0 for nothing."""
        first = 4 if state & _ALTGR else 2 * (state >> 13 & 1)  # the columns of a layout, as the core protocol has them
        plain, shifted = (self._control.keycode_to_keysym(code, first + column) for column in (0, 1))
        other = (
            bool(state & _NUM)
            if shifted in _KEYPAD
            else bool(state & _LOCK and plain) and character_of(plain).isalpha()
        )
        return int((shifted if other is not bool(state & _SHIFT) else plain) or plain)


def _canonical(keysym: int) -> str:
    """Return the name of a key; "" for none."""
    letter = character_of(keysym) if keysym else ""
    name = letter if letter.isprintable() and letter.strip() else name_of(keysym).replace("ISO_Left_Tab", "Tab")
    for one in (name, name.removeprefix("KP_")):  # the keypad has its own Enter; its other keys have the usual names
        with suppress(UnknownKeyError):
            return canonical_key(one)
    return ""
