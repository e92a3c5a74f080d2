"""Chooses one of several: in combo boxes, lists, trees, tables, groups of radio buttons and menus."""

import re
from collections.abc import Collection, Generator
from dataclasses import replace
from typing import TypeAlias, cast

from agent.literal.do.known_places import in_its_window, known_place, settings_of, shows
from agent.literal.do.looking import look, moved
from agent.literal.do.now import Already, Done, Move, Now, Pursuit, Step, Steps, Stuck, Verdict, press, wait
from agent.literal.do.toggling import targets_of
from agent.literal.find.effects import is_on, state_of
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import AMOUNTS, CHOICES, COMBOS, FIELDS, TEXTS
from agent.literal.goals import Choose, Click, SetValue, Target, Type
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

_MOST_WAITS = 2
_MOST_SCROLLS = 8
#: Roles in an open combo box.
_OPTIONS = CHOICES | TEXTS | {"menu item", "push button", "check box", "toggle button"}
#: Roles that always count as choices of the opened box, even if they were shown before.
_ITEMS = frozenset({"menu item", "list item", "radio menu item", "check menu item", "table cell"})
_BUTTONS = CHOICES | {"toggle button", "push button"}
#: Steps that end with another goal if the control is of another kind.
OrGoal: TypeAlias = Generator[Step, Move, "Verdict | Choose | Click | SetValue | Type"]


def choose(now: Now, goal: Choose) -> OrGoal:
    """Make a control show a choice."""
    known, begun = known_place(now, goal.control), len(now.moves)
    place: Place | None = None

    def find() -> Steps[Element | Verdict | Click | SetValue | Type | None]:
        nonlocal place  # on another page, a control or choice of that name is not the one in the tables
        place = known if known is not None and shows(now, known) else None
        if (click := _as_one_name(now, goal)) is not None:
            return click
        combo = yield from _find(now, goal.control, place, COMBOS)
        if combo is not None:
            shown = Already(f"{describe_target(goal.control)} shows “{goal.value}” already")
            return shown if _shows(now, combo, goal.value) else combo
        if (yield from _find(now, goal.control, None, {"menu"})) is not None:
            return Click(Target(goal.value, role="menu item", inside=goal.control.name))
        if (other := (yield from _other_kind(now, goal, place))) is not None:
            return other
        return (yield from _choice(now, goal, place, on_way=len(now.moves) > begun and place is known))

    looked = yield from look(now, find, lambda: _to_look_for(now, goal), known)
    if isinstance(looked, Stuck) and known is not None and in_its_window(now, known):
        where = "" if now.scene.front is None else f" in the window “{now.scene.front.title}”"
        return Stuck(f"I found no choice “{goal.value}” for {describe_target(goal.control)}{where}.")
    found = cast("Element | Verdict | Click | SetValue | Type", looked)
    if not isinstance(found, Element):
        return found
    if found.role in COMBOS:
        return (yield from _choose_in_combo(now, goal, place, found))
    if is_on(found):
        return Already(f"“{goal.value}” is chosen already: {state_of(found)}")
    attempt = yield now.click(f"Choose “{now.scene.text_of(found)}”.", found)
    return (yield from _came_of(now, goal, attempt, place))


def _as_one_name(now: Now, goal: Choose) -> Click | None:
    """Return a click if value and control together are one name: "Use the same source for all windows"."""
    whole = goal.control.whole
    if not whole or whole.casefold() == goal.control.name.casefold():
        return None
    found = now.finder.best(Target(whole), _BUTTONS)
    return None if found is None else Click(Target(whole))


def _to_look_for(now: Now, goal: Choose) -> Target:
    """Return the control as the target; if the control is a page's name, the value on that page."""
    page = now.finder.best(goal.control, {"page tab", "list item"})
    return goal.control if page is None else Target(goal.value, inside=goal.control.name)


def _find(now: Now, control: Target, place: Place | None, roles: Collection[str]) -> Steps[Element | None]:
    for target in targets_of(control, place):
        if (found := (yield from now.the(target, roles))) is not None:
            return found
    return None


def _other_kind(now: Now, goal: Choose, place: Place | None) -> Steps[SetValue | Type | Stuck | None]:
    """Return another goal if the control takes a number or a text."""
    if (yield from _find(now, goal.control, place, AMOUNTS)) is not None:
        number = re.fullmatch(r"(-?\d+(?:[.,]\d+)?)\s*(\S{0,3})", goal.value.strip())
        if number is None:
            return Stuck(f"{describe_target(goal.control)} takes a number, and “{goal.value}” is none.")
        return SetValue(goal.control, float(number[1].replace(",", ".")), number[2])
    if (yield from _find(now, goal.control, place, FIELDS)) is not None:
        return Type(goal.value, into=goal.control, replace=True)
    return None


