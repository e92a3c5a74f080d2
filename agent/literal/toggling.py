"""Switching on and off: check boxes, switches, toggle and radio buttons, check items of menus, one of two choices."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from agent.literal.conversation import Move
from agent.literal.effects import is_on, state_of
from agent.literal.find import PART, WHOLE
from agent.literal.goal_state import Done, GoalState, Stuck, Verdict, wait
from agent.literal.goals import Target, Toggle
from agent.literal.looking import known_place, look_further
from agent.literal.places import Place
from agent.literal.scene import CHOICES, SWITCHES, TEXTS, right_of, same_row
from agent.literal.wording import describe_target
from agent.screen.outline import Element

#: A control changes its look, and its setting, this often a second after it was clicked.
_MOST_WAITS = 2


def toggle(now: GoalState, goal: Toggle) -> Verdict:
    """The next step of switching something on or off."""
    place = known_place(now, goal.target, on=goal.on)
    wanted = goal.on if place is None or (place.choices and not place.control) else place.on
    targets = targets_of(goal.target, place)
    switch = find_switch(now, targets)
    if switch is None and place is not None and place.choices:
        return have_chosen(now, [Target(choice, under=place.under) for choice in place.choices], goal, place)
    state = "on" if goal.on else "off"
    attempt = now.acted
    told = None if attempt is None else setting_tells(now, attempt, place, on=goal.on)
    if told is not None and told[0] and (switch is None or is_on(switch) is not (not wanted)):
        return Done(told[1])
    if switch is not None and is_on(switch) is wanted:
        if attempt is None:
            return Done(f"{describe_target(goal.target)} is {state} already: {state_of(switch)}")
        return Done(_with_settings(now, attempt, state_of(switch)))
    if attempt is not None:
        if now.waits < _MOST_WAITS:
            return wait(f"{describe_target(goal.target)} is not {state} yet: wait and look again.")
        return Stuck(f"I clicked what stands for {describe_target(goal.target)}, but it did not become {state}.")
    if switch is not None:
        if "disabled" in switch.states:
            return Stuck(f"{describe_target(goal.target)} cannot be switched now: it is greyed out.")
        return now.click(f"Switch {state} {describe_target(goal.target)}: click it.", "act", switch)
    if not now.scene.has_tree and (text := now.finder.best(goal.target, TEXTS)) is not None:
        return now.click(f"Switch {state} {describe_target(goal.target)}: click its name.", "act", text.element)
    return look_further(now, goal.target, place)


def targets_of(target: Target, place: Place | None) -> list[Target]:
    """What to look for: what the person named, and what the tables call it."""
    targets = [target]
    if place is not None and place.control:
        targets.append(Target(place.control, under=place.under or target.under, inside=target.inside))
    elif place is not None and place.role and place.under:
        targets.append(Target(role=place.role, under=place.under, inside=target.inside))
    return targets


def find_switch(now: GoalState, targets: Iterable[Target]) -> Element | None:
    """The switch of that name: one that is called so, or one on the row of what is called so."""
    for least in (WHOLE, PART):
        for target in targets:
            found = now.finder.best(target, SWITCHES, least=least)
            if found is not None:
                return found.element
            for row in now.finder.all(target, TEXTS | {"list item", "table row", "panel"}, least=least):
                if (switch := _on_row_of(now, row.element)) is not None:
                    return switch
    return None


def _on_row_of(now: GoalState, row: Element) -> Element | None:
    """The one switch in a row, or beside its text."""
    inside = [one for one in now.scene.within(row) if one.role in SWITCHES and one.trusted]
    if len(inside) == 1:
        return inside[0]
    beside = [
        one
        for one in now.scene.elements
        if one.role in SWITCHES - {"menu item"}
        and one.trusted
        and not one.name.strip()
        and same_row(one.box, row.box)
        and (one.window, one.app) == (row.window or one.window, row.app or one.app)
        and one.box.left >= right_of(row.box) - 4
    ]
    return min(beside, key=lambda one: one.box.left, default=None)


def setting_tells(now: GoalState, move: Move, place: Place | None, *, on: bool) -> tuple[bool, str] | None:
    """Whether a setting that changed since a move is what was asked for, and the change; None where none tells."""
    if place is None:
        return None
    known = {(change.what, change.after) for change in (move.screen.changes if move.screen is not None else ())}
    for change in now.changes:
        if change.kind != "setting" or (change.what, change.after) in known:
            continue
        for setting in place.settings:
            holds = setting.holds(change.after, on=on) if fnmatchcase(change.what, setting.what) else None
            if holds is not None:
                return holds, str(change)
    return None


def _with_settings(now: GoalState, move: Move, words: str) -> str:
    return "; ".join((words, *now.effects_of(move).changes[:2]))


def have_chosen(now: GoalState, choices: Iterable[Target], goal: Toggle, place: Place | None) -> Verdict:
    """Choose what stands for what was asked: the dark one of several styles."""
    attempt = now.acted
    element = None
    for target in choices:
        found = now.finder.best(target, CHOICES | {"toggle button", "push button"}) or now.finder.best(target, TEXTS)
        if found is not None:
            element = found.element
            break
    if attempt is not None:
        told = setting_tells(now, attempt, place, on=goal.on)
        if told is not None and told[0]:
            return Done(told[1])
        if element is not None and is_on(element):
            return Done(_with_settings(now, attempt, state_of(element)))
        if now.waits < _MOST_WAITS:
            return wait(f"{describe_target(goal.target)} shows no effect yet: wait and look again.")
        return Stuck(
            f"I clicked what stands for {describe_target(goal.target)}, but nothing tells that it took effect."
        )
    if element is None:
        return look_further(now, goal.target, place)
    if is_on(element):
        return Done(f"{describe_target(goal.target)} is so already: {state_of(element)}")
    return now.click(f"{describe_target(goal.target)} is “{element.name}” here: click it.", "act", element)
