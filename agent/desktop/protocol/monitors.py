"""Chooses the monitor of a desktop that a run watches."""

from collections.abc import Sequence

from agent.core.geometry import Region
from foundation.errors import UsageError


def number_of(monitors: Sequence[Region], monitor: int | None, primary: int | None = None) -> int:
    """Return the index, from 0, of a monitor that users number from 1.

    For None, return the primary monitor, or else the monitor at the origin, or else the first.

    Raises UsageError: there is no such monitor.
    """
    if monitor is None:
        at_origin = (number for number, one in enumerate(monitors) if one.left == one.top == 0)
        return next(at_origin, 0) if primary is None else primary
    if 1 <= monitor <= len(monitors):
        return monitor - 1
    have = "only monitor 1" if len(monitors) == 1 else f"monitors 1 to {len(monitors)}"
    raise UsageError(f"There is no monitor {monitor}: this desktop has {have}.", "Choose one of these.")
