"""Switching on and off: check boxes, switches, toggle and radio buttons, check items of menus, one of two choices."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from agent.literal.do.looking import known_place, look_further
from agent.literal.do.proof import is_about, is_called, is_negative
from agent.literal.find.finder import PART, WHOLE, Found
from agent.literal.find.scene import CHOICES, CLICKABLE, MENU_ITEMS, SWITCHES, TEXTS, Scene, right_of, same_row
from agent.literal.goals import Target, Toggle
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Move
from agent.literal.state.effects import is_on, is_tick, state_of
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press, wait
from agent.literal.vocabulary.labels import plain
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

#: A control changes its look, and its setting, this often a second after it was clicked.
_MOST_WAITS = 2
#: Where the tree tells no control within so many pixels above and below a text, it does not know that place.
_NEAR = 60
#: What a click on an item is about that does not tell how it stands.
_MUTE = "mute item"


def toggle(now: GoalState, goal: Toggle) -> Verdict:
    """The next step of switching something on or off."""
    place = known_place(now, goal.target, on=goal.on)
    wanted = goal.on if place is None or (place.choices and not place.control) else place.on
    targets = targets_of(goal.target, place)
    switch = find_switch(now, targets)
    if switch is not None and switch.role == "toggle button" and place is not None and place.choices:
        switch = None  # one of several that are chosen from: it is pressed where another one is not
    if switch is None and (verdict := mute_item(now, goal)) is not None:
        return verdict
    if switch is None and place is not None and place.choices:
        return have_chosen(now, [Target(choice, under=place.under) for choice in place.choices], goal, place)
    state = "on" if goal.on else "off"
    attempt = now.acted
    told = None if attempt is None else setting_tells(now, attempt, place, on=goal.on)
    if told is not None and told[0] and (switch is None or is_on(switch) is not (not wanted)):
        return Done(told[1])
    contrary = "" if attempt is None else _contrary(now, attempt, goal, told)
    if now.latest is not None and now.latest.intent == "back" and now.latest.about:
        return Done(now.latest.about)
    if switch is not None and is_on(switch) is wanted:
        if switch.role in MENU_ITEMS and now.scene.menu_is_open:
            return press("Close the menu again.", "back", "escape", about=f"{state_of(switch)}")
        if attempt is None:
            return Done(f"{describe_target(goal.target)} is {state} already: {state_of(switch)}")
        if contrary:
            if now.waits < _MOST_WAITS:
                return wait("A setting says otherwise: wait and look again.")
            return Done(f"{state_of(switch)}, but {contrary}", verified=False)
        return Done(_with_settings(now, attempt, state_of(switch)))
    if attempt is not None:
        if switch is None and (verdict := look_into_menu(now, attempt, goal)) is not None:
            return verdict
        if now.waits < _MOST_WAITS:
            return wait(f"{describe_target(goal.target)} is not {state} yet: wait and look again.")
        if switch is not None and is_tick(switch) and len(now.tried("act")) == 1:
            # GTK 3 tells the cells of a tree too far right, by the room that it keeps for expanders.
            x, y = switch.box.left - switch.box.width / 2, switch.box.top + switch.box.height / 2
            return now.click_at("Click where the box is drawn.", "act", x, y)
        if switch is not None and not now.clicked(attempt, switch.box) and len(now.tried("act")) == 1:
            return now.click("What was clicked was its text alone: click the control.", "act", switch)
        return Stuck(f"I clicked what stands for {describe_target(goal.target)}, but it did not become {state}.")
    if switch is not None:
        if "disabled" in switch.states:
            return Stuck(f"{describe_target(goal.target)} cannot be switched now: it is greyed out.")
        return now.click(f"Switch {state} {describe_target(goal.target)}: click it.", "act", switch)
    return look_further(now, goal.target, place)


def mute_item(now: GoalState, goal: Toggle) -> Verdict | None:
    """Switch what does not tell how it stands, an item of a menu or a bare text: the setting that it changes tells.

    Where it turns out that it stood as wanted before, it is clicked once more.
    """
    clicks = [move for move in now.tried("act") if move.about == _MUTE]
    shown = now.finder.best(goal.target, {"menu item"}) if now.scene.menu_is_open else _bare_text(now, goal.target)
    if not clicks:
        if shown is None or now.acted is not None:  # the switch itself was clicked, and is not told just now
            return None
        return now.click(f"Click {describe_target(goal.target)}.", "act", shown.element, about=_MUTE)
    became = _became(now, clicks[0], goal)
    if became is not None and became[0] is goal.on:
        return Done(became[1])
    if len(clicks) > 1 and became is None:
        return Done(f"{describe_target(goal.target)} was so already, and is so again")
    if became is None or len(clicks) > 1:
        if now.waits < _MOST_WAITS:
            return wait("No setting tells yet how it stands: wait.")
        return Done(f"I clicked {describe_target(goal.target)}, and nothing tells how it stands", verified=False)
    if shown is not None:
        return now.click("It stood so before: click it again.", "act", shown.element, about=_MUTE)
    if now.tried("focus"):
        return Stuck(f"{describe_target(goal.target)} stands the other way now, and its menu does not open again.")
    return _open_again(now, clicks[0], goal)


def _bare_text(now: GoalState, target: Target) -> Found | None:
    """What is written where no tree tells the controls: XFCE's Settings shows other programs' pages within its own."""
    found = now.finder.best(target, TEXTS, least=WHOLE)
    if found is None or found.element.source != "words":
        return None
    top, bottom = found.element.box.top - _NEAR, found.element.box.top + found.element.box.height + _NEAR
    told = (one for one in now.scene.elements if one.source != "words" and one.window == found.element.window)
    near = any(one.box.top < bottom and top < one.box.top + one.box.height for one in told if one.role in CLICKABLE)
    return None if near else found


def _became(now: GoalState, move: Move, goal: Toggle) -> tuple[bool, str] | None:
    """How the setting stands that says yes or no, changed since a move, and is about what was asked for."""
    place = known_place(now, goal.target, on=goal.on)
    if place is not None and place.settings:
        return setting_tells(now, move, place, on=True)
    known = {(change.what, change.after) for change in (move.screen.changes if move.screen is not None else ())}
    for change in now.changes:
        value = (change.after or "").strip("'\"").casefold()
        if change.kind != "setting" or value not in ("true", "false") or (change.what, change.after) in known:
            continue
        if is_about(change, goal.target.name) or (place is not None and is_about(change, place.control)):
            return (value == "true") is not is_negative(change, goal.target.name), str(change)
    return None


def _contrary(now: GoalState, move: Move, goal: Toggle, told: tuple[bool, str] | None) -> str:
    """The setting of the same name that says otherwise since a move, in words; "" for none."""
    if told is not None:
        return "" if told[0] else told[1]
    known = {(change.what, change.after) for change in (move.screen.changes if move.screen is not None else ())}
    for change in now.changes:
        value = (change.after or "").strip("'\"").casefold()
        if change.kind != "setting" or value not in ("true", "false") or (change.what, change.after) in known:
            continue
        means = (value == "true") is not is_negative(change, goal.target.name)
        if is_called(change, goal.target.name) and means is not goal.on:
            return str(change)
    return ""


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
            found = now.the(target, SWITCHES, least=least)
            if found is not None:
                return found.element
            for row in now.finder.all(target, TEXTS | {"list item", "table row", "panel"}, least=least):
                if (switch := _on_row_of(now, row.element)) is not None:
                    return switch
            for row in now.finder.all(target, {"table cell", "tree item"}, least=least):
                if (tick := _tick_in(now, row.element)) is not None:
                    return tick
    return None


def _on_row_of(now: GoalState, row: Element) -> Element | None:
    """The one switch in a row, or beside its text."""
    inside = [one for one in now.scene.within(row) if one.role in SWITCHES and now.finder.believes(one)]
    if len(inside) == 1:
        return inside[0]
    beside = [
        one
        for one in now.scene.elements
        if one.role in SWITCHES - {"menu item"}
        and now.finder.believes(one)
        and (one.name == row.name or not _is_called(now, one))
        and same_row(one.box, row.box)
        and (one.window, one.app) == (row.window or one.window, row.app or one.app)
    ]
    right = [one for one in beside if one.box.left >= right_of(row.box) - 4]
    if not right and len(beside) == 1 and right_of(beside[0].box) <= row.box.left + 4:
        return beside[0]  # a dialog's title bar may have it on the left
    return min(right, key=lambda one: one.box.left, default=None)


def _is_called(now: GoalState, switch: Element) -> bool:
    """Whether a switch has a name that a person sees: GNOME's panels call the one in their title bar "Enable"."""
    name = plain(switch.name)
    return bool(name) and any(plain(one.name) == name for one in now.scene.elements if one.id != switch.id)


