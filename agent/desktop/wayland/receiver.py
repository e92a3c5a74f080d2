"""Looks whether a text still goes where it was begun, on desktops that tell which window has the focus."""

from collections.abc import Callable

from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Window, Windows

#: After so many keys it is looked again who gets them: a look takes as long as a key.
_LOOKS_AFTER = 8


class Receiver:
    """The window that has the focus when a text is begun, and how much of that it got."""

    def __init__(self, windows: Windows | None, length: int, check_stop: Callable[[], None]) -> None:
        self._windows = windows
        self._window = None if windows is None else windows.active()
        self._length = length
        self._check_stop = check_stop
        self._keys = 0

    def before_key(self) -> None:
        """Raise where nothing more is to be typed."""
        self._check_stop()
        if self._keys % _LOOKS_AFTER == 0:
            self.look()
        self._keys += 1

    def check_stop(self) -> None:
        """Raise where the run was stopped."""
        self._check_stop()

    def look(self) -> None:
        """Raise ActionFailedError where another window has the focus now."""
        self._check_stop()
        if self._windows is None or self._window is None:
            return
        now = self._windows.active()
        if now is not None and now.id == self._window.id:
            return
        raise ActionFailedError(
            f"the keyboard focus {_went_to(now)} while this was typed: at most the first {self._keys} of "
            f"{self._length} characters are in {self._window.title or self._window.app!r}, and the rest was not typed"
        )


def _went_to(window: Window | None) -> str:
    return "went away" if window is None else f"went to {window.title or window.app!r}"
