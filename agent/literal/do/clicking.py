"""Clicks on buttons, links, icons, rows, menu items and the desktop itself."""

import re
from typing import cast

from agent.literal.do.choosing import OrGoal
from agent.literal.do.files.folders import enter_folder
from agent.literal.do.known_places import known_place
from agent.literal.do.looking import Search, at_once, covers, look
from agent.literal.do.now import Done, Move, Now, Pursuit, Step, Steps, Stuck, Verdict, start, until
from agent.literal.do.proof import has_focus, led_to, may_close, vanished
from agent.literal.find.effects import called, is_on, state_of
from agent.literal.find.scene import CLICKABLE, COMBOS, TEXTS
from agent.literal.goals import Choose, Click, Target
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

_CLICKS = {"left": "click", "right": "right_click", "middle": "middle_click"}
_PAGES = frozenset({"page tab", "list item", "tree item"})
_CHOSEN = frozenset({"page tab", "radio button", "radio menu item"})
_MOST_WAITS = 2
_MENUS = frozenset({"menu", "push button menu", "menu button", "toggle button", "push button"})
#: Words for the desktop, for free space, and for any place on it.
_DESKTOP = frozenset({"desktop", "wallpaper", "backdrop"})
_FREE = frozenset({"empty", "free", "blank"})
_PLACE = _FREE | frozenset("a an the of on area part place spot space background".split())  # noqa: SIM905
#: Distance in pixels from windows, whose boxes do not include their frames, and from the edges of the screen.
_FRAME, _EDGE = 32, 60
#: An element that covers this share of the screen is the backdrop itself.
_BACKDROP = 0.6


def click(now: Now, goal: Click) -> Pursuit:
    """Click something without a heading, looking for it if it is not shown."""
    return cast("Verdict", (yield from click_or_choose(now, goal)))


def click_or_choose(now: Now, goal: Click) -> OrGoal:
    """Click something, looking for it if it is not shown. If its heading is a combo box, end with that choice."""
    target = goal.target
    action = "double_click" if goal.count > 1 else _CLICKS[goal.button]
    if _is_desktop(goal) and now.finder.best(Target(target.name), CLICKABLE) is None:
        return (yield from _click_desktop(now, goal, action))
    if goal.or_open and not target.inside and (entered := (yield from enter_folder(now, target.name))) is not None:
        return entered
    place = known_place(now, target)
    opened_menu = False

    def find() -> Steps[Element | Step | Choose | None]:
        nonlocal opened_menu
        if action == "click" and (choice := _in_combo(now, target)) is not None:
            return choice
        if (found := (yield from _find(now, target, pages=goal.or_open))) is not None:
            return found
        menu = now.finder.best(Target(target.inside), _MENUS) if target.inside and not opened_menu else None
        if menu is not None and menu.role in _MENUS:
            opened_menu = True
            yield now.click(f"Open “{target.inside}”.", menu, main=False)
            return (yield from find())
        if goal.or_open and not target.inside and not now.opened(target.name):
            return start(f"{describe_target(target)} is not to be seen: open it.", target.name, main=True)
        return None

    search = Search(now, target)
    while True:
        found = cast("Element | Step | Stuck | Choose", (yield from look(now, find, target, place, tabs=False)))
        if isinstance(found, Stuck | Choose):
            return found
        if isinstance(found, Step):
            attempt = yield found
        else:
            if "disabled" in found.states:
                return Stuck(f"{describe_target(target)} cannot be clicked now: it is greyed out.")
            if found.role in TEXTS and (row := now.finder.hidden(target, CLICKABLE)) is not None:
                # The text is the page's heading. Its row in the list must be scrolled to.
                if "selected" in row.states:
                    return Done(f"{state_of(row)} already")
                if (step := search.to_offscreen()) is not None:
                    search.latest = yield step
                    continue
            if action == "click" and found.role in _CHOSEN and is_on(found):  # a click would have no effect
                return Done(f"{state_of(found)} already")
            words = f"“{now.scene.text_of(found)[:60]}” is there: {action.replace('_', ' ')} it."
            attempt = yield now.click(words, found, action)
        if attempt.failure is None or attempt.action != "open":
            return (yield from came_of(now, goal, attempt))


def _in_combo(now: Now, target: Target) -> Choose | None:
    """Return a choice if the heading is a combo box: "Slight under Hinting"."""
    if not target.under or not target.name:
        return None
    control = Target(target.under, inside=target.inside)
    return Choose(target.name, control) if now.finder.best(control, COMBOS) is not None else None


def go_to(now: Now, page: Place) -> Pursuit:
    """Go to a page of a settings window by its row, and check that the row is selected."""
    target = Target(page.path[-1])

    def find() -> Element | Done | None:
        found = now.finder.best(target, _PAGES)
        row = found or now.finder.hidden(target, _PAGES)
        return Done(state_of(row)) if row is not None and "selected" in row.states else found

    found = cast("Element | Done | Stuck", (yield from look(now, at_once(find), target, page, tabs=False)))
    if isinstance(found, Done | Stuck):
        return found
    attempt = yield now.click(f"Go to “{now.scene.text_of(found)}”.", found)
    return (yield from came_of(now, Click(target), attempt))


