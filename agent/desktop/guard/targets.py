"""How the windows stood when the model was shown the screen, against how they stand when it acts.

A model thinks for seconds. What it decided was meant for the windows that it saw: where one of them is gone, has moved
or is covered by now, or the keyboard focus is elsewhere, its action would do something else to somebody else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.windows import Layer, Window, WindowId, Windows, receiver

#: What says of itself that it is one of these takes no keys.
_TAKES_NO_KEYS = {"NOTIFICATION", "TOOLTIP", "DND", "DOCK", "SPLASH", "DESKTOP"}
#: Popups of the application itself that take the keys; a list that completes what is typed does not.
_MENUS = {"MENU", "POPUP_MENU", "DROPDOWN_MENU"}
#: Characters of a title that are told.
_TOLD = 40


@dataclass(frozen=True, slots=True)
class Sighting:
    """The windows at one moment."""

    receiver: Window | None  # gets what is typed
    layers: tuple[Layer, ...]  # the top-most first

    def at(self, point: DesktopPoint) -> Layer | None:
        """What is seen at a point."""
        return next((one for one in self.layers if not one.passing and one.outer.contains(point)), None)

    def layer(self, window: WindowId) -> Layer | None:
        """How a window stands there."""
        return next((one for one in self.layers if one.window.id == window), None)


def sight(windows: Windows, own: frozenset[WindowId]) -> Sighting:
    """How they stand now; `own` are our own ones. Raises EnvironmentLacksError."""
    return Sighting(receiver(windows, own), tuple(windows.layers()))


def changed_at(before: Sighting, now: Sighting, points: Sequence[DesktopPoint]) -> str:
    """What became of what was seen at some points, as a sentence without its end; "" where it is as it was."""
    return next((what for point in points if (what := _changed(before, now, point))), "")


def changed_focus(before: Sighting, now: Sighting) -> str:
    """What became of the keyboard focus, as a sentence without its end; "" where it is where it was."""
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
    """What a person calls a window, shortened: titles are a stranger's text, and may end no sentence and no quote."""
    told = "" if window is None else window.title or window.app
    plain = "".join(char if char.isprintable() else " " for char in told).replace("“", "‘").replace("”", "’")
    name = " ".join(plain.split()).replace(". ", " ")
    return f"“{name[:_TOLD]}…”" if len(name) > _TOLD else f"“{name}”" if name else "a window without a name"
