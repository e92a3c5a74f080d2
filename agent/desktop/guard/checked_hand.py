"""Keeps the hand off our own window, and from doing to one window what was meant for another.

A model thinks for seconds, and a person may read a question for minutes; windows come and go meanwhile.
"""

import time
from collections.abc import Callable

from agent.core.actions import (
    TYPING,
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    HoldKeys,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    PressKeys,
    VisitPage,
    points_of,
)
from agent.core.geometry import DesktopPoint
from agent.core.keys import MODIFIERS
from agent.desktop.guard.aiming import aims
from agent.desktop.guard.focus import put_back_above
from agent.desktop.guard.surroundings import Meant
from agent.desktop.guard.targets import changed_at, changed_focus, sight
from agent.desktop.protocol.hand import ActionFailedError, Hand
from agent.desktop.protocol.windows import Connection, OpenWindows, Window, WindowId, Windows, receiver
from foundation.errors import EnvironmentLacksError

_OWN_POINT = "that point is on mai-agent's own window, which is not to be touched: use another window"
_OWN_FOCUS = "the keyboard focus is on mai-agent's own window: click where to type first"
_OWN_ENTRY = "that is the entry of mai-agent's own window, which is not to be touched: use another window"
_OWN_RAISED = (
    "that brought up or hid mai-agent's own window, which is not to be touched, so the windows were put back: "
    "use another window"
)
_MOVED_FOCUS = "the keyboard focus went to another window meanwhile: look again"
_MOVED_WINDOW = "another window came to that point meanwhile: look again"
_CHANGED = "the windows changed meanwhile: look again"
#: Window managers need about this long to hand over the focus.
_HANDOVER = 0.6
#: So long after a click in a panel, or keys that switch windows, ours may still come up.
_COMES_UP = 0.4
_POLL = 0.03
_SWITCHING = {"alt", "super"}
#: A title shorter than this says too little to know an entry by.
_SHORTEST = 4


