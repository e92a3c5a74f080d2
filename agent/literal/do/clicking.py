"""Clicks buttons, links, icons, rows, menu items and the desktop itself, and chooses one of several.

Choices are in combo boxes, lists, trees, tables, groups of radio buttons and menus.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from agent.literal.do.folders import enter_folder
from agent.literal.do.known_places import in_its_window, known_place, page_named, settings_of, shows, targets_of
from agent.literal.do.looking import Search, at_once, is_main_menu, look, menu_button
from agent.literal.do.now import Already, Done, Move, Now, OrGoal, Pursuit, Step, Steps, StuckError, until
from agent.literal.do.proof import has_focus, led_to, may_close, vanished
from agent.literal.do.wheel import covers, moved
from agent.literal.find.effects import called, is_on, state_of
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import AMOUNTS, CHOICES, CLICKABLE, COMBOS, FIELDS, TEXTS
from agent.literal.goals import Choose, Click, Open, SetValue, Target, Type
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

#: The actions of mouse buttons.
CLICKS = {"left": "click", "right": "right_click", "middle": "middle_click"}
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
#: Most scrolls of a combo box's choices.
_MOST_SCROLLS = 8
#: Roles in an open combo box.
_OPTIONS = CHOICES | TEXTS | {"menu item", "push button", "check box", "toggle button"}
#: Roles that always count as choices of the opened box, even if they were shown before.
_ITEMS = frozenset({"menu item", "list item", "radio menu item", "check menu item", "table cell"})
_BUTTONS = CHOICES | {"toggle button", "push button", "check box"}  # GTK 4 reports radio buttons as check boxes


def click(now: Now, goal: Click) -> OrGoal:
    """Click something, looking for it if it is not shown. If its heading is a combo box, end with that choice."""
    target = goal.target
    action = "double_click" if goal.count > 1 else CLICKS[goal.button]
    if _is_desktop(goal) and now.finder.best(Target(target.name), CLICKABLE) is None:
        return (yield from _click_desktop(now, goal, action))
    in_manager = target.inside.casefold() in lexicon.config()["applications"]["file_managers"]
    if goal.or_open and (in_manager or not target.inside):
        if (entered := (yield from enter_folder(now, target.name))) is not None:
            return entered
        if in_manager:
            return Open(target.name, "folder", target.inside)
    place = known_place(now, target) if goal.button == "left" else None  # no other place has what is meant
    opened_menu = False

    def find() -> Steps[Element | Step | Choose | None]:
        nonlocal opened_menu
        if action == "click" and target.under and target.name:  # "Slight under Hinting", which may be a combo box
            control = Target(target.under, inside=target.inside)
            if now.finder.best(control, COMBOS) is not None:
                return Choose(target.name, control)
        page = (yield from now.the(target, _PAGES)) if goal.or_open else None
        in_menu = now.scene.menu_is_open and is_main_menu(target.inside)  # whatever its button is called
        wanted = replace(target, inside="", whole="") if in_menu else target
        if found := page or (yield from now.the(wanted, CLICKABLE | TEXTS | {"image", "panel"})):
            return found
        if action == "click" and (button := menu_button(now, target)) is not None:
            return button
        if not opened_menu and (menu := _menu_of(now, target.inside)) is not None:
            opened_menu = True
            yield now.click(f"Open “{target.inside}”.", menu, main=False)
            return (yield from find())
        if goal.or_open and not target.inside and not now.opened(target.name):
            return Step.start(f"{describe_target(target)} is not visible: open it.", target.name, main=True)
        return None

    search = Search(now, target)
    while True:
        looked: Steps[Element | Step | Choose] = look(now, find, target, place, tabs=bool(target.inside))
        found = yield from looked
        if isinstance(found, Choose):
            return found
        to_a_page = isinstance(found, Element) and found.role in _PAGES | {"menu"}
        if isinstance(found, Step):
            attempt = yield found
        else:
            if "disabled" in found.states:
                raise StuckError(f"{describe_target(target)} cannot be clicked now: it is greyed out.")
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
            done = yield from came_of(now, goal, attempt)
            return replace(done, on_the_way=to_a_page and not done.verified)


def _menu_of(now: Now, name: str) -> Element | None:
    """Return the menu of that name in the front window, or its button."""
    menu = (now.finder.best(Target(name), _MENUS) if name else None) or menu_button(now, Target(name))
    in_window = menu is not None and now.scene.front is not None and now.scene.in_front(menu)  # not on a panel
    return menu if menu is not None and in_window and menu.role in _MENUS else None


def go_to(now: Now, page: Place) -> Pursuit:
    """Go to a page of a settings window by its row, and check that the row is selected."""
    target = Target(page.path[-1])

    def find() -> Element | Done | None:
        found = now.finder.best(target, _PAGES)
        row = found or now.finder.hidden(target, _PAGES)
        return Done(state_of(row)) if row is not None and "selected" in row.states else found

    looked: Steps[Element | Done] = look(now, at_once(find), target, page, tabs=False)
    found = yield from looked
    if isinstance(found, Done):
        return found
    attempt = yield now.click(f"Go to “{now.scene.text_of(found)}”.", found)
    done = yield from came_of(now, Click(target), attempt)
    return replace(done, on_the_way=not done.verified)


def came_of(now: Now, goal: Click, attempt: Move) -> Pursuit:
    """Check whether a click had an effect."""
    words = describe_target(goal.target)
    if attempt.failure is not None:
        raise StuckError(f"{words} could not be clicked: {attempt.failure}.")
    not_yet, times = f"{words} shows no effect yet: wait and look again.", _MOST_WAITS if now.last else 1
    if done := (yield from until(lambda: _effect_of(now, goal, attempt, words), not_yet, times)):
        return done
    field = has_focus(now, attempt)
    if outcome := led_to(now, attempt) or (f"{called(field)} has the focus" if field is not None else ""):
        return Done(f"I clicked {words}: {outcome}")
    if goal.or_open:
        raise StuckError(f"I clicked {words}, and nothing shows that it opened.")
    return Done(f"I clicked {words}, and nothing shows what came of it", verified=False)


def _effect_of(now: Now, goal: Click, attempt: Move, words: str) -> Done | None:
    """Return the evidence of a click's effect; None for no effect yet. Raises StuckError if its window vanished."""
    if not may_close(goal.target.name) and (gone := vanished(now, attempt)):
        raise StuckError(f"When I clicked {words}, {gone}.")
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
    """Return whether the desktop itself is meant: "right-click the desktop", but not a plain click on "Desktop"."""
    target = goal.target
    named = set(re.findall(r"\w+", f"{target.name} {target.inside}".casefold()))
    if goal.button == "left" and not named & _FREE:
        return False
    return bool(named & _DESKTOP) and named <= _DESKTOP | _PLACE and not (target.role or target.under)


