"""Watches what the loop cannot while it waits: the pointer slammed into a corner, and a display that went away.

pyautogui looks at the pointer only before it acts, which can be minutes later, and python3-xlib blocks for good on a
connection that broke. So a thread with its own connection looks all the time, and sets the stop switch.
"""

import threading
from contextlib import suppress
from typing import Any

from agent.desktop.x11.connection import display_lost, open_display
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: Between two looks, in seconds: a hand cannot slam and come back faster, and 20 questions a second cost X nothing.
_POLL = 0.05
_CORNER = "the pointer was moved into a corner of the screen"


class DisplayWatch:
    """Watches until it is closed or the stop switch is set."""

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
        while not self._closed.wait(_POLL) and not self._stop.stopped:
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


def _connect() -> Any:
    with suppress(EnvironmentLacksError):
        return open_display()
    return None
