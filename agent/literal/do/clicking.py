"""Clicking what is shown: buttons, links, icons, rows, items of menus."""

from agent.literal.do.backdrop import click_backdrop, is_desktop
from agent.literal.do.looking import known_place, look_further, to_offscreen
from agent.literal.do.proof import has_focus, led_to, may_close, vanished
from agent.literal.find.finder import Found
from agent.literal.find.scene import CLICKABLE, MENU_ITEMS, TEXTS
from agent.literal.goals import Click, Target
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Move
from agent.literal.state.effects import called, is_on, state_of
from agent.literal.state.goal_state import Done, GoalState, Stuck, Verdict, start, wait
from agent.literal.vocabulary.places import Place

_CLICKS = {"left": "click", "right": "right_click", "middle": "middle_click"}
_PAGES = frozenset({"page tab", "list item", "tree item"})
_MOST_WAITS = 2
_MENUS = frozenset({"menu", "push button menu", "menu button", "toggle button", "push button"})


def click(now: GoalState, goal: Click) -> Verdict:
    """The next step of a click."""
    target = goal.target
    action = "double_click" if goal.count > 1 else _CLICKS[goal.button]
    if is_desktop(goal) and (now.acted is not None or now.finder.best(Target(target.name), CLICKABLE) is None):
        return click_backdrop(now, goal, action)
    if now.acted is not None:
        return _came_of_it(now, goal, now.acted)
    found = find(now, target, pages=goal.or_open)
    if found is not None:
        element = found.element
        if "disabled" in element.states:
            return Stuck(f"{describe_target(target)} cannot be clicked now: it is greyed out.")
        if element.role in TEXTS and (row := now.finder.hidden(target, CLICKABLE)) is not None:
            # What is written above a page is not its row, which must be scrolled to.
            if "selected" in row.states:
                return Done(f"{state_of(row)} already")
            if (step := to_offscreen(now, target)) is not None:
                return step
        if is_chosen(found) and goal.button == "left" and goal.count == 1:
            return Done(f"{state_of(element)} already")
        return now.click(f"“{found.text[:60]}” is there: {action.replace('_', ' ')} it.", "act", element, action)
    if target.inside and (menu := _menu_of(now, target)) is not None:
        return menu
    if goal.or_open and not target.inside and not now.opened(target.name):
        return start(f"{describe_target(target)} is not to be seen: open it.", "act", target.name)
    return look_further(now, target, known_place(now, target), tabs=False)


def go_to(now: GoalState, page: Place) -> Verdict:
    """The next step on the way to a page of a settings window: its row there, which is selected in the end."""
    target = Target(page.path[-1])
    found = now.finder.best(target, _PAGES)
    row = found.element if found is not None else now.finder.hidden(target, _PAGES)
    if row is not None and "selected" in row.states:
        return Done(state_of(row))
    if now.acted is not None:
        return _came_of_it(now, Click(target), now.acted)
    if found is not None:
        return now.click(f"Go to “{found.text}”.", "act", found.element)
    return look_further(now, target, page, tabs=False)


def find(now: GoalState, target: Target, *, pages: bool = False) -> Found | None:
    """What is to be clicked; `pages`: where one goes to, what stands for a page comes before a button."""
    if pages and (page := now.the(target, _PAGES)) is not None:
        return page
    found = now.the(target, CLICKABLE | TEXTS | {"image", "panel"})
    if found is None and len(target.name.split()) > 1:  # "the Sound settings": the kind was not meant as a name
        found = None
    return found


def is_chosen(found: Found) -> bool:
    """Whether a click on it would do nothing: the tab, row or radio button that is chosen already."""
    return found.element.role in ("page tab", "radio button", "radio menu item") and is_on(found.element) is True


def _menu_of(now: GoalState, target: Target) -> Verdict | None:
    """Open the menu that the thing is said to be in."""
    if target.inside in [move.about for move in now.tried("place")]:
        return None
    menu = now.finder.best(Target(target.inside), _MENUS & (MENU_ITEMS | _MENUS))
    if menu is None or menu.element.role not in _MENUS:
        return None
    return now.click(f"Open “{target.inside}”.", "place", menu.element, about=target.inside)


def _came_of_it(now: GoalState, goal: Click, attempt: Move) -> Verdict:
    """Whether the click did something."""
    words = describe_target(goal.target)
    if attempt.has("failed"):
        if attempt.action == "open" and not now.tried("late"):
            return look_further(now, goal.target, known_place(now, goal.target), tabs=False)
        return Stuck(f"{words} could not be clicked.")
    if not may_close(goal.target.name) and (gone := vanished(now, attempt)):
        return Stuck(f"When I clicked {words}, {gone}.")
    effects = now.effects_of(attempt)
    if effects.changes or effects.windows or effects.altered:
        return Done(f"I clicked {words}: {effects.words}")
    own = now.finder.best(goal.target)
    if own is not None and is_on(own.element) and goal.button == "left" and goal.count == 1:
        return Done(state_of(own.element))
    if (told := _status(now, goal.target.name)) and told not in _statuses(attempt):
        return Done(f"I clicked {words}: it says “{told}”")
    if effects:
        return Done(f"I clicked {words}: {effects.words}")
    if now.waits < _MOST_WAITS and not (now.waits and not now.last):
        return wait(f"{words} shows no effect yet: wait and look again.")
    if told := led_to(now, attempt):
        return Done(f"I clicked {words}: {told}")
    if (field := has_focus(now, attempt)) is not None:
        return Done(f"I clicked {words}: {called(field)} has the focus")
    return Done(f"I clicked {words}, and nothing shows what came of it", verified=False)


def _status(now: GoalState, name: str) -> str:
    """What a status bar says about the thing; "" for nothing."""
    return next((one.name for one in now.scene.elements if one.role == "status bar" and name and name in one.name), "")


def _statuses(move: Move) -> list[str]:
    outline = None if move.screen is None else move.screen.outline
    return [] if outline is None else [one.name for one in outline.elements if one.role == "status bar"]
