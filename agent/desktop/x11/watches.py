"""Threads that watch for the stop key, the pointer in a corner and a lost display, while the run loop waits.

pyautogui checks the pointer only before it acts, which can be minutes later, and python3-xlib blocks forever on a
broken connection. So each watch polls on its own connection and sets the stop switch.
"""

import itertools
import select
import threading
from contextlib import suppress
from typing import Any

from agent.desktop.linux.xkb import keysym_of
from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
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
    """Sets the stop switch when the chord is pressed anywhere, until closed. The chord "none" disables it. Raises
    UsageError.

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
            self.remark = f"Another program uses {chord} too: it stops the run, and does what it does there."
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
