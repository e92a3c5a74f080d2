"""Switches things on and off: check boxes, switches, toggle and radio buttons, check menu items, choices."""

from collections.abc import Iterable
from typing import Literal

from agent.literal.do.known_places import known_place, settings_of, shows, targets_of
from agent.literal.do.looking import look
from agent.literal.do.now import Already, Done, Move, Now, Pursuit, Step, Steps, StuckError, until
from agent.literal.do.proof import is_about, is_called, means_on
from agent.literal.find.effects import is_on, is_tick, state_of
from agent.literal.find.finder import AREAS, PART, WHOLE
from agent.literal.find.scene import CHOICES, CLICKABLE, MENU_ITEMS, SWITCHES, TEXTS, same_row
from agent.literal.goals import Target, Toggle
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.lexicon import plain
from agent.screen.outline import Element

#: Waits of a second after a click until a control and its setting have changed.
_MOST_WAITS = 2
#: If the tree has no control within this many pixels above and below a text, it does not cover that area.
_NEAR = 60
#: Labels of a switch that stands for its whole page.
_ENABLED = ("Enabled", "Enable", "On")
_CHOSEN = CHOICES | {"toggle button", "push button"}


class Toggling:
    """Switches one thing on or off unless it is in that state already."""

    def __init__(self, now: Now, goal: Toggle) -> None:
        self._now, self._goal = now, goal
        self._place = place = known_place(now, goal.target, on=goal.on)
        #: the state that the control must have
        its_own = place is not None and place.thing and not (place.choices and not place.control)
        self._wanted = place.on if place is not None and its_own else goal.on
        self._thing_on = place.thing_on if place is not None and place.thing else goal.on
        self._targets = targets_of(goal.target, place)
        self._words, self._state = describe_target(goal.target), "on" if goal.on else "off"

    def pursue(self) -> Pursuit:
        """Yield the steps until the thing is in the wanted state."""
        waited = False
        while True:
            kind, element = yield from look(self._now, self._find, self._goal.target, self._place, elsewhere=True)
            if kind != "choice" and self._place is not None and not shows(self._now, self._place):
                self._place = None  # it has the name, but is not the thing in the tables
                self._wanted = self._thing_on = self._goal.on
            if kind == "switch":
                return (yield from self._switch(element))
            if kind == "item":
                return (yield from self._by_setting(element))
            if waited or element.role not in TEXTS:
                return (yield from self._choose(element))
            waited = True
            yield Step.wait("Only its text is known yet: wait for the control.")

    def _find(self) -> Steps[tuple[Literal["switch", "item", "choice"], Element] | None]:
        """Find a control that reports its state, an item that does not, or one of several choices."""
        if (switch := (yield from self._find_switch())) is not None:
            return "switch", switch
        if (item := self._item()) is not None:
            return "item", item
        choice = self._choice()
        return None if choice is None else ("choice", choice)

    def _item(self) -> Element | None:
        """Return an item of the open menu, or a text in an area that the tree does not cover."""
        target = self._goal.target
        if not self._now.scene.menu_is_open:
            return _bare_text(self._now, target)
        return self._now.finder.best(target, {"menu item"})

    def _find_switch(self) -> Steps[Element | None]:
        if self._place is not None and not shows(self._now, self._place):  # its label there may mean the opposite
            return (yield from self._now.the(self._goal.target, SWITCHES))
        switch = yield from find_switch(self._now, self._targets)
        chosen = self._place is not None and self._place.choices
        if switch is not None and switch.role == "toggle button" and chosen:
            return None  # one of several choices, not a switch of its own
        return switch

    def _choice(self) -> Element | None:
        """Return the choice for the wanted state, such as the dark one of several styles."""
        place, finder = self._place, self._now.finder
        if place is None or not shows(self._now, place):
            return None
        for choice in place.choices:
            target = Target(choice, under=place.under)
            if (found := finder.best(target, _CHOSEN) or finder.best(target, TEXTS)) is not None:
                return found
        return None

    # A control that reports its state

    def _switch(self, switch: Element) -> Pursuit:
        now = self._now
        if is_on(switch) is self._wanted:
            if switch.role in MENU_ITEMS and now.scene.menu_is_open:
                yield Step.press("Close the menu again.", "escape")
                return Already(state_of(switch))
            return Already(f"{self._words} is {self._state} already: {state_of(switch)}")
        if "disabled" in switch.states:
            raise StuckError(f"{self._words} cannot be switched now: it is greyed out.")
        attempt = yield now.click(f"Switch {self._state} {self._words}: click it.", switch)
        waits, clicks, opened_again = 0, 1, False
        while True:
            found = yield from self._find_switch()
            if (verdict := self._is_switched(found, attempt, patient=waits < _MOST_WAITS)) is not None:
                if found is not None and found.role in MENU_ITEMS and now.scene.menu_is_open:
                    yield Step.press("Close the menu again.", "escape")
                return verdict
            if found is None and not opened_again and (step := self._open_again(attempt)) is not None:
                opened_again, waits = True, 0
                yield step
            elif waits < _MOST_WAITS:
                waits += 1
                yield Step.wait(f"{self._words} is not {self._state} yet: wait and look again.")
            elif clicks == 1 and found is not None and (step := self._click_again(found, attempt)) is not None:
                clicks, waits = 2, 0
                attempt = yield step
            else:
                raise StuckError(f"I clicked what stands for {self._words}, but it did not become {self._state}.")

    def _is_switched(self, switch: Element | None, attempt: Move, *, patient: bool) -> Done | None:
        """Check the control and its setting after a click; None if they are not as wanted yet."""
        setting = self._setting_tells(attempt, on=self._thing_on)
        stands = None if switch is None else is_on(switch)
        if setting is not None and setting[0] and stands is not (not self._wanted):
            return Done(setting[1])
        if switch is None and (bar := self._bar_since(attempt)):  # with the menu bar, its menus are gone
            return Done(bar)
        if switch is None or stands is not self._wanted:
            return None
        if contrary := self._contrary(attempt, setting):
            return None if patient else Done(f"{state_of(switch)}, but {contrary}", verified=False)
        return Done(self._with_settings(attempt, switch))

    def _bar_since(self, attempt: Move) -> str:
        """Return that the bar of this name came or went since a click, in words; "" if it did not as wanted."""
        name = plain(self._goal.target.name)
        bar = next((role for words, role in AREAS.items() if role and name.endswith(words)), None)
        before, after = attempt.scene, self._now.scene
        shown = [[one.role for one in scene.shown() if one.source != "words"] for scene in (before, after)]
        fronts = [(one.front.title, one.front.app) for one in (before, after) if one.front is not None]
        if bar is None or not all(shown) or len(fronts) < 2 or fronts[0] != fronts[1]:
            return ""
        had, has = (bar in roles for roles in shown)
        return f"the {bar} is {'there' if has else 'gone'} now" if had is not has and has is self._goal.on else ""

    def _click_again(self, switch: Element, attempt: Move) -> Step | None:
        """Return a click on the control itself, if the first click missed it."""
        if is_tick(switch):
            # GTK 3 reports a tree's cells too far right, by the width reserved for expanders.
            x, y = switch.box.left - switch.box.width / 2, switch.box.top + switch.box.height / 2
            return self._now.click_at("Click where the box is drawn.", x, y, main=True)
        if self._now.clicked(attempt, switch.box):
            return None
        return self._now.click("Only its text was clicked: click the control.", switch)

    # A menu item or OCR text, which does not report its state

    def _by_setting(self, item: Element) -> Pursuit:
        """Click an item whose state only a setting reports. Click again if it was in the wanted state before."""
        now, words = self._now, self._words
        no_setting = "No setting shows its state yet: wait."
        first = yield now.click(f"Click {words}.", item)
        became = yield from until(lambda: self._became(first), no_setting, _MOST_WAITS)
        if became is None:
            return Done(f"I clicked {words}, and nothing shows its state", verified=False)
        if became[0] is self._goal.on:
            return Done(became[1])
        if (again := self._item()) is None and (step := self._open_again(first)) is not None:
            yield step
            again = self._item()
        if again is None:
            raise StuckError(f"{words} has the opposite state now, and its menu does not open again.")
        yield now.click("It had that state before: click it again.", again)

        def back() -> Done | None:
            became = self._became(first)
            if became is None:
                return Done(f"{words} had that state before, and has it again")
            return Done(became[1]) if became[0] is self._goal.on else None

        done = yield from until(back, no_setting, _MOST_WAITS)
        return done or Done(f"I clicked {words}, and nothing shows its state", verified=False)

    def _became(self, move: Move) -> tuple[bool, str] | None:
        """Return the value of the boolean setting for the target that changed since a move, and the change in words."""
        name, place = self._goal.target.name, self._place
        if place is not None and place.settings:
            return self._setting_tells(move, on=True)
        for change in self._now.changed_since(move, "setting"):
            about = is_about(change, name) or (place is not None and is_about(change, place.control))
            if about and (on := means_on(change, name)) is not None:
                return on, str(change)
        return None

    def _open_again(self, attempt: Move) -> Step | None:
        """Return a click that reopens the menu of a clicked item, which reports its state only there."""
        now, before = self._now, attempt.scene
        if now.scene.menu_is_open or not before.menu_is_open:
            return None
        item = next((one for one in before.elements if one.role in MENU_ITEMS and now.clicked(attempt, one.box)), None)
        menus = [up.name for up in before.parents(item) if up.role in ("menu", "push button menu")] if item else []
        found = now.finder.best(Target(menus[-1], role="menu")) if menus else None
        words = f"Open the menu again to see the state of {self._words}."
        return None if found is None else now.click(words, found)

    # One of several choices

    def _choose(self, element: Element) -> Pursuit:
        now = self._now
        if is_on(element):
            return Already(f"{self._words} is so already: {state_of(element)}")
        attempt = yield now.click(f"{self._words} is “{element.name}” here: click it.", element)
        not_yet = f"{self._words} shows no effect yet: wait and look again."
        if done := (yield from until(lambda: self._chosen_since(attempt), not_yet, _MOST_WAITS)):
            return done
        step = None
        if (choice := self._choice()) is not None:
            step = self._picture_above(choice)
            if step is None and choice.role not in TEXTS and not now.clicked(attempt, choice.box):
                step = now.click("Only its text was clicked: click the control.", choice)
        if step is not None:
            again = yield step
            if done := (yield from until(lambda: self._chosen_since(again), not_yet, _MOST_WAITS)):
                return done
        raise StuckError(f"I clicked what stands for {self._words}, but nothing shows that it took effect.")

    def _chosen_since(self, attempt: Move) -> Done | None:
        """Return the evidence that the choice is in force: its setting, or its own state."""
        setting = self._setting_tells(attempt, on=self._thing_on)
        if setting is not None and setting[0]:
            return Done(setting[1])
        choice = self._choice()
        return Done(self._with_settings(attempt, choice)) if choice is not None and is_on(choice) else None

    def _picture_above(self, element: Element) -> Step | None:
        """Return a click on the picture above a choice's text, if a busy program reports only the text."""
        if element.source != "words" or self._place is None or not self._place.above:
            return None
        x, y = element.box.left + element.box.width / 2, element.box.top - self._place.above
        return self._now.click_at("Its text does nothing: click the picture above it.", x, y, main=True)

    # Evidence from settings

    def _setting_tells(self, move: Move, *, on: bool) -> tuple[bool, str] | None:
        """Return whether a setting that changed since a move has the wanted state, and the change; None for none."""
        for change, setting in settings_of(self._now, self._place, move):
            if (holds := setting.holds(change.after, on=on)) is not None:
                return holds, str(change)
        return None

    def _contrary(self, move: Move, setting: tuple[bool, str] | None) -> str:
        """Return the setting of the same name that changed to the opposite since a move, in words; "" for none."""
        if setting is not None:
            return "" if setting[0] else setting[1]
        name, contrary = self._goal.target.name, not self._goal.on
        changes = self._now.changed_since(move, "setting")
        return next((str(one) for one in changes if is_called(one, name) and means_on(one, name) is contrary), "")

    def _with_settings(self, move: Move, element: Element) -> str:
        return "; ".join((state_of(element), *self._now.effects_of(move).changes[:2]))


