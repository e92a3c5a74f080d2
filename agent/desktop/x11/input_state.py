"""The state of pointer and keyboard on an X11 desktop."""

from contextlib import suppress

from agent.desktop.takeover import Look
from agent.desktop.x11.connection import keys_down, open_display


class X11InputState:
    """See `InputState`. Raises EnvironmentLacksError where there is no display."""

    def __init__(self) -> None:
        self._display = open_display()
        mapping = self._display.get_modifier_mapping()
        self._modifiers = frozenset(code for codes in mapping for code in codes if code)

    def look(self) -> Look:
        """See `InputState.look`."""
        at = self._display.screen().root.query_pointer()
        buttons = frozenset(number for number in range(1, 6) if at.mask >> (7 + number) & 1)
        return Look((at.root_x, at.root_y), buttons, keys_down(self._display) - self._modifiers)

    def close(self) -> None:
        """See `InputState.close`."""
        with suppress(Exception):
            self._display.close()