def _tick_in(now: GoalState, row: Element) -> Element | None:
    """The box to tick in a row of a list: the cell in the column in which other rows are ticked, or may be."""
    cells = [one for one in (*now.scene.within(row), *_beside_in_table(now, row)) if is_tick(one) and one.trusted]
    ticked = {one.box.left for one in now.scene.elements if is_tick(one) and one.states & {"checked", "checkable"}}
    return min((one for one in cells if one.box.left in ticked), key=lambda one: one.box.left, default=None)


def _beside_in_table(now: GoalState, row: Element) -> list[Element]:
    return [one for one in now.scene.elements if one.parent == row.parent and same_row(one.box, row.box)]


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


def look_into_menu(now: GoalState, attempt: Move, goal: Toggle) -> Verdict | None:
    """Open the menu of an item that was clicked once more: only there it tells how it stands."""
    if now.scene.menu_is_open or now.tried("focus"):
        return None
    return _open_again(now, attempt, goal)


def _open_again(now: GoalState, attempt: Move, goal: Toggle) -> Verdict | None:
    """Open the menu in which something was clicked."""
    before = None if attempt.screen is None or attempt.screen.outline is None else Scene(attempt.screen.outline)
    if before is None or not before.menu_is_open:
        return None
    item = next((one for one in before.elements if one.role in MENU_ITEMS and now.clicked(attempt, one.box)), None)
    menus = [up.name for up in before.parents(item) if up.role in ("menu", "push button menu")] if item else []
    found = now.finder.best(Target(menus[-1], role="menu")) if menus else None
    if found is None:
        return None
    return now.click(f"Look into the menu again, how {describe_target(goal.target)} stands.", "focus", found.element)


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
        if (step := _picture_above(now, element, place)) is not None:
            return step
        only_text = element is not None and element.role not in TEXTS and not now.clicked(attempt, element.box)
        if element is not None and only_text and len(now.tried("act")) == 1:
            return now.click("What was clicked was its text alone: click the control.", "act", element)
        return Stuck(
            f"I clicked what stands for {describe_target(goal.target)}, but nothing tells that it took effect."
        )
    if element is None:
        return look_further(now, goal.target, place)
    if element.role in TEXTS and now.waits == 0:
        return wait("Only its text is told yet: wait for the control.")
    if is_on(element):
        return Done(f"{describe_target(goal.target)} is so already: {state_of(element)}")
    return now.click(f"{describe_target(goal.target)} is “{element.name}” here: click it.", "act", element)


def _picture_above(now: GoalState, element: Element | None, place: Place | None) -> Step | None:
    """Click the picture that a choice's text stands under, where a busy program tells only the text; once."""
    if element is None or element.source != "words" or place is None or not place.above or len(now.tried("act")) > 1:
        return None
    x, y = element.box.left + element.box.width / 2, element.box.top - place.above
    return now.click_at("Its text does nothing: click the picture above it.", "act", x, y)
