"""Watches the person's input and the display of an X server.

The input is watched for the stop key, for the pointer in a corner, for a takeover, and to record a demonstration.

pyautogui checks the pointer only before it acts, which can be minutes later, and python3-xlib blocks forever on a
broken connection. So each watch polls on a thread and a connection of its own. A poll shows the present state, but not
whether the person or the hand caused it. So only changes while the hand is at rest count as a takeover.
"""

import itertools
import queue
import select
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from agent.core.actions import Button
from agent.core.geometry import DesktopPoint
from agent.core.keys import UnknownKeyError, canonical_key
from agent.desktop.linux.xkb import character_of, keysym_of, name_of
from agent.desktop.protocol.desktop import DEFAULT_CHORD, SETTLES, TakeoverWatch, parse_chord
from agent.desktop.protocol.input_log import ButtonPressed, ButtonReleased, KeyPressed, PersonInput, WheelTurned
from agent.desktop.x11.connection import display_lost, keys_down, open_display
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Seconds between two polls of the pointer. Nobody can move it into a corner and back faster, and 20 requests a second
#: cost the X server nothing.
_POINTER_POLL = 0.05
#: Seconds between two polls of the keyboard: a chord is held for at least twice as long.
_KEYBOARD_POLL = 0.04
_CORNER = "the pointer was moved into a corner of the screen"
_STOP_KEY = "the stop key was pressed"
#: The modifiers' masks (X.h) and keys.
_MODIFIERS = {
    "shift": (1, ("Shift_L", "Shift_R")),
    "ctrl": (4, ("Control_L", "Control_R")),
    "alt": (8, ("Alt_L", "Alt_R")),
    "super": (64, ("Super_L", "Super_R")),
}
#: Masks of Caps Lock, Num Lock and other modifiers that may be active besides the chord, perhaps by the agent's hand.
_OTHERS = (2, 16, 32, 64, 128)


class DisplayWatch:
    """Watches pointer and display until it is closed or the stop switch is set."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._closed = threading.Event()
        self._armed = False
        display = _connect()
        if display is not None:
            # One look before the run begins: if the pointer is in a corner from the start, nobody moved it there.
            with suppress(Exception):
                self._look(display)
            threading.Thread(target=self._watch, args=(display,), name="watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching. Does not wait for the thread."""
        self._closed.set()

    def _watch(self, display: Any) -> None:
        while not self._closed.wait(_POINTER_POLL) and not self._stop.stopped:
            try:
                self._look(display)
            except Exception as problem:  # a broken connection raises any of a dozen exceptions
                display = _connect()
                if display is None:
                    if not self._closed.is_set():
                        self._stop.fail(display_lost(problem))
                    return
        with suppress(Exception):
            display.close()

    def _look(self, display: Any) -> None:
        root = display.screen().root
        size, at = root.get_geometry(), root.query_pointer()
        cornered = at.root_x in (0, size.width - 1) and at.root_y in (0, size.height - 1)
        if cornered and self._armed:
            self._stop.stop(_CORNER)
        self._armed = self._armed or not cornered


class StopKey:
    """Sets the stop switch when the chord is pressed anywhere, until closed.

    The chord "none" disables the stop key. Raises UsageError for an invalid chord.

    The chord is grabbed, so that no application gets it. A grab does not work during another grab (an open menu, a
    virtual machine), so the keyboard's state is polled as well.
    """

    def __init__(self, stop: StopSwitch, chord: str = DEFAULT_CHORD) -> None:
        self.remark = ""
        self._stop = stop
        self._closed = threading.Event()
        modifiers, key = parse_chord(chord)
        if not key:
            return
        try:
            display = open_display()
            refused = self._grab(display, modifiers, key)
        except EnvironmentLacksError:
            return  # reported elsewhere
        except Exception as error:  # python3-xlib raises any of a dozen exceptions for a lost connection
            self.remark = f"The stop key {chord} cannot be watched ({error!r})."
            return
        if not self._wanted:
            self.remark = f"The stop key {chord} is not on this keyboard: choose another with the setting stop_key."
            return
        if refused:
            self.remark = f"Another program uses {chord} too: the chord stops the run, and acts in that program."
        threading.Thread(target=self._watch, args=(display,), name="stop key", daemon=True).start()

    def close(self) -> None:
        """Release the grab. Does not wait for the thread."""
        self._closed.set()

    def _grab(self, display: Any, modifiers: list[str], key: str) -> bool:
        """Grab the chord, with any other modifiers. Return whether another program has grabbed it already."""
        from Xlib import XK, X, error

        def codes(names: tuple[str, ...]) -> frozenset[int]:
            return frozenset(code for name in names if (code := display.keysym_to_keycode(XK.string_to_keysym(name))))

        keys = codes((keysym_of(key),))
        # The chord is pressed if each of these sets has a key that is down.
        self._wanted = [keys, *(codes(_MODIFIERS[modifier][1]) for modifier in modifiers)] if keys else []
        mask = sum(_MODIFIERS[modifier][0] for modifier in modifiers)
        others = [other for other in _OTHERS if not other & mask]
        plain, ignored = error.CatchError(error.BadAccess), error.CatchError(error.BadAccess)
        besides = [more for count in range(len(others) + 1) for more in itertools.combinations(others, count)]
        for code, more in itertools.product(keys, besides):
            display.screen().root.grab_key(
                code, mask | sum(more), False, X.GrabModeAsync, X.GrabModeAsync, onerror=ignored if more else plain
            )
        display.sync()
        return plain.get_error() is not None

    def _watch(self, display: Any) -> None:
        from Xlib import X

        with suppress(Exception):  # `DisplayWatch` reports a lost display
            while not self._closed.is_set() and not self._stop.stopped:
                while display.pending_events():
                    if display.next_event().type == X.KeyPress:
                        self._stop.stop(_STOP_KEY)
                down = keys_down(display)
                if all(down & keys for keys in self._wanted):
                    self._stop.stop(_STOP_KEY)
                if not display.pending_events():
                    select.select([display.fileno()], [], [], _KEYBOARD_POLL)
        with suppress(Exception):
            display.close()


def _connect() -> Any:
    with suppress(EnvironmentLacksError):
        return open_display()
    return None


#: Seconds between two polls: a typed key is down for at least 50 ms.
_POLL = 0.025
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
        with suppress(Exception), closing(open_display()) as display:  # another watch reports a lost display
            modifiers = {code for codes in display.get_modifier_mapping() for code in codes}
            self._follow(lambda: _look(display, modifiers), TakeoverJudge(self._watch.steering.user_acted))

    def _follow(self, look: Callable[[], Look], judge: TakeoverJudge) -> None:
        steering, rest, is_ours = self._watch.steering, self._watch.rest, self._watch.is_ours
        paused, before_look, ours = False, None, False
        while not self._closed.wait(_POLL):
            if paused and not steering.paused:
                judge.forget()
            paused = bool(steering.paused)
            before = rest.since
            if rest.busy or time.monotonic() - before < SETTLES:
                judge.forget()
                continue
            seen = look()
            if seen != before_look:  # `is_ours` is much slower than a look
                ours = is_ours(seen.pointer) or (bool(seen.keys) and is_ours(None))
            before_look = seen
            if rest.busy or rest.since != before:  # the hand started to act during this look
                continue
            judge.look(seen, time.monotonic(), ours=ours)


def _look(display: Any, modifiers: AbstractSet[int]) -> Look:
    at = display.screen().root.query_pointer()
    buttons = frozenset(number for number in range(1, 6) if at.mask >> (7 + number) & 1)
    return Look((at.root_x, at.root_y), buttons, keys_down(display) - modifiers)


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