def _find(now: Now, target: Target, *, pages: bool) -> Steps[Element | None]:
    """Find the element to click. `pages`: prefer a page's row or tab to a button."""
    if pages and (page := (yield from now.the(target, _PAGES))) is not None:
        return page
    return (yield from now.the(target, CLICKABLE | TEXTS | {"image", "panel"}))


def came_of(now: Now, goal: Click, attempt: Move) -> Pursuit:
    """Check whether a click had an effect."""
    words = describe_target(goal.target)
    if attempt.failure is not None:
        return Stuck(f"{words} could not be clicked.")
    not_yet, times = f"{words} shows no effect yet: wait and look again.", _MOST_WAITS if now.last else 1
    if verdict := (yield from until(lambda: _effect_of(now, goal, attempt, words), not_yet, times)):
        return verdict
    field = has_focus(now, attempt)
    if outcome := led_to(now, attempt) or (f"{called(field)} has the focus" if field is not None else ""):
        return Done(f"I clicked {words}: {outcome}")
    if goal.or_open:
        return Stuck(f"I clicked {words}, and nothing shows that it opened.")
    return Done(f"I clicked {words}, and nothing shows what came of it", verified=False)


def _effect_of(now: Now, goal: Click, attempt: Move, words: str) -> Verdict | None:
    """Return the evidence of a click's effect, or Stuck if its window vanished; None for no effect yet."""
    if not may_close(goal.target.name) and (gone := vanished(now, attempt)):
        return Stuck(f"When I clicked {words}, {gone}.")
    effects = now.effects_of(attempt)
    if effects.changes or effects.windows or effects.altered:
        return Done(f"I clicked {words}: {effects.words}")
    own = now.finder.best(goal.target)
    if own is not None and is_on(own) and (goal.button, goal.count) == ("left", 1):
        return Done(state_of(own))
    if goal.or_open:
        return Done(f"I clicked {words}: {effects.words}") if effects else None
    bars = {one.name for one in attempt.scene.elements if one.role == "status bar"}
    name = goal.target.name
    messages = (one.name for one in now.scene.elements if one.role == "status bar" and name and name in one.name)
    if (message := next(messages, "")) and message not in bars:
        return Done(f"I clicked {words}: it says “{message}”")
    return Done(f"I clicked {words}: {effects.words}") if effects else None


def _is_desktop(goal: Click) -> bool:
    """Return whether the desktop itself is meant: "right-click the desktop", "click an empty area of the desktop".

    A plain click on "Desktop" or "Wallpaper" means an element of that name, which may not be shown yet.
    """
    target = goal.target
    named = set(re.findall(r"\w+", f"{target.name} {target.inside}".casefold()))
    if goal.button == "left" and not named & _FREE:
        return False
    return bool(named & _DESKTOP) and named <= _DESKTOP | _PLACE and not (target.role or target.under)


def _click_desktop(now: Now, goal: Click, action: str) -> Pursuit:
    """Click a point of the backdrop that no window, panel or icon covers."""
    spot = _free_spot(now)
    if spot is None:
        return Stuck("I see no free place of the desktop: windows cover it.")
    attempt = yield now.click_at("Nothing covers the desktop there.", *spot, action)
    names = {one.name for one in attempt.scene.elements}

    def effect() -> Done | None:
        came = [one.name for one in now.scene.elements if "menu" in one.role and one.name and one.name not in names]
        if goal.button == "right" and came:
            return Done(f"the desktop's menu is open: {', '.join(f'“{name}”' for name in came[:4])}")
        effects = now.effects_of(attempt)
        return Done(f"I clicked the desktop: {effects.words}") if effects else None

    done = yield from until(effect, "The desktop shows no effect yet: wait and look again.", _MOST_WAITS)
    return done or Done("I clicked the desktop, and nothing shows what came of it", verified=False)


def _free_spot(now: Now) -> tuple[float, float] | None:
    """Return the free point nearest to the centre of the screen; None if there is none."""
    size = now.scene.outline.size
    boxes = [window.box for window in now.scene.windows]
    boxes += [
        one.box for one in now.scene.elements if one.box.width * one.box.height < _BACKDROP * size.width * size.height
    ]
    spots = [
        (x, y)
        for x in range(_EDGE, size.width - _EDGE, 40)
        for y in range(_EDGE, size.height - _EDGE, 40)
        if not any(covers(box, x, y, _FRAME, _FRAME) for box in boxes)
    ]
    return min(spots, key=lambda spot: abs(spot[0] - size.width / 2) + abs(spot[1] - size.height / 2), default=None)