def _bare_text(now: Now, target: Target) -> Element | None:
    """Return an OCR text in an area that the tree does not cover: XFCE's Settings embeds other programs' pages."""
    found = now.finder.best(target, TEXTS)
    if found is None or found.source != "words":
        return None
    top, bottom = found.box.top - _NEAR, found.box.bottom + _NEAR
    tree_elements = (one for one in now.scene.elements if one.source != "words" and one.window == found.window)
    near = any(one.box.top < bottom and top < one.box.bottom for one in tree_elements if one.role in CLICKABLE)
    return None if near else found


def find_switch(now: Now, targets: Iterable[Target]) -> Steps[Element | None]:
    """Find the switch of that name, or the switch in the row of that name."""
    for least in (WHOLE, PART):
        for target in targets:
            found = yield from now.the(target, SWITCHES, least=least)
            if found is not None:
                return found
            rows = now.finder.all(target, TEXTS | {"list item", "table row", "panel"}, least=least)
            of_rows = [_on_row_of(now, row.element) for row in rows if row.fit == rows[0].fit]
            switches = list({one.id: one for one in of_rows if one is not None}.values())
            if len(switches) > 1:
                return switches[(yield from now.pick(target.name, [now.finder.where(one) for one in switches]))]
            if switches:
                return switches[0]
            for row in now.finder.all(target, {"table cell", "tree item"}, least=least):
                if (tick := _tick_in(now, row.element)) is not None:
                    return tick
    return next(filter(None, (_switch_of_page(now, target) for target in targets)), None)


