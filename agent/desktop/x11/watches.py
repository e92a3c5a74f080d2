"""Threads that watch what the loop cannot while it waits: the stop key, the pointer in a corner, a lost display.

pyautogui looks at the pointer only before it acts, which can be minutes later, and python3-xlib blocks for good on a
connection that broke. So each watch looks all the time, with a connection of its own, and sets the stop switch.
"""

import itertools
import select
import threading
from contextlib import suppress
from typing import Any

from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.desktop.x11.connection import display_lost, keys_down, open_display
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Seconds between two looks at the pointer: a hand cannot slam and come back faster, and 20 questions a second cost X
#: nothing.
_POINTER_POLL = 0.05
#: Seconds between two looks at the keyboard: a chord is held for twice as long and more.
_KEYBOARD_POLL = 0.04
_CORNER = "the pointer was moved into a corner of the screen"
_STOP_KEY = "the stop key was pressed"
#: Modifiers: their masks (X.h) and their keys.
_MODIFIERS = {
    "shift": (1, ("Shift_L", "Shift_R")),
    "ctrl": (4, ("Control_L", "Control_R")),
    "alt": (8, ("Alt_L", "Alt_R")),
    "super": (64, ("Super_L", "Super_R")),
}
#: Caps Lock, Num Lock and what else may be down besides the chord, perhaps by the agent's own hand.
_OTHERS = (2, 16, 32, 64, 128)
_KEYSYMS = {"enter": "Return", "print_screen": "Print", "pause": "Pause"}


class DisplayWatch:
    """Watches pointer and display until it is closed or the stop switch is set."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._closed = threading.Event()
        self._armed = False
        display = _connect()
        if display is not None:
            # Looked at once before the run begins: a pointer that is in a corner from the start was not slammed there.
            with suppress(Exception):
                self._look(display)
            threading.Thread(target=self._watch, args=(display,), name="watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _watch(self, display: Any) -> None:
        while not self._closed.wait(_POINTER_POLL) and not self._stop.stopped:
            try:
                self._look(display)
            except Exception as problem:  # a broken connection surfaces as any of a dozen exceptions
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
    """Sets the stop switch when the chord is pressed anywhere, until it is closed; the chord "none" does nothing.

    The chord is grabbed, so that no application gets it. A grab does not work during another grab (an open menu, a
    virtual machine), so the state of the keyboard is looked at as well.

    Raises:
        UsageError: that is no chord.
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
            return  # told elsewhere
        except Exception as error:  # python3-xlib surfaces a lost connection as any of a dozen exceptions
            self.remark = f"The stop key {chord} cannot be watched ({error!r})."
            return
        if not self._wanted:
            self.remark = f"The stop key {chord} is not on this keyboard: choose another with the setting stop_key."
            return
        if refused:
            self.remark = f"Another program uses {chord} too: it stops the run, and does what it does there."
        threading.Thread(target=self._watch, args=(display,), name="stop key", daemon=True).start()

    def close(self) -> None:
        """Give the chord back; does not wait."""
        self._closed.set()

    def _grab(self, display: Any, modifiers: list[str], key: str) -> bool:
        """Grab the chord with everything else that may be down; whether another program has it."""
        from Xlib import XK, X, error

        def codes(names: tuple[str, ...]) -> frozenset[int]:
            return frozenset(code for name in names if (code := display.keysym_to_keycode(XK.string_to_keysym(name))))

        keys = codes((key if len(key) == 1 else _KEYSYMS.get(key, key.title()),))
        # All of these sets must have a key that is down.
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

        with suppress(Exception):  # a lost display is told by the watch on it
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