def _choice(now: Now, goal: Choose, place: Place | None, *, on_way: bool) -> Steps[Element | None]:
    """Return the element with the value's name that belongs to the control: under it, on its page, in its list."""
    control = goal.control
    inside = control.inside
    names = list(dict.fromkeys(name for name in (control.whole, control.name) if name))  # "Primary Button", "Primary"
    ways = [Target(goal.value, under=name, inside=inside) for name in names]
    page = now.finder.best(replace(control, role=""), {"page tab", "list item"})
    if page is not None and "selected" in page.states:
        ways.append(Target(goal.value, inside=inside))
    if place is not None and (place.under or place.control):
        ways.append(Target(goal.value, under=place.under or place.control))
    if on_way:  # the search has opened the control's page
        ways.append(Target(goal.value, inside=inside))
    window = now.scene.front
    if window is not None and any(fit_of(window.title, name) >= WHOLE for name in names):
        ways.append(Target(goal.value))
    for way in ways:
        if (found := (yield from now.the(way, _BUTTONS))) is not None:
            return found
    shown = [now.finder.best(way, TEXTS) for way in ways]  # OCR text without an element
    return next((one for one in shown if one is not None and one.source == "words"), None)


def _shows(now: Now, combo: Element, value: str) -> bool:
    """Return whether a combo box shows a value."""
    inside = [one for one in now.scene.elements if one.id != combo.id and combo.box.contains(one.box.middle)]
    texts = [combo.name, combo.value or "", *(one.name for one in inside if one.role in TEXTS | {"list item"})]
    return any(fit_of(text, name) >= WHOLE for text in texts for name in now.names.of(value))


def _choose_in_combo(now: Now, goal: Choose, place: Place | None, combo: Element) -> Pursuit:
    """Open a combo box and click the choice, scrolling to it if necessary."""
    words = describe_target(goal.control)
    opening = yield now.click(f"Open {words}.", combo)
    waits, scroll, scrolls = 0, None, 0
    while True:
        box = yield from _find(now, goal.control, place, COMBOS)
        if box is not None and _shows(now, box, goal.value):
            return Already(f"{words} shows “{goal.value}” already")
        for one in now.finder.all(Target(goal.value), _OPTIONS):
            if (box is None or one.element.id != box.id) and _is_new(one.element, opening):
                attempt = yield now.click(f"Choose “{goal.value}”.", one.element)
                return (yield from _came_of(now, goal, attempt, place))
        if waits < _MOST_WAITS and not scrolls:
            waits += 1
            yield wait("The choices may come late: wait.", waits - 0.5)
        elif scrolls < _MOST_SCROLLS and (scroll is None or moved(now, scroll)):
            scrolls += 1
            scroll = yield press("The choice may be further down.", "page_down")
        else:
            break
    yield press(f"“{goal.value}” is no choice here: close the choices again.", "escape")
    return Stuck(f"{words} has no choice “{goal.value}”.")


def _is_new(element: Element, opening: Move) -> bool:
    """Return whether an element belongs to the opened box: it is new, or has an item's role."""
    return element.role in _ITEMS or not any(
        (old.name, old.box, old.role) == (element.name, element.box, element.role) for old in opening.scene.elements
    )


def _came_of(now: Now, goal: Choose, attempt: Move, place: Place | None) -> Pursuit:
    """Check whether the choice took effect."""
    words = describe_target(goal.control)
    for left in range(_MOST_WAITS + 1, -1, -1):
        changes = now.effects_of(attempt).changes[:2]
        combo = yield from _find(now, goal.control, place, COMBOS)
        if combo is not None and _shows(now, combo, goal.value):
            return Done("; ".join((f"{words} shows “{goal.value}”", *changes)))
        if combo is None:
            choice = yield from _choice(now, goal, place, on_way=True)
            choice = choice or now.finder.best(Target(goal.value), CHOICES | {"toggle button"})
            if choice is not None and is_on(choice):
                return Done("; ".join((state_of(choice), *changes)))
        if (setting := _setting_tells(now, goal, attempt, place)) is not None:
            return Done(setting)
        if left > 1:
            yield wait(f"“{goal.value}” shows no effect yet: wait and look again.")
        elif left and combo is not None and now.scene.menu_is_open:
            yield press("Close the choices again.", "escape")
    if changes := now.effects_of(attempt).changes[:2]:
        return Done(f"I chose “{goal.value}”: {'; '.join(changes)}; {words} does not show it", verified=False)
    return Stuck(f"I chose “{goal.value}”, but {words} does not show it.")


def _setting_tells(now: Now, goal: Choose, attempt: Move, place: Place | None) -> str | None:
    """Return the changed setting that proves the choice, in words; None for none."""
    for change in now.changed_since(attempt, "setting"):
        is_its_own = any(change is own for own, _ in settings_of(now, place, attempt))
        after = (change.after or "").strip("'\"")
        if after and (is_its_own or any(fit_of(after, name) >= WHOLE for name in now.names.of(goal.value))):
            return str(change)
    return None