class CheckedHand:
    """A `Hand` around the real one. Used from the hand's thread, where it opens a connection of its own.

    Args:
        hand: the real one.
        open_windows: of the desktop that it touches.
        own: our own windows.
        home: where the wheel turns when an action names no point.
        meant: where the last action was meant to go, where that is known.
    """

    def __init__(
        self,
        hand: Hand,
        open_windows: OpenWindows,
        own: frozenset[WindowId],
        home: DesktopPoint,
        meant: Callable[[], Meant] = Meant,
    ) -> None:
        self.touches, self.rest = hand.touches, hand.rest
        self._hand = hand
        self._windows = Connection(open_windows)
        self._own = own
        self._home = home
        self._meant = meant
        self._switching = False  # a key is kept down that brings up another window when it is released

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out, where it still goes where it was meant to; see `Hand.perform`."""
        windows = self._windows.get()
        if windows is None or isinstance(action, OpenApp | VisitPage):
            return self._hand.perform(action)
        try:
            if not _ends_or_waits(action):
                self._check(action, windows)
            before = _Ours.of(windows, self._own) if self._may_bring_up(action, windows) else None
        except EnvironmentLacksError as error:  # a window that closed in between, or a lost connection
            self._windows.close()
            raise ActionFailedError(_CHANGED) from error
        done = self._hand.perform(action)
        if isinstance(action, KeyDown | KeyUp) and _SWITCHING & set(action.keys):
            self._switching = isinstance(action, KeyDown)
        if before is not None and before.put_back(windows):
            raise ActionFailedError(_OWN_RAISED)
        return done

    def _check(self, action: Action[DesktopPoint], windows: Windows) -> None:
        meant, typing = self._meant(), isinstance(action, TYPING)
        points = aims(action, self._home, windows)
        found = [windows.at(*point.rounded()) for point in points]
        if any(window is not None and window.id in self._own for window in found):
            raise ActionFailedError(_OWN_POINT)
        if meant.seen is not None:
            now = sight(windows, self._own)
            changed = changed_focus(meant.seen, now) if typing else changed_at(meant.seen, now, points)
            if changed:
                raise ActionFailedError(f"{changed}: look again")
        allowed = _allowed(action, meant)
        if typing:
            focused = self._with_focus(windows)
            if allowed is not None and allowed != (focused.id if focused else None,):
                raise ActionFailedError(_MOVED_FOCUS)
            return
        if allowed is not None and allowed != tuple(window.id if window else None for window in found):
            raise ActionFailedError(_MOVED_WINDOW)
        if self._is_own_entry(action, meant, found, windows):
            raise ActionFailedError(_OWN_ENTRY)

    def _is_own_entry(
        self, action: Action[DesktopPoint], meant: Meant, found: list[Window | None], windows: Windows
    ) -> bool:
        """Whether it goes to what a panel shows for our own window, as the names of elements tell."""
        if not self._own or meant.hit is None or points_of(meant.hit.action)[-1:] != points_of(action)[-1:]:
            return False
        if all(window is None or windows.is_ordinary(window.id) for window in found):
            return False  # pages may write what they want
        ours = [window.title.casefold() for one in self._own if (window := windows.window(one)) is not None]
        names = [element.name.casefold() for element in meant.hit.elements]
        return any(len(title) >= _SHORTEST and title in name for title in ours for name in names)

    def _may_bring_up(self, action: Action[DesktopPoint], windows: Windows) -> bool:
        """Whether it may raise, minimise or close a window that it does not touch, and we have one."""
        if not self._own:
            return False
        if isinstance(action, PressKeys | HoldKeys | KeyDown | KeyUp):
            return bool(_SWITCHING & set(action.keys))
        if not isinstance(action, Click | LongPress | Drag | ButtonDown | ButtonUp):
            return False
        found = [windows.at(*point.rounded()) for point in aims(action, self._home, windows)]
        return any(window is None or not windows.is_ordinary(window.id) for window in found)

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

    def lift(self) -> None:
        """See `Hand.lift`; what that brings up of ours is put back."""
        windows = self._windows.get() if self._switching and self._own else None
        self._switching = False
        try:
            before = None if windows is None else _Ours.of(windows, self._own)
            self._hand.lift()
            if before is not None and windows is not None:
                before.put_back(windows)
        except EnvironmentLacksError:
            self._windows.close()
            self._hand.lift()

    def release_all(self) -> None:
        self._hand.release_all()

    def close(self) -> None:
        """Release everything and close the connection."""
        self._hand.close()
        self._windows.close()


def _ends_or_waits(action: Action[DesktopPoint]) -> bool:
    """Whether an action only releases, where it is, or names modifiers that are pressed with a later one."""
    if isinstance(action, KeyDown):
        return set(action.keys) <= set(MODIFIERS)
    return isinstance(action, KeyUp) or (isinstance(action, ButtonUp) and action.point is None)


def _allowed(action: Action[DesktopPoint], meant: Meant) -> tuple[WindowId | None, ...] | None:
    """The windows that an action was judged to reach; None where it is not known."""
    judged = meant.judged
    if judged is None:
        return None
    if isinstance(action, TYPING):  # a text that the person changed goes where it was to go, or nowhere
        return judged.windows if isinstance(judged.action, TYPING) else None
    match action, judged.action:
        case ((Move(point) | ButtonUp(point)), Drag(end=end)) if point == end:  # with a button down, judged as a drag
            return judged.windows[-1:]
        case ButtonDown(point), Click(judged_point) if point == judged_point:
            return judged.windows
    return judged.windows if judged.action == action else None


class _Ours:
    """How our own windows stood before an action that may bring them up or hide them."""

    def __init__(self, own: frozenset[WindowId], active: WindowId | None, order: list[WindowId]) -> None:
        self._own, self._active, self._order = own, active, order
        self._shown: frozenset[WindowId] = frozenset()
        self._worked_in = False  # the active window was one to work in

    @classmethod
    def of(cls, windows: Windows, own: frozenset[WindowId]) -> "_Ours":
        """How they stand now."""
        active = windows.active()
        found = cls(own, active.id if active else None, windows.stacking())
        found._shown = found._shown_now(windows)
        found._worked_in = active is not None and windows.is_ordinary(active.id)
        return found

    def put_back(self, windows: Windows) -> bool:
        """Put the windows back if ours came up, or was hidden, since then; whether that was so."""
        deadline = time.monotonic() + _COMES_UP
        try:
            while not (changed := self._changed(windows)) and time.monotonic() < deadline:
                time.sleep(_POLL)
            if not changed:
                return False
            for hidden in self._shown - self._shown_now(windows):
                windows.activate(hidden)
            for one in self._own:
                put_back_above(windows, self._order, one)
            if self._active is not None:
                windows.activate(self._active)
        except EnvironmentLacksError:  # the connection is lost: the next action finds out
            return False
        return True

    def _shown_now(self, windows: Windows) -> frozenset[WindowId]:
        return frozenset(one for one in self._own if windows.is_ordinary(one))

    def _changed(self, windows: Windows) -> bool:
        active = windows.active()
        came_up = active is not None and active.id in self._own and active.id != self._active
        if came_up and self._worked_in and not windows.is_ordinary(self._active):
            came_up = False  # the window that had the focus was closed or minimised: ours only came next
        return came_up or self._shown_now(windows) != self._shown
