"""Choosing one of several: in combo boxes, lists, trees, tables, groups of radio buttons, menus."""

import re
from dataclasses import replace
from fnmatch import fnmatchcase

from agent.literal.do.looking import known_place, look_further, moved
from agent.literal.do.toggling import targets_of
from agent.literal.find.finder import WHOLE, Found, fit_of
from agent.literal.find.scene import AMOUNTS, CHOICES, COMBOS, FIELDS, TEXTS, contains
from agent.literal.goals import Choose, Click, SetValue, Target, Type
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Move
from agent.literal.state.effects import is_on, state_of
from agent.literal.state.goal_state import Done, GoalState, Stuck, Verdict, press, wait
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

_MOST_WAITS = 2
_MOST_SCROLLS = 8
#: What an open combo box shows.
_OPTIONS = CHOICES | TEXTS | {"menu item", "push button", "check box", "toggle button"}


def choose(now: GoalState, goal: Choose) -> "Verdict | Click | SetValue | Type":
    """The next step of having a control show a choice; another goal where the control is of another kind."""
    place = known_place(now, goal.control)
    opened = now.tried("focus")
    if (whole := _as_one_name(now, goal)) is not None:
        return whole
    combo = _find(now, goal.control, place, COMBOS)
    if now.acted is not None:
        return _came_of_it(now, goal, now.acted, combo, place)
    if combo is not None and shows(now, combo, goal.value):
        return Done(f"{describe_target(goal.control)} shows “{goal.value}” already")
    if opened:
        return _pick(now, goal, combo)
    if combo is not None:
        return now.click(f"Open {describe_target(goal.control)}.", "focus", combo, about=goal.control.name)
    menu = _find(now, goal.control, None, {"menu"})
    if menu is not None:
        return Click(Target(goal.value, role="menu item", inside=goal.control.name))
    if (other := _other_kind(now, goal, place)) is not None:
        return other
    choice = _choice(now, goal, place)
    if choice is not None:
        if is_on(choice.element):
            return Done(f"“{goal.value}” is chosen already: {state_of(choice.element)}")
        return now.click(f"Choose “{choice.text}”.", "act", choice.element)
    return look_further(now, _to_look_for(now, goal), place)


def _as_one_name(now: GoalState, goal: Choose) -> Click | None:
    """A click, where value and control are one name together: "Use the same source for all windows"."""
    whole = goal.control.whole
    if not whole or whole.casefold() == goal.control.name.casefold():
        return None
    found = now.finder.best(Target(whole), CHOICES | {"toggle button", "push button"})
    return None if found is None else Click(Target(whole))


def _to_look_for(now: GoalState, goal: Choose) -> Target:
    """The value, once the page that the control names is open; the control before."""
    page = now.finder.best(goal.control, {"page tab", "list item"})
    if page is not None and "selected" in page.element.states:
        return Target(goal.value, inside=goal.control.inside)
    if page is not None:
        return Target(goal.value, inside=goal.control.name)
    return goal.control


def _find(now: GoalState, control: Target, place: Place | None, roles: "frozenset[str] | set[str]") -> Element | None:
    for target in targets_of(control, place):
        if (found := now.the(target, roles)) is not None:
            return found.element
    return None


def _other_kind(now: GoalState, goal: Choose, place: Place | None) -> "SetValue | Type | None":
    """What the control is, where it holds a number or a text."""
    if _find(now, goal.control, place, AMOUNTS) is not None:
        number = re.fullmatch(r"(-?\d+(?:[.,]\d+)?)\s*(\S{0,3})", goal.value.strip())
        return SetValue(goal.control, float(number[1].replace(",", ".")), number[2]) if number else None
    if _find(now, goal.control, place, FIELDS) is not None:
        return Type(goal.value, into=goal.control, replace=True)
    return None