def _switch_of_page(now: Now, target: Target) -> Element | None:
    """Return the switch of the whole page that has this name, if it is only called "Enabled"."""
    shown = now.scene.shown()
    titles = [one.name for one in shown if one.role in ("page tab", "list item") and "selected" in one.states]
    titles += [now.scene.front.title] if now.scene.front is not None else []
    if not any(now.fits(title, target.name) for title in titles):
        return None
    labels = {plain(name) for label in _ENABLED for name in now.names.of(label)}
    switches = [one for one in shown if one.role in SWITCHES and plain(now.scene.text_of(one)) in labels]
    return switches[0] if len(switches) == 1 else None


def _on_row_of(now: Now, row: Element) -> Element | None:
    """Return the only switch in a row, or the switch beside its text."""

    def is_called(switch: Element) -> bool:  # by visible text: GNOME's panels name the switch in their title "Enable"
        name = plain(switch.name)
        return bool(name) and any(plain(one.name) == name for one in now.scene.elements if one.id != switch.id)

    inside = [one for one in now.scene.within(row) if one.role in SWITCHES and now.finder.believes(one)]
    if len(inside) == 1:
        return inside[0]
    beside = [
        one
        for one in now.scene.elements
        if one.role in SWITCHES
        and now.finder.believes(one)
        and (one.name == row.name or not is_called(one))
        and same_row(one.box, row.box)
        and (one.window, one.app) == (row.window or one.window, row.app or one.app)
    ]
    right = [one for one in beside if one.box.left >= row.box.right - 4]
    if not right and len(beside) == 1 and beside[0].box.right <= row.box.left + 4:
        return beside[0]  # a dialog's title bar may have it on the left
    return min(right, key=lambda one: one.box.left, default=None)


def _tick_in(now: Now, row: Element) -> Element | None:
    """Return the check box in a row: the cell in a column with checked or checkable cells."""
    beside = [one for one in now.scene.elements if one.parent == row.parent and same_row(one.box, row.box)]
    cells = [one for one in (*now.scene.within(row), *beside) if is_tick(one) and one.trusted]
    ticked = {one.box.left for one in now.scene.elements if is_tick(one) and one.states & {"checked", "checkable"}}
    return min((one for one in cells if one.box.left in ticked), key=lambda one: one.box.left, default=None)
