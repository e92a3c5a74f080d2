"""Compares the windows that the model saw with the windows at the time of its action.

A model thinks for seconds. If a window that it saw is gone, has moved or is covered by now, or if the keyboard focus is
elsewhere, its action would do something else.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent.core.actions import Action, ButtonUp, HoldKeys, PressKeys, missing_point, points_of
from agent.core.geometry import DesktopPoint
from agent.desktop.guard.reach import Reach
from agent.desktop.protocol.windows import Layer, Window, WindowId, Windows
from agent.safety.text import spelled
from agent.screen.outline import Element
from foundation.errors import EnvironmentLacksError

#: Types of windows that take no keys.
_TAKES_NO_KEYS = {"NOTIFICATION", "TOOLTIP", "DND", "DOCK", "SPLASH", "DESKTOP"}
#: Popups of the application itself that take the keys. Autocompletion lists do not.
_MENUS = {"MENU", "POPUP_MENU", "DROPDOWN_MENU"}
#: Characters of a title in messages.
_TOLD = 40


@dataclass(frozen=True, slots=True)
class Sighting:
    """The windows at one moment."""

    receiver: Window | None  # receives typed text
    layers: tuple[Layer, ...]  # the topmost first

    def at(self, point: DesktopPoint) -> Layer | None:
        """Return the layer visible at a point; tooltips are ignored."""
        return next((one for one in self.layers if not one.passing and one.outer.contains(point)), None)

    def layer(self, window: WindowId) -> Layer | None:
        return next((one for one in self.layers if one.window.id == window), None)


@dataclass(frozen=True, slots=True)
class Judged:
    """The windows that the policy judged an action to reach; None if unknown."""

    action: Action[DesktopPoint]
    windows: tuple[WindowId | None, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """The elements that an action would hit."""

    action: Action[DesktopPoint]
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Meant:
    """Where the last action was meant to go; None if unknown."""

    seen: Sighting | None = None  # the windows when the model was shown the screen
    judged: Judged | None = None  # the windows that the policy judged
    hit: Hit | None = None  # the elements that it would hit


def aims(action: Action[DesktopPoint], windows: Windows | None) -> list[DesktopPoint]:
    """Return the points that an action touches, including the pointer's position if the action starts there."""
    points = points_of(action)
    from_pointer = missing_point(action) is not None or (isinstance(action, ButtonUp) and action.point is None)
    if from_pointer and windows is not None:
        with suppress(EnvironmentLacksError):  # the hand will report it
            return [DesktopPoint(*map(float, windows.pointer())), *points]
    return points


def leads_away(action: Action[DesktopPoint]) -> bool:
    """Whether an action's keys may move the focus, so that later typing goes elsewhere."""
    keys = set(action.keys) if isinstance(action, PressKeys | HoldKeys) else set()
    return bool(
        keys & {"tab", "enter", "kp_enter", "escape", "alt", "super"} or {"\t", "\n", "\r"} & set(spelled(action))
    )


def sight(windows: Windows, reach: Reach) -> Sighting:
    """Return the present state of the windows. Raises EnvironmentLacksError."""
    return Sighting(reach.receiver(windows), tuple(windows.layers()))


def changed_at(before: Sighting, now: Sighting, points: Sequence[DesktopPoint]) -> str:
    """Describe, without a full stop, what changed at some points; "" if nothing did."""
    return next((change for point in points if (change := _changed(before, now, point))), "")


def changed_focus(before: Sighting, now: Sighting) -> str:
    """Describe, without a full stop, how the keyboard focus changed; "" if it did not."""
    was, is_now = before.receiver, now.receiver
    if (was.id if was else None) != (is_now.id if is_now else None):
        if was is None:
            return f"the keyboard focus went to {named(is_now)} meanwhile"
        gone = now.layer(was.id) is None and before.layer(was.id) is not None
        where = f"the keyboard focus is on {named(is_now)}" if is_now else "nothing has the keyboard focus"
        how = "is not there any more, and" if gone else "lost the keyboard focus meanwhile:"
        return f"{named(was)} {how} {where}"
    known = {one.window.id for one in before.layers}
    layer = now.layer(is_now.id) if is_now else None
    for one in now.layers:
        if not one.helper or one.window.id in known or one.passing or one.kinds & _TAKES_NO_KEYS:
            continue
        if layer is None or one.client != layer.client or one.kinds & _MENUS:
            return f"{named(one.window)} came up meanwhile and may take the keys"
    return ""


def _changed(before: Sighting, now: Sighting, point: DesktopPoint) -> str:
    was, is_now = before.at(point), now.at(point)
    if was is None:
        return "" if is_now is None else f"{named(is_now.window)} came to that point meanwhile"
    if is_now is not None and was.window.id == is_now.window.id:
        if was.backdrop or "DOCK" in was.kinds or was.box == is_now.box:
            return ""
        moved = (was.box.left, was.box.top) != (is_now.box.left, is_now.box.top)
        return f"{named(was.window)} {'moved' if moved else 'changed its size'} meanwhile"
    if now.layer(was.window.id) is None:
        return f"{named(was.window)} is not there any more"
    if is_now is None or is_now.backdrop:
        return f"{named(was.window)} moved meanwhile"
    if was.backdrop:
        return f"{named(is_now.window)} came to that point meanwhile"
    return f"{named(is_now.window)} covers {named(was.window)} at that point now"


def named(window: Window | None) -> str:
    """Return a window's title, shortened and quoted. Untrusted text can end neither the quote nor a sentence."""
    title = "" if window is None else window.title or window.app
    plain = "".join(char if char.isprintable() else " " for char in title).replace("“", "‘").replace("”", "’")
    name = " ".join(plain.split()).replace(". ", " ")
    return f"“{name[:_TOLD]}…”" if len(name) > _TOLD else f"“{name}”" if name else "a window without a name"