def _choice(now: GoalState, goal: Choose, place: Place | None) -> Found | None:
    """What is called like the value, in what is called like the control: under it, on its page, in its list."""
    control = goal.control
    inside = control.inside
    names = list(dict.fromkeys(name for name in (control.whole, control.name) if name))  # "Primary Button", "Primary"
    ways = [Target(goal.value, under=name, inside=inside) for name in names]
    page = now.finder.best(replace(control, role=""), {"page tab", "list item"})
    if page is not None and "selected" in page.element.states:
        ways.append(Target(goal.value, inside=inside))
    if place is not None and (place.under or place.control):
        ways.append(Target(goal.value, under=place.under or place.control))
    if any(move.intent in ("place", "prepare") for move in now.moves):  # on the page where it lives
        ways.append(Target(goal.value, inside=inside))
    window = now.scene.front
    if window is not None and any(fit_of(window.title, name) >= WHOLE for name in names):
        ways.append(Target(goal.value))
    for way in ways:
        if (found := now.the(way, CHOICES | {"toggle button", "push button"})) is not None:
            return found
    shown = [now.finder.best(way, TEXTS) for way in ways]  # what only stands there, and is no element
    return next((one for one in shown if one is not None and one.element.source == "words"), None)


def shows(now: GoalState, combo: Element, value: str) -> bool:
    """Whether a combo box shows a value."""
    inside = [one for one in now.scene.elements if one.id != combo.id and contains(combo.box, one.box)]
    texts = [combo.name, combo.value or "", *(one.name for one in inside if one.role in TEXTS | {"list item"})]
    return any(fit_of(text, name) >= WHOLE for text in texts for name in now.names.of(value))


def _pick(now: GoalState, goal: Choose, combo: Element | None) -> Verdict:
    """Click the choice in what was opened, scrolling to it where it has to be."""
    if now.tried("back"):
        return Stuck(f"{describe_target(goal.control)} has no choice “{goal.value}”.")
    found = [
        one
        for one in now.finder.all(Target(goal.value), _OPTIONS)
        if (combo is None or one.element.id != combo.id) and _is_new(now, one.element)
    ]
    if found:
        return now.click(f"Choose “{goal.value}”.", "act", found[0].element)
    last = next((move for move in reversed(now.moves) if move.intent != "late"), None)
    if last is not None and last.intent == "focus" and now.waits < _MOST_WAITS:
        return wait("The choices may come late: wait.", 0.5 + now.waits)
    scrolls = now.tried("scroll")
    if len(scrolls) < _MOST_SCROLLS and not (scrolls and not moved(now, scrolls[-1])):
        return press("The choice may be further down.", "scroll", "page_down")
    return press(f"“{goal.value}” is no choice here: close the choices again.", "back", "escape")


def _is_new(now: GoalState, element: Element) -> bool:
    """Whether an element belongs to what was opened: it was not there before, or is an item."""
    if element.role in ("menu item", "list item", "radio menu item", "check menu item", "table cell"):
        return True
    opening = now.tried("focus")[0]
    if opening.screen is None or opening.screen.outline is None:
        return True
    return not any(
        old.name == element.name and old.box == element.box and old.role == element.role
        for old in opening.screen.outline.elements
    )


def _came_of_it(now: GoalState, goal: Choose, attempt: Move, combo: Element | None, place: Place | None) -> Verdict:
    """Whether the choice took effect."""
    effects = now.effects_of(attempt)
    if combo is not None and shows(now, combo, goal.value):
        return Done("; ".join((f"{describe_target(goal.control)} shows “{goal.value}”", *effects.changes[:2])))
    if combo is None:
        choice = _choice(now, goal, place) or now.finder.best(Target(goal.value), CHOICES | {"toggle button"})
        if choice is not None and is_on(choice.element):
            return Done("; ".join((state_of(choice.element), *effects.changes[:2])))
    if (told := _setting_tells(now, goal, attempt, place)) is not None:
        return Done(told)
    if now.waits < _MOST_WAITS:
        return wait(f"“{goal.value}” shows no effect yet: wait and look again.")
    if combo is not None and now.scene.menu_is_open and not now.tried("back"):
        return press("Close the choices again.", "back", "escape")
    return Stuck(f"I chose “{goal.value}”, but {describe_target(goal.control)} does not show it.")


def _setting_tells(now: GoalState, goal: Choose, attempt: Move, place: Place | None) -> str | None:
    """The setting that holds the choice since an action; None where none does."""
    known = {(change.what, change.after) for change in (attempt.screen.changes if attempt.screen is not None else ())}
    for change in now.changes:
        if change.kind != "setting" or change.after is None or (change.what, change.after) in known:
            continue
        is_its_own = place is not None and any(fnmatchcase(change.what, setting.what) for setting in place.settings)
        if is_its_own or any(fit_of(change.after.strip("'\""), name) >= WHOLE for name in now.names.of(goal.value)):
            return str(change)
    return None
