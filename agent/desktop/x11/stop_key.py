"""Hears the chord of keys that stops the run wherever the focus is.

The chord is grabbed, so that no application gets it; and because a grab does not work while another one is active (an
open menu, a virtual machine), the state of the keyboard is looked at as well.
"""

import itertools
import select
import threading
from contextlib import suppress
from typing import Any

from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.desktop.x11.connection import keys_down, open_display
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

_REASON = "the stop key was pressed"
#: Between two looks at the keyboard, in seconds: a chord is held for twice as long and more.
_POLL = 0.04

#: Modifiers: their masks (X.h) and the keys that make them.
_MODIFIERS = {
    "shift": (1, ("Shift_L", "Shift_R")),
    "ctrl": (4, ("Control_L", "Control_R")),
    "alt": (8, ("Alt_L", "Alt_R")),
    "super": (64, ("Super_L", "Super_R")),
}
#: Caps Lock, Num Lock and what else may be down besides the chord, perhaps by the agent's own hand.
_OTHERS = (2, 16, 32, 64, 128)
_KEYSYMS = {"enter": "Return", "print_screen": "Print", "pause": "Pause"}


class StopKey:
    """Sets the stop switch when the chord is pressed, until it is closed; for the chord "none", does nothing.

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

        name = key if len(key) == 1 else _KEYSYMS.get(key, key.title())
        keys = codes((name,))
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
                        self._stop.stop(_REASON)
                down = keys_down(display)
                if all(down & keys for keys in self._wanted):
                    self._stop.stop(_REASON)
                if not display.pending_events():
                    select.select([display.fileno()], [], [], _POLL)
        with suppress(Exception):
            display.close()