def _click_desktop(now: Now, goal: Click, action: str) -> Pursuit:
    """Click a point of the backdrop that no window, panel or icon covers."""
    spot = _free_spot(now)
    if spot is None:
        raise StuckError("I see no free place of the desktop: windows cover it.")
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


def choose(now: Now, goal: Choose) -> OrGoal:
    """Make a control show a choice."""
    page, begun = page_named(now, goal.control.name), len(now.moves)
    known = known_place(now, goal.control) or page
    is_place = page is not None or (known is None and goal.control.name.casefold() in lexicon.programs())
    place: Place | None = None

    def find() -> Steps[Element | Done | Click | SetValue | Type | None]:
        nonlocal place  # on another page, a control or choice of that name is not the one in the tables
        place = known if known is not None and shows(now, known) else None
        whole = goal.control.whole  # value and control may be one name: "Use the same source for all windows"
        is_longer = whole and whole.casefold() != goal.control.name.casefold()
        if is_longer and now.finder.best(Target(whole), _BUTTONS) is not None:
            return Click(Target(whole))
        combo = yield from now.first(targets_of(goal.control, place), _boxes(place))
        if combo is not None:
            shown = Already(f"{describe_target(goal.control)} shows “{goal.value}” already")
            return shown if _shows(now, combo, goal.value) else combo
        if (yield from now.the(goal.control, {"menu"})) is not None:
            return Click(Target(goal.value, role="menu item", inside=goal.control.name))
        if (other := (yield from _other_kind(now, goal, place))) is not None:
            return other
        return (yield from _choice(now, goal, place, on_way=len(now.moves) > begun and place is known))

    def wanted() -> Target:  # if the control is the name of a page or window, the value there
        here = is_place or now.finder.best(goal.control, {"page tab", "list item"}) is not None
        return Target(goal.value, inside=goal.control.name) if here else goal.control

    looked: Steps[Element | Done | Click | SetValue | Type] = look(now, find, wanted, known, elsewhere=True)
    try:
        found = yield from looked
    except StuckError:
        if known is None or now.scene.front is None or not in_its_window(now, known):
            raise
        where = f"{describe_target(goal.control)} in the window “{now.scene.front.title}”"
        raise StuckError(f"I found no choice “{goal.value}” for {where}.") from None
    if not isinstance(found, Element):
        return found
    if found.role in _boxes(place):
        return (yield from _choose_in_combo(now, goal, place, found))
    if is_on(found):
        return Already(f"“{goal.value}” is chosen already: {state_of(found)}")
    attempt = yield now.click(f"Choose “{now.scene.text_of(found)}”.", found)
    if is_place:  # which shows no choice of its own
        return (yield from came_of(now, Click(wanted()), attempt))
    return (yield from _chosen_since(now, goal, attempt, place))


