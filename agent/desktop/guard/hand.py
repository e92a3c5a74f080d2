"""Keeps the hand off our own windows, and refuses an action if another window is now where it would land.

A model thinks for seconds and a person may read a question for minutes. Meanwhile, windows appear and disappear.
"""

import time
from collections.abc import Callable

from agent.core import actions
from agent.core.geometry import DesktopPoint
from agent.core.keys import MODIFIERS
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.targets import Meant, aims, changed_at, changed_focus, sight
from agent.desktop.protocol.hand import ActionFailedError, Hand
from agent.desktop.protocol.windows import Connection, Window, WindowId, Windows
from foundation.errors import EnvironmentLacksError

_OWN_POINT = "that point is on mai-agent's own window, which is not to be touched: use another window"
_OWN_FOCUS = "the keyboard focus is on mai-agent's own window: click where to type first"
_OWN_ENTRY = "that is the taskbar entry of mai-agent's own window, which is not to be touched: use another window"
_OWN_RAISED = (
    "that brought up or hid mai-agent's own window, which is not to be touched, so the windows were put back: "
    "use another window"
)
_MOVED_FOCUS = "the keyboard focus went to another window meanwhile: look again"
_MOVED_WINDOW = "another window came to that point meanwhile: look again"
_CHANGED = "the windows changed meanwhile: look again"
#: Seconds that window managers need to hand over the focus.
_HANDOVER = 0.6
#: Seconds in which our window may still come up after a click in a panel.
_COMES_UP = 0.4
_POLL = 0.03
#: Shorter titles are too unspecific to recognise a panel's entry by.
_SHORTEST = 4


class GuardedHand:
    """A `Hand` that checks every action before the real hand carries it out. Used from the hand's thread.

    `meant` returns where the last action was meant to go.
    """

    def __init__(self, hand: Hand, reach: Reach, meant: Callable[[], Meant] = Meant) -> None:
        self.touches, self.rest = hand.touches, hand.rest
        self._hand = hand
        self._windows = Connection(reach.open_windows)
        self._reach = reach
        self._meant = meant

    def perform(self, action: actions.Action[DesktopPoint]) -> str:
        """Carry the action out if it would still land where it was meant to."""
        windows = self._windows.get()
        if windows is None or isinstance(action, actions.OpenApp | actions.VisitPage):
            return self._hand.perform(action)
        try:
            if not _ends_or_waits(action):
                self._check(action, windows)
            before = _OwnWindows(windows, self._reach) if self._may_bring_up(action, windows) else None
        except EnvironmentLacksError as error:  # a window that closed in between, or a lost connection
            self._windows.close()
            raise ActionFailedError(_CHANGED) from error
        done = self._hand.perform(action)
        if before is not None and before.put_back():
            raise ActionFailedError(_OWN_RAISED)
        return done

    def _check(self, action: actions.Action[DesktopPoint], windows: Windows) -> None:
        meant, typing = self._meant(), isinstance(action, actions.TYPING)
        points = aims(action, windows)
        found = [windows.at(*point.rounded()) for point in points]
        if any(map(self._reach.owns, found)):
            raise ActionFailedError(_OWN_POINT)
        if meant.seen is not None:
            now = sight(windows, self._reach)
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
        self, action: actions.Action[DesktopPoint], meant: Meant, found: list[Window | None], windows: Windows
    ) -> bool:
        """Whether an action hits the entry of our own window in a panel, judged by the elements' names."""
        own = self._reach.ours(windows)
        if not own or meant.hit is None or actions.points_of(meant.hit.action)[-1:] != actions.points_of(action)[-1:]:
            return False
        if all(window is None or windows.is_ordinary(window.id) for window in found):
            return False  # not a panel: a web page may show any text
        ours = [window.title.casefold() for one in own if (window := windows.window(one)) is not None]
        names = [element.name.casefold() for element in meant.hit.elements]
        return any(len(title) >= _SHORTEST and title in name for title in ours for name in names)

    def _may_bring_up(self, action: actions.Action[DesktopPoint], windows: Windows) -> bool:
        """Whether we have a window, and the action presses something in a panel, which may raise or minimise it."""
        if not self._reach.may_own or not isinstance(
            action, actions.Click | actions.LongPress | actions.Drag | actions.ButtonDown | actions.ButtonUp
        ):
            return False
        found = [windows.at(*point.rounded()) for point in aims(action, windows)]
        return any(window is None or not windows.is_ordinary(window.id) for window in found)

    def _with_focus(self, windows: Windows) -> Window | None:
        """Return the focused window; if it is our own, first focus the window used before."""
        now, wanted = windows.active(), self._reach.receiver(windows)
        if wanted is None or now is None or (now.id == wanted.id and not self._reach.owns(now)):
            return now
        if self._reach.owns(wanted) or not windows.activate(wanted.id):
            raise ActionFailedError(_OWN_FOCUS)
        deadline = time.monotonic() + _HANDOVER
        while time.monotonic() < deadline:
            time.sleep(0.02)
            now = windows.active()
            if now is not None and now.id == wanted.id:
                return now
        raise ActionFailedError(_OWN_FOCUS)

    def lift(self) -> None:
        self._hand.lift()

    def release_all(self) -> None:
        self._hand.release_all()

    def close(self) -> None:
        self._hand.close()
        self._windows.close()


