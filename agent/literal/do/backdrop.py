"""Clicking the desktop itself: a place of its backdrop that no window, panel or icon covers."""

import re

from agent.literal.find.scene import below, right_of
from agent.literal.goals import Click
from agent.literal.state.goal_state import Done, GoalState, Stuck, Verdict, wait

#: Words that name the desktop, and those that say no more than a place of it.
_DESKTOP = frozenset({"desktop", "wallpaper", "backdrop"})
_FREE = frozenset({"empty", "free", "blank"})
_PLACE = _FREE | frozenset("a an the of on area part place spot space background".split())  # noqa: SIM905
#: Pixels kept away from windows, whose frames are not in their boxes, and from the edges of the screen.
_FRAME, _EDGE = 32, 60
#: What covers this share of the screen is the backdrop itself.
_BACKDROP = 0.6
_WAITS = 2


def is_desktop(goal: Click) -> bool:
    """Whether the desktop itself is meant: "right-click the desktop", "click an empty area of the desktop".

    A plain click on "Desktop" or "Wallpaper" is one on something of that name, which may not be shown yet.
    """
    target = goal.target
    named = set(re.findall(r"\w+", f"{target.name} {target.inside}".casefold()))
    if goal.button == "left" and not named & _FREE:
        return False
    return bool(named & _DESKTOP) and named <= _DESKTOP | _PLACE and not (target.role or target.under)


def click_backdrop(now: GoalState, goal: Click, action: str) -> Verdict:
    """The next step of clicking the desktop."""
    attempt = now.acted
    if attempt is None:
        spot = _free_spot(now)
        if spot is None:
            return Stuck("I see no free place of the desktop: windows cover it.")
        return now.click_at("Nothing covers the desktop there.", "act", *spot, action)
    had = () if attempt.screen is None or attempt.screen.outline is None else attempt.screen.outline.elements
    names = {one.name for one in had}
    came = [one.name for one in now.scene.elements if "menu" in one.role and one.name and one.name not in names]
    if goal.button == "right" and came:
        return Done(f"the desktop's menu is open: {', '.join(f'“{name}”' for name in came[:4])}")
    if effects := now.effects_of(attempt):
        return Done(f"I clicked the desktop: {effects.words}")
    if now.waits < _WAITS:
        return wait("The desktop shows no effect yet: wait and look again.")
    return Done("I clicked the desktop, and nothing shows what came of it", verified=False)


def _free_spot(now: GoalState) -> tuple[float, float] | None:
    """The free place next to the middle of the screen."""
    size = now.scene.outline.size
    windows = [window.box for window in now.scene.windows]
    small = [
        one.box for one in now.scene.elements if one.box.width * one.box.height < _BACKDROP * size.width * size.height
    ]
    spots = [
        (x, y)
        for x in range(_EDGE, size.width - _EDGE, 40)
        for y in range(_EDGE, size.height - _EDGE, 40)
        if not any(
            box.left - _FRAME <= x < right_of(box) + _FRAME and box.top - _FRAME <= y < below(box) + _FRAME
            for box in (*windows, *small)
        )
    ]
    return min(spots, key=lambda spot: abs(spot[0] - size.width / 2) + abs(spot[1] - size.height / 2), default=None)
