"""Where an action goes, as far as it tells itself: the points that it touches, and whether it moves the focus."""

from contextlib import suppress

from agent.core.actions import Action, ButtonDown, ButtonUp, Drag, HoldKeys, PressKeys, Scroll, points_of
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.windows import Windows
from agent.safety.text import spelled
from foundation.errors import EnvironmentLacksError


def aims(action: Action[DesktopPoint], home: DesktopPoint, windows: Windows | None) -> list[DesktopPoint]:
    """The points that an action really touches: also where the pointer is, for one that begins there."""
    points = points_of(action)
    if isinstance(action, Scroll) and not points:
        return [home]
    from_pointer = isinstance(action, Drag) and action.start is None
    from_pointer = from_pointer or (isinstance(action, ButtonDown | ButtonUp) and action.point is None)
    if from_pointer and windows is not None:
        with suppress(EnvironmentLacksError):  # the hand will find out
            return [DesktopPoint(*map(float, windows.pointer())), *points]
    return points


def leads_away(action: Action[DesktopPoint]) -> bool:
    """Whether what is typed next goes elsewhere, as far as can be known."""
    keys = set(action.keys) if isinstance(action, PressKeys | HoldKeys) else set()
    return bool(
        keys & {"tab", "enter", "kp_enter", "escape", "alt", "super"} or {"\t", "\n", "\r"} & set(spelled(action))
    )
