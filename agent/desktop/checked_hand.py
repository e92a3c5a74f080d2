"""Keeps the hand off our own window, and from doing to one window what was allowed for another.

Between the moment when an action is judged and the moment when it is carried out a person may have read a question for
minutes, and windows come and go meanwhile.
"""

import time
from collections.abc import Callable

from agent.actions import TYPING, Action, OpenApp
from agent.desktop.hand import ActionFailedError, Hand
from agent.desktop.surroundings import Judged, aims
from agent.desktop.windows import Connection, OpenWindows, Window, WindowId, Windows
from agent.geometry import DesktopPoint
from foundation.errors import EnvironmentLacksError

_OWN_POINT = "that point is on mai-agent's own window, which is not to be touched: use another window"
_OWN_FOCUS = "the keyboard focus is on mai-agent's own window: click where to type first"
_MOVED_FOCUS = "the keyboard focus went to another window meanwhile: look again"
_MOVED_WINDOW = "another window came to that point meanwhile: look again"
_CHANGED = "the windows changed meanwhile: look again"
#: Window managers need about this long to hand over the focus.
_HANDOVER = 0.6


def receiver(windows: Windows, own: frozenset[WindowId]) -> Window | None:
    """The window that will get what is typed: the one with the focus or, where that is ours, the one used before it."""
    active = windows.active()
    if active is None or active.id not in own:
        return active
    others = (one for one in reversed(windows.stacking()) if one not in own and windows.is_ordinary(one))
    other = next(others, None)
    return active if other is None else windows.window(other)


class CheckedHand:
    """A `Hand` around the real one. Used from the hand's thread, where it opens a connection of its own.

    Args:
        hand: the real one.
        open_windows: of the desktop that it touches.
        own: our own windows.
        home: where the wheel turns when an action names no point.
        judged: what the last action was judged by, where it was.
    """

    def __init__(
        self,
        hand: Hand,
        open_windows: OpenWindows,
        own: frozenset[WindowId],
        home: DesktopPoint,
        judged: Callable[[], Judged | None] = lambda: None,
    ) -> None:
        self.touches, self.rest = hand.touches, hand.rest
        self._hand = hand
        self._windows = Connection(open_windows)
        self._own = own
        self._home = home
        self._judged = judged

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out, where it still goes where it was meant to; see `Hand.perform`."""
        windows = self._windows.get()
        if windows is not None and not isinstance(action, OpenApp):
            try:
                self._check(action, windows)
            except EnvironmentLacksError as error:  # a window that closed in between, or a lost connection
                self._windows.close()
                raise ActionFailedError(_CHANGED) from error
        return self._hand.perform(action)

    def _check(self, action: Action[DesktopPoint], windows: Windows) -> None:
        judged, typing = self._judged(), isinstance(action, TYPING)
        # A text that the person changed goes where it was to go, or nowhere.
        same = judged is not None and (judged.action == action or (typing and isinstance(judged.action, TYPING)))
        meant = judged.windows if judged is not None and same else None
        if typing:
            now = self._with_focus(windows)
            if meant is not None and meant != (now.id if now else None,):
                raise ActionFailedError(_MOVED_FOCUS)
            return
        found = [windows.at(*point.rounded()) for point in aims(action, self._home, windows)]
        if any(window is not None and window.id in self._own for window in found):
            raise ActionFailedError(_OWN_POINT)
        if meant is not None and meant != tuple(window.id if window else None for window in found):
            raise ActionFailedError(_MOVED_WINDOW)

    def _with_focus(self, windows: Windows) -> Window | None:
        """The window that has the focus, after it was taken from our own one."""
        now, wanted = windows.active(), receiver(windows, self._own)
        if wanted is None or now is None or (now.id == wanted.id and now.id not in self._own):
            return now
        if wanted.id in self._own or not windows.activate(wanted.id):
            raise ActionFailedError(_OWN_FOCUS)
        deadline = time.monotonic() + _HANDOVER
        while time.monotonic() < deadline:
            time.sleep(0.02)
            now = windows.active()
            if now is not None and now.id == wanted.id:
                return now
        raise ActionFailedError(_OWN_FOCUS)

    def release_all(self) -> None:
        """See `Hand.release_all`."""
        self._hand.release_all()

    def close(self) -> None:
        """Release everything and close the connection."""
        self._hand.close()
        self._windows.close()
