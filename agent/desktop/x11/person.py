"""What the person does with mouse and keyboard on an X server: recorded for a demonstration, or noticed as a takeover.

A desktop that only exposes its present state cannot tell the person's events from ours. So only changes while the hand
is at rest count as a takeover: the pointer has moved, or a key or button went down. RECORD also reports input that a
grab hides.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from agent.core.actions import Button
from agent.core.geometry import DesktopPoint
from agent.core.keys import UnknownKeyError, canonical_key
from agent.desktop.linux.xkb import character_of, name_of
from agent.desktop.protocol.desktop import TakeoverWatch
from agent.desktop.protocol.input_log import ButtonPressed, ButtonReleased, KeyPressed, PersonInput, WheelTurned
from agent.desktop.x11.connection import display_lost, keys_down, open_display
from foundation.errors import EnvironmentLacksError

#: Seconds between two polls: a typed key is down for at least 50 ms.
_POLL = 0.025
#: Seconds after an action in which applications may still move the pointer.
_SETTLES = 0.3
#: Pixels by which the pointer may move, because a hand resting on the mouse trembles.
_TREMBLE = 8
#: Seconds. The pointer may be on its way to our own window, which is no takeover. So a move is judged only when the
#: pointer has rested for `_CALM`, at the latest after `_LONGEST_WAY`.
_CALM, _LONGEST_WAY = 0.25, 0.7

At = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """The state of the input at one moment: pointer, buttons and keys that are down (without modifiers)."""

    pointer: At
    buttons: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class X11InputState:
    """The state of mouse and keyboard. Raises EnvironmentLacksError if there is no display."""

    def __init__(self) -> None:
        self._display = open_display()
        mapping = self._display.get_modifier_mapping()
        self._modifiers = frozenset(code for codes in mapping for code in codes if code)

    def look(self) -> Look:
        at = self._display.screen().root.query_pointer()
        buttons = frozenset(number for number in range(1, 6) if at.mask >> (7 + number) & 1)
        return Look((at.root_x, at.root_y), buttons, keys_down(self._display) - self._modifiers)

    def close(self) -> None:
        with suppress(Exception):
            self._display.close()


class TakeoverJudge:
    """Decides from successive looks what the person did, and reports it in words. Needs no display and no clock."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._base: Look | None = None
        self._way: tuple[float, float, At] | None = None  # a move: its begin, its last change, and the pointer then
        self._told: set[str] = set()

    def forget(self) -> None:
        """Start over with the next look, because the hand acted or the run was resumed."""
        self._base, self._way = None, None
        self._told.clear()

    def look(self, seen: Look, now: float, *, ours: bool) -> None:
        """Process one look. `ours`: pointer or focus are on our own window, where using them is no takeover."""
        base = self._base
        if base is None or ours:
            self._base, self._way = seen, None
            return
        if seen.buttons - base.buttons:
            self._say("clicked", "clicked at {},{}".format(*seen.pointer))
        if seen.keys - base.keys:
            self._say("keys", "pressed keys")
        # Released keys and buttons can count again. The pointer is still compared with its old resting place.
        self._base = Look(base.pointer, seen.buttons, seen.keys)
        self._moved(base.pointer, seen.pointer, now)

    def _moved(self, rested: At, pointer: At, now: float) -> None:
        if max(abs(pointer[0] - rested[0]), abs(pointer[1] - rested[1])) <= _TREMBLE:
            self._way = None
            return
        if self._way is None:
            self._way = (now, now, pointer)
            return
        began, last, at = self._way
        if pointer != at:
            last, at = now, pointer
            self._way = (began, last, at)
        if now - last >= _CALM or now - began >= _LONGEST_WAY:
            self._say("moved", "moved the pointer to {},{}".format(*pointer))

    def _say(self, kind: str, message: str) -> None:
        if kind not in self._told:  # report it only once until the run goes on
            self._told.add(kind)
            self._tell(message)


class Takeover:
    """Watches on its own thread until it is closed."""

    def __init__(self, watch: TakeoverWatch) -> None:
        self._watch = watch
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="takeover", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        with suppress(Exception), closing(X11InputState()) as state:  # another watch reports a lost display
            self._follow(state, TakeoverJudge(self._watch.steering.user_acted))

    def _follow(self, state: X11InputState, judge: TakeoverJudge) -> None:
        steering, rest, is_ours = self._watch.steering, self._watch.rest, self._watch.is_ours
        paused, before_look, ours = False, None, False
        while not self._closed.wait(_POLL):
            if paused and not steering.paused:
                judge.forget()
            paused = bool(steering.paused)
            before = rest.since
            if rest.busy or time.monotonic() - before < _SETTLES:
                judge.forget()
                continue
            seen = state.look()
            if seen != before_look:  # `is_ours` is much slower than a look
                ours = is_ours(seen.pointer) or (bool(seen.keys) and is_ours(None))
            before_look = seen
            if rest.busy or rest.since != before:  # the hand started to act during this look
                continue
            judge.look(seen, time.monotonic(), ours=ours)


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
