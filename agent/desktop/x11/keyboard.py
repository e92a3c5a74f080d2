"""Types text with the keys of the present keyboard layout, which is never changed."""

import time
from collections.abc import Callable
from typing import Any

from agent.desktop.x11.connection import read_property

#: Seconds between two keys: toolkits that compress motion events also drop keys that come faster than they redraw.
_BETWEEN = 0.008

Stroke = tuple[int, bool]  # keycode, and whether shift is held with it


class Keyboard:
    """Presses keys on a connection. No key can stay down, even if this process is killed."""

    def __init__(self, display: Any) -> None:
        from Xlib import XK

        self._display = display
        self._shift = display.keysym_to_keycode(XK.XK_Shift_L)

    def strokes(self, text: str) -> list[Stroke] | None:
        """Return the keys for a text; None if the layout lacks one of its characters."""
        found = [self._stroke(char) for char in text]
        return None if None in found else [one for one in found if one is not None]

    def is_plain(self, text: str) -> bool:
        """Whether keys type their normal characters now: the first layout is active, and no Caps Lock changes them."""
        from Xlib import X

        mask = self._display.screen().root.query_pointer().mask
        group = mask >> 13 & 3  # XKB's layout, in bits that the core protocol does not use
        return not group and not (mask & X.LockMask and any(char.isalpha() for char in text))

    def has_input_method(self) -> bool:
        """Whether an input method serves this display; it may compose other characters from keys."""
        servers = read_property(self._display, self._display.screen().root.id, "XIM_SERVERS") or ()
        return any(not isinstance(self._display.get_selection_owner(server), int) for server in servers)

    def press(self, strokes: list[Stroke], before_each: Callable[[int], None]) -> None:
        """Press keys one after the other. `before_each` gets the number of keys pressed so far, and may raise."""
        for number, (code, shifted) in enumerate(strokes):
            before_each(number)
            self._press([self._shift, code] if shifted else [code])
            time.sleep(_BETWEEN)

    def _press(self, keys: list[int]) -> None:
        """Send press and release together, so that no key stays down or repeats, even if this process is killed."""
        from Xlib import X
        from Xlib.ext import xtest

        for kind, codes in ((X.KeyPress, keys), (X.KeyRelease, keys[::-1])):
            for code in codes:
                xtest.fake_input(self._display, kind, code)
        self._display.sync()

    def _stroke(self, char: str) -> Stroke | None:
        """Return keycode and shift for a character; None if this layout lacks it."""
        from Xlib import XK

        keysym = {"\n": XK.XK_Return, "\t": XK.XK_Tab}.get(char, ord(char))
        if (keysym > 0xFF or not char.isprintable()) and char not in "\n\t":
            return None
        # Columns 0 and 1 of the layout are the plain and the shifted key; higher ones need other modifiers.
        places = sorted((column, code) for code, column in self._display.keysym_to_keycodes(keysym) if column < 2)
        return (places[0][1], places[0][0] == 1) if places else None