def _ends_or_waits(action: actions.Action[DesktopPoint]) -> bool:
    """Whether an action only releases keys or a button in place, or only holds modifiers for later actions."""
    if isinstance(action, actions.KeyDown):
        return set(action.keys) <= set(MODIFIERS)
    return isinstance(action, actions.KeyUp) or (isinstance(action, actions.ButtonUp) and action.point is None)


def _allowed(action: actions.Action[DesktopPoint], meant: Meant) -> tuple[WindowId | None, ...] | None:
    """Return the windows that the policy judged this action to reach; None if unknown."""
    judged = meant.judged
    if judged is None:
        return None
    if isinstance(action, actions.TYPING):  # the person may have edited the text, but not its window
        return judged.windows if isinstance(judged.action, actions.TYPING) else None
    match action, judged.action:
        case ((actions.Move(point) | actions.ButtonUp(point)), actions.Drag(end=end)) if (
            point == end
        ):  # judged as a drag: a button is down
            return judged.windows[-1:]
        case actions.ButtonDown(point), actions.Click(judged_point) if point == judged_point:
            return judged.windows
    return judged.windows if judged.action == action else None


class _OwnWindows:
    """The state of our own windows before an action that may bring them up or hide them."""

    def __init__(self, windows: Windows, reach: Reach) -> None:
        self._windows, self._reach = windows, reach
        active = windows.active()
        self._active = active.id if active else None
        self._order = windows.stacking()
        self._shown = self._shown_now()
        self._worked_in = active is not None and windows.is_ordinary(active.id)

    def put_back(self) -> bool:
        """Restore the windows if ours came up or were hidden. Return whether they did."""
        deadline = time.monotonic() + _COMES_UP
        try:
            while not (changed := self._changed()) and time.monotonic() < deadline:
                time.sleep(_POLL)
            if not changed:
                return False
            for hidden in self._shown - self._shown_now():
                self._windows.activate(hidden)
            for one in self._reach.ours(self._windows):
                put_back_above(self._windows, self._order, one)
            if self._active is not None:
                self._windows.activate(self._active)
        except EnvironmentLacksError:  # the connection is lost: the next action will fail
            return False
        return True

    def _shown_now(self) -> frozenset[WindowId]:
        return frozenset(one for one in self._reach.ours(self._windows) if self._windows.is_ordinary(one))

    def _changed(self) -> bool:
        active = self._windows.active()
        came_up = self._reach.owns(active) and active is not None and active.id != self._active
        if came_up and self._worked_in and not self._windows.is_ordinary(self._active):
            came_up = False  # the focused window was closed or minimised, and ours was only the next one
        return came_up or self._shown_now() != self._shown


def put_back_above(windows: Windows, order: list[WindowId], raised: WindowId) -> None:
    """Raise the windows that were above `raised` before it came to the front, in their old order."""
    if raised in order:
        for identifier in order[order.index(raised) + 1 :]:
            if windows.is_ordinary(identifier):
                windows.activate(identifier)