def _other_kind(now: Now, goal: Choose, place: Place | None) -> Steps[SetValue | Type | None]:
    """Return another goal if the control takes a number or a text."""
    if (yield from now.first(targets_of(goal.control, place), AMOUNTS)) is not None:
        number = re.fullmatch(r"(-?\d+(?:[.,]\d+)?)\s*(\S{0,3})", goal.value.strip())
        if number is None:
            raise StuckError(f"{describe_target(goal.control)} takes a number, and “{goal.value}” is none.")
        return SetValue(goal.control, float(number[1].replace(",", ".")), number[2])
    if (yield from now.first(targets_of(goal.control, place), FIELDS)) is not None:
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
    if (found := (yield from now.first(ways, _BUTTONS))) is not None:
        return found
    shown = [now.finder.best(way, TEXTS) for way in ways]  # OCR text without an element
    return next((one for one in shown if one is not None and one.source == "words"), None)


def _boxes(place: Place | None) -> Collection[str]:
    """Return the roles of what opens into choices: of applications, it may be a button."""
    of_applications = place is not None and any(setting.what.startswith("file ") for setting in place.settings)
    return COMBOS | ({"push button"} if of_applications else set())


def _shows(now: Now, combo: Element, value: str) -> bool:
    """Return whether a combo box shows a value."""
    inside = [one for one in now.scene.elements if one.id != combo.id and combo.box.contains(one.box.middle)]
    texts = [combo.name, combo.value or "", *(one.name for one in inside if one.role in TEXTS | {"list item"})]
    return any(now.fits(text, value) for text in texts)


def _choose_in_combo(now: Now, goal: Choose, place: Place | None, combo: Element) -> Pursuit:
    """Open a combo box and click the choice, scrolling to it if necessary."""
    words = describe_target(goal.control)
    opening = yield now.click(f"Open {words}.", combo)
    old = [(one.name, one.box, one.role) for one in opening.scene.elements]
    waits, scroll, scrolls = 0, None, 0
    # Chromium does not report the choices that a key scrolls to, and Escape keeps the one that the key reached.
    most = 0 if now.scene.front_of_kind("browser") is not None else _MOST_SCROLLS
    while True:
        box = yield from now.first(targets_of(goal.control, place), _boxes(place))
        if box is not None and _shows(now, box, goal.value):
            return Already(f"{words} shows “{goal.value}” already")
        options = [one.element for one in now.finder.all(Target(goal.value), _OPTIONS)]
        if not options and combo.role == "push button":  # applications, by their whole names
            longer = [one for one in now.scene.elements if one.role in _ITEMS and _begins_with(one.name, goal.value)]
            options = longer if len(longer) == 1 else []
        for one in options:
            is_new = one.role in _ITEMS or (one.name, one.box, one.role) not in old
            if is_new and (box is None or one.id != box.id):
                attempt = yield now.click(f"Choose “{goal.value}”.", one)
                return (yield from _chosen_since(now, goal, attempt, place, combo))
        if waits < _MOST_WAITS and not scrolls:
            waits += 1
            yield Step.wait("The choices may come late: wait.", waits - 0.5)
        elif scrolls < most and (scroll is None or moved(now, scroll)):
            scrolls += 1
            scroll = yield Step.press("The choice may be further down.", "page_down")
        else:
            break
    yield Step.press(f"“{goal.value}” is no choice here: close the choices again.", "escape")
    raise StuckError(f"{words} shows no choice “{goal.value}”.")


def _begins_with(text: str, name: str) -> bool:
    """Return whether a text is a longer name: "Caja File Manager" for Caja."""
    return lexicon.plain(text).startswith(f"{lexicon.plain(name)} ")


def _chosen_since(now: Now, goal: Choose, attempt: Move, place: Place | None, opened: Element | None = None) -> Pursuit:
    """Check whether the choice took effect; it may have given the combo box `opened` another label."""
    words = describe_target(goal.control)
    for left in range(_MOST_WAITS + 1, -1, -1):
        changes = now.effects_of(attempt).changes[:2]
        combo = yield from now.first(targets_of(goal.control, place), _boxes(place))
        if combo is None and opened is not None:
            there = [
                one for one in now.scene.shown({opened.role}) if (one.window, one.box) == (opened.window, opened.box)
            ]
            combo = next((one for one in there if one.name in ("", opened.name, goal.value)), None)
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
            yield Step.wait(f"“{goal.value}” shows no effect yet: wait and look again.")
        elif left and combo is not None and now.scene.menu_is_open:
            yield Step.press("Close the choices again.", "escape")
    if changes := now.effects_of(attempt).changes[:2]:
        return Done(f"I chose “{goal.value}”: {'; '.join(changes)}; {words} does not show it", verified=False)
    raise StuckError(f"I chose “{goal.value}”, but {words} does not show it.")


def _setting_tells(now: Now, goal: Choose, attempt: Move, place: Place | None) -> str | None:
    """Return the changed setting that proves the choice, in words; None for none."""
    own = (change for change, _ in settings_of(now, place, attempt) if (change.after or "").strip("'\""))
    others = now.changed_since(attempt, "setting")
    named = (change for change in others if now.fits((change.after or "").strip("'\""), goal.value))
    change = next(chain(own, named), None)
    return None if change is None else str(change)
