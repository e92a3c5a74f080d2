"""Searches for a target that is not visible: in its window, page or panel, further down, behind tabs, in menus.

On the way it only touches navigation: windows, tabs, rows, panels and menus.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import TypeVar

from agent.core.geometry import Region
from agent.core.roles import role_group
from agent.literal.do.known_places import in_its_window, is_in, page_named, shows_page
from agent.literal.do.now import Move, Now, Step, Steps, StuckError
from agent.literal.do.wheel import SCROLLED, covers, moved, safe_spot
from agent.literal.find.finder import AREAS, WHOLE, fit_of
from agent.literal.find.scene import CLICKABLE, TEXTS
from agent.literal.goals import BACKDROP, PANELS, Target
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.descriptions import described_places
from agent.literal.vocabulary.places import Place, known_thing
from agent.screen.outline import Element, ShownWindow

#: Roles that may lead to a page of a window.
_WAYS = role_group("ways to a page")
_MOST_SCROLLS, _MOST_PLACES = 12, 8
#: Steps of one search before it is given up: about half a minute.
_MOST_STEPS = 24
#: Seconds of the last wait: on a busy machine, a page reports its controls seconds after it is shown.
_LAST_WAIT = 1.6
#: What an outline says of busy applications (`agent.desktop.trees.shape`), the most waits for them, and their seconds.
UNANSWERED, _MOST_BUSY, _BUSY = "did not answer in time", 5, 1.2
#: Waits for a busy program that scrolls after the screen was considered settled.
_MOST_WAITS = 2
#: Roles in a target that may mean a menu item, and the most menus to open.
_IN_MENUS = frozenset({"", "push button", "menu item", "check box", "switch", "radio button"})
_MOST_MENUS = 10
#: The button of an application's menu, in windows without a menu bar.
_MENU_BUTTON = re.compile(r"(?i)(?:(?:open |main |primary |app |application )*menu)")
#: Waits for a busy application to confirm an element's position.
MOST_DOUBTS = 4
_NOTCHES = 5
#: Least similarity, of 100, of a name that is reported if the wanted name is not there.
_ALIKE = 70
#: Pixels that one notch scrolls GTK's lists; browsers scroll twice as far.
_NOTCH = 60
#: GTK 4 ignores the first notch after the pointer has entered (seen in Settings 43).
_FEWEST = 2
_T = TypeVar("_T")


def look(
    now: Now,
    find: Callable[[], Steps[_T | None]],
    target: Target | Callable[[], Target],
    place: Place | None = None,
    *,
    tabs: bool = True,
    elsewhere: bool = False,
) -> Steps[_T]:
    """Search place after place until `find` returns something.

    `tabs`: also behind the window's tabs. `elsewhere`: also in the settings dialogs that describe such a label.
    """
    search = Search(now, target if isinstance(target, Target) else target(), place, tabs=tabs, elsewhere=elsewhere)
    while (found := (yield from find())) is None:
        search.target = target if isinstance(target, Target) else target()
        if (step := search.next()) is not None:
            search.latest = yield step
    return found


def at_once(check: Callable[[], _T | None]) -> Callable[[], Steps[_T | None]]:
    """Return a `find` for `look` that takes no steps of its own."""

    def find() -> Steps[_T | None]:
        yield from ()
        return check()

    return find


class Search:
    """The search for one target: the places visited, and the next one."""

    def __init__(
        self, now: Now, target: Target, place: Place | None = None, *, tabs: bool = True, elsewhere: bool = False
    ) -> None:
        self._now, self.target, self._place, self._tabs, self._elsewhere = now, target, place, tabs, elsewhere
        self._gone: list[str] = []  # names of visited windows, rows and tabs
        self._menus: list[str] = []  # names of visited menus
        self._in_menus = 0  # steps into and out of menus
        self._steps = 0
        self._scrolls = self._scrolls_here = self._waits = self._late_scrolls = 0
        self._unanswered = self._doubts = 0
        self._left_menu = self._waited_long = False
        self._last: str = ""  # the kind of the last step
        self.latest: Move | None = None

    def next(self) -> Step | None:
        """Return the step that goes to the next place; None to look once more on panels and docks.

        Raises StuckError if all places were tried.
        """
        now, whole = self._now, self.target.whole
        if self._elsewhere and self.target.inside and self.target.inside in whole and self._described(whole):
            self.target = Target(whole, here=self.target.here)  # "Display menubar in new windows"
        target = self.target
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return self._not_found()
        if UNANSWERED in now.scene.outline.lacks and self._unanswered < _MOST_BUSY:
            self._unanswered += 1
            return Step.wait("Some application did not answer in time: wait and look again.", _BUSY)
        if self._in_menus:
            return self._in_a_menu() or self._to_described_window() or self._not_found()
        if now.finder.doubted(target) is not None and self._doubts < MOST_DOUBTS:
            self._doubts += 1
            return self._wait(f"{describe_target(target)} does not answer yet: wait and look again.")
        if target.inside in (BACKDROP, PANELS):  # their elements are nowhere else
            return self._later() or self._not_found()
        ways: list[Callable[[], Step | None]] = [self._to_its_place, self._by_its_own_file, self._to_what_it_is_in]
        here = [self._later, self.to_offscreen, self.further_down]
        ways = [*here, *ways] if self._is_on_chosen_page() else [*ways, *here]
        ways += [self._to_described_tab, self._behind_a_tab, self._in_a_menu, self._to_described_window]
        for way in ways:
            if (step := way()) is not None:
                return step
            if way == self.further_down and self._looks_on_panels():
                return None
        # On a busy machine, the desktop may not have reported a window yet when nothing was done so far.
        if not (self._waits or self._waited_long) and (now.moves or now.scene.front is None):
            self._waited_long = True
            return self._wait("It is not visible: look once more, as it may appear late.", _LAST_WAIT)
        return self._not_found()

    def _looks_on_panels(self) -> bool:
        """Let a click go to a panel or dock if the window that an earlier goal opened has no such thing."""
        now = self._now
        if now.anywhere or self._elsewhere or now.finder.best(self.target) is None:
            return False
        now.anywhere = True
        return True

    def _is_on_chosen_page(self) -> bool:
        """Whether an earlier part of the instruction chose the page of the front window that is shown."""
        now = self._now
        chosen = [one for one in now.scene.shown(_WAYS) if "selected" in one.states]
        return any(now.clicked(move, one.box) for move in now.earlier if move.step.main for one in chosen)

    def to_offscreen(self, target: Target | None = None) -> Step | None:
        """Return a scroll towards a matching element that is outside the visible part of a list or page."""
        hidden = self._now.finder.hidden(target or self.target)
        return self.scroll_to(hidden) if hidden is not None else None

    def scroll_to(self, hidden: Element) -> Step | None:
        """Return a scroll towards an element; None if that was tried often enough, or nothing there scrolls."""
        now = self._now
        if self._scrolls >= _MOST_SCROLLS:
            return None
        if self._last == "scroll" and self.latest is not None and not moved(now, self.latest):
            self._late_scrolls += 1
            return self._wait("It may move late: wait.") if self._late_scrolls <= _MOST_WAITS else None
        panes = [up for up in now.scene.parents(hidden) if up.role in SCROLLED and "offscreen" not in up.states]
        spot = safe_spot(now.scene, panes[0] if panes else None)
        if spot is None:
            return None
        shown = now.scene.front.box if now.scene.front is not None else Region(0, 0, *astuple(now.scene.outline.size))
        box = panes[0].box if panes else shown
        away = hidden.box.bottom - box.bottom if hidden.box.top >= box.top else hidden.box.top - box.top
        notches = max(_FEWEST, min(10, abs(away) // _NOTCH))
        direction = "down" if away > 0 else "up"
        return self._scroll(f"“{hidden.name}” is further {direction}: scroll to it.", direction, notches, spot)

    def _wait(self, words: str, seconds: float = 1.0) -> Step:
        self._waits, self._last = self._waits + 1, "wait"
        return Step.wait(words, seconds)

    def _go(self, step: Step, name: str) -> Step:
        self._gone.append(name)
        self._scrolls_here = self._waits = 0
        self._last = "go"
        return step

    def _scroll(self, words: str, direction: str, notches: int, spot: tuple[float, float]) -> Step:
        self._scrolls, self._scrolls_here = self._scrolls + 1, self._scrolls_here + 1
        self._waits, self._last = 0, "scroll"
        place = self._now.point(*spot)
        return Step(words, {"action": "scroll", "direction": direction, "amount": notches, "coordinate": place})

    def _not_found(self) -> Step:
        """Raise StuckError for a failed search, after closing an open menu."""
        now = self._now
        if now.scene.menu_is_open and self.latest is not None and not self._left_menu:
            self._left_menu = True
            return Step.press("Close the menu again.", "escape")
        raise StuckError(f"I could not find {describe_target(self.target)}{_where(now)}{_alike(now, self.target)}")

    def _to_its_place(self) -> Step | None:
        """Return a step to the application, page and row in the tables."""
        now, target, place = self._now, self.target, self._place
        if place is None:
            return None
        if target.inside and page_named(now, target.inside) is None and not self._has_own_settings():
            return None
        window = next((found for name in now.names.of_window(place) if (found := now.scene.named_window(name))), None)
        program = place.desktop_file or place.app
        shown = (window is not None and place.window) or shows_page(now, place)
        if window is not None and window is not now.scene.front and place.window and window.title not in self._gone:
            return self._go(to_front(now, window), window.title)
        if program and not now.opened(program) and not shown:
            return self._go(Step.start(f"{describe_target(target)} is in {place.app}: open it.", program), program)
        return self._walk(place.path)

    def _has_own_settings(self) -> bool:
        """Return whether the program that the person named keeps the target in a program for its settings."""
        place, inside = self._place, self.target.inside
        return bool(
            place is not None and inside and place.app.endswith(" Settings") and is_in(self._now, place, inside)
        )

    def _by_its_own_file(self) -> Step | None:
        """Return a step that opens the page by its desktop file, if its row is in the tree but not on the screen."""
        now, place = self._now, self._place
        if place is None or not (place.path and place.desktop_file) or now.opened(place.desktop_file):
            return None
        name = place.path[0]
        row = now.finder.doubted(Target(name)) or now.finder.hidden(Target(name))
        if row is None or "selected" in row.states or set(place.path) & set(self._gone):
            return None
        return self._go(Step.start(f"Nothing leads to “{name}”: open it.", place.desktop_file), name)

    def _described(self, *names: str) -> list[Place]:
        """Return the places of controls of these names as installed settings dialogs describe them."""
        desktop = self._now.names.desktop
        wanted = dict.fromkeys(filter(None, names))
        return [place for name in wanted if desktop is not None for place in described_places(name, desktop)]

    def _to_described_tab(self) -> Step | None:
        """Return a step to the tab of the front window that has the target by the program's own description."""
        places = self._described(self.target.whole, self.target.name)
        inside = self.target.inside
        places = [place for place in places if not inside or is_in(self._now, place, inside)]
        here = (place for place in places if in_its_window(self._now, place))
        return next((step for place in here if (step := self._walk(place.path))), None)

    def _to_described_window(self) -> Step | None:
        """Return a step to the settings dialog that has the target. Raises StuckError if several have one."""
        named = (
            self.target.inside
            or self.target.here
            or any(move.action == "open" and move.step.main for move in self._now.earlier)
        )
        if not self._elsewhere or self._place is not None or named:
            return None
        places = self._described(self.target.whole, self.target.name)
        if len(places) > 1:
            several = " and in ".join(f"“{' > '.join((one.app, *one.path))}”" for one in places)
            raise StuckError(f"{describe_target(self.target)} is in {several}. Say which: “... in ...”.")
        if not places or in_its_window(self._now, places[0]):
            return None
        self._place, self._steps, self._in_menus = places[0], 0, 0
        return self._to_its_place()

    def _walk(self, path: Sequence[str]) -> Step | None:
        """Return the next step along a path of tabs, rows and menus: the innermost that is visible and not visited."""
        now = self._now
        for name in reversed(path):
            if name in self._gone:
                return None
            found = now.finder.best(Target(name), _WAYS)
            if found is not None:
                there = found.role in ("page tab", "list item") and "selected" in found.states
                return None if there else self._go(now.click(f"Go to “{name}”.", found, main=False), name)
            if (step := self.to_offscreen(Target(name))) is not None:
                return step
        return None

    def _to_what_it_is_in(self) -> Step | None:
        """Return a step to the window, application, page or tab that the person named."""
        now, name = self._now, self.target.inside
        if not name or name.casefold() in AREAS or is_main_menu(name) or name in self._gone:
            return None
        if page_named(now, name) is not None or self._has_own_settings():
            return None
        window = next((found for one in now.names.of(name) if (found := now.scene.named_window(one))), None)
        if window is not None:
            return None if window is now.scene.front else self._go(to_front(now, window), name)
        way = now.finder.best(Target(name), _WAYS)
        if way is not None and not (self._elsewhere and now.scene.is_on_panel(way)):
            step = now.click(f"Go to “{name}”.", way, main=False)
            return None if "selected" in way.states else self._go(step, name)
        is_setting = known_thing(name) is not None and name.casefold() not in lexicon.programs()
        if (scroll := self.to_offscreen(Target(name))) is not None or now.opened(name) or is_setting:
            return scroll
        return self._go(Step.start(f"“{name}” is not visible: open it.", name), name)

    def _later(self) -> Step | None:
        """Return a wait after something was opened, because its window may be empty at first."""
        first = self.latest is None and bool(self._now.earlier)
        if first or (self._last == "go" and self.latest is not None and not self._now.effects_of(self.latest)):
            return self._wait("It may not be shown yet: wait.")
        return None

    def further_down(self) -> Step | None:
        """Return a scroll down while something moves; never with the wheel over a slider."""
        now = self._now
        still = self._last == "scroll" and self.latest is not None and not moved(now, self.latest)
        if self._scrolls_here >= _MOST_SCROLLS or still or (spot := safe_spot(now.scene)) is None:
            return None
        return self._scroll(f"{describe_target(self.target)} is not visible: scroll down.", "down", _NOTCHES, spot)

    def _behind_a_tab(self) -> Step | None:
        """Return a click on the next tab of the front window that was not visited."""
        now = self._now
        if not self._tabs or now.scene.menu_is_open or len(self._gone) >= _MOST_PLACES:
            return None
        shown = now.scene.shown({"page tab"}, without="")
        named = [one for one in shown if "selected" in one.states and fit_of(one.name, self.target.inside) >= WHOLE]
        if named or any(now.clicked(move, tab.box) for move in now.earlier for tab in shown if move.step.main):
            return None  # the person chose a tab
        tabs = [
            one
            for one in shown
            if one.name and one.trusted and not one.states & {"selected", "offscreen"} and one.name not in self._gone
            and not any(up.role == "page tab" for up in now.scene.parents(one))
        ]  # fmt: skip
        if not tabs:
            return None
        inner = next((one for one in tabs[1:] if one.box.contains(tabs[0].box.middle)), tabs[0])
        return self._go(now.click(f"Look behind the tab “{inner.name}”.", inner, main=False), inner.name)

    def _in_a_menu(self) -> Step | None:
        """Return a step into the next menu of the front window, or out of the open one.

        Toolkits report a menu's items only while it is open.
        """
        now, target = self._now, self.target
        if target.role not in _IN_MENUS or target.ordinal or not target.name:
            return None
        if now.scene.menu_is_open:
            if self._last != "menu":
                return None
            self._in_menus += 1
            return Step.press(f"{describe_target(target)} is not in this menu: close it.", "escape")
        bars = {one.id for one in now.scene.elements if one.role == "menu bar"}
        roles = {"menu", "menu item"} if bars else {"push button", "toggle button"}
        menus = [
            one
            for one in now.scene.shown(roles)
            if (one.parent in bars and one.name.strip()) or (not bars and _MENU_BUTTON.fullmatch(one.name))
            if one.trusted and "disabled" not in one.states and one.name not in self._menus
        ]
        if not menus or self._in_menus >= _MOST_MENUS * 2:
            return None
        self._menus.append(menus[0].name)
        self._in_menus, self._waits, self._last = self._in_menus + 1, 0, "menu"
        return now.click(f"Look into the menu “{menus[0].name}”.", menus[0], main=False)


def _where(now: Now) -> str:
    """Return for a message where the search ended, or why the place to search could not be opened."""
    last = next((move for move in reversed(now.moves[now.begun :]) if move.action == "open"), None)
    if last is not None and last.failure:
        return f": {last.failure.rstrip('.')}."
    front = now.scene.front
    if front is None:
        return ": no window is open, and I do not know in which it is. Say where: “... in the window ...”."
    return f" in the window “{front.title or front.app}”."


def _alike(now: Now, target: Target) -> str:
    """Return why elements are missing, or which other control has the name, or the most similar names."""
    from rapidfuzz import fuzz, process

    if now.scene.outline.lacks:
        return f" {now.scene.outline.lacks}."
    if same := [one for one in now.scene.shown(CLICKABLE) if fit_of(one.name, target.name) >= WHOLE]:
        return f" “{same[0].name}” there is a {same[0].role}."
    names = (" ".join(one.name.split())[:40] for one in now.scene.shown(CLICKABLE | TEXTS))
    readable = list(dict.fromkeys(name for name in names if sum(map(str.isalnum, name)) >= 2))
    found = process.extract(target.name, readable, scorer=fuzz.ratio, limit=3, score_cutoff=_ALIKE)
    return f" There is {' and '.join(f'“{name}”' for name, *_ in found)}." if found else ""


def to_front(now: Now, window: ShownWindow, *, main: bool = False, by_keys: bool = False) -> Step:
    """Return a step that brings a window to the front: by its panel button, its title bar or alt+tab.

    `by_keys`: by alt+tab. Nothing tells whether a window has its title bar inside or above its box.
    """
    words = f"Bring “{window.title}” to the front."
    for element in () if by_keys else now.scene.elements:
        if element.role not in ("toggle button", "push button", "list item") or not element.trusted:
            continue
        if any(now.scene.in_window(element, other) for other in now.scene.windows):
            continue
        if fit_of(element.name, window.title) >= WHOLE:
            return now.click(words, element, main=main)
    above = now.scene.windows[: now.scene.windows.index(window)]
    y = window.box.top + (-12 if window.box.top >= 14 else 14)
    for part in () if by_keys else (0.5, 0.3, 0.7):  # shares of the title bar's width without buttons
        x = window.box.left + part * window.box.width
        if not any(covers(one.box, x, y, 6, 30) for one in above):
            return now.click_at(words, x, y, main=main)
    # Backwards, because repeated alt+tab alternates between two windows.
    return Step.press(words, "alt+shift+tab" if len(now.scene.windows) > 2 else "alt+tab", main=main)


def is_main_menu(name: str) -> bool:
    """Return whether a name means the button of an application's menu."""
    return _MENU_BUTTON.fullmatch(name) is not None


def menu_button(now: Now, target: Target) -> Element | None:
    """Return the button of the front window's menu if the main menu is wanted; it may only be called "Menu"."""
    if not is_main_menu(target.name) or now.scene.menu_is_open:
        return None
    front = now.scene.front
    windows = [found for one in now.names.of(target.inside) if (found := now.scene.named_window(one))]
    if front is None or (target.inside and front not in windows):
        return None
    buttons = [one for one in now.scene.shown({"push button", "toggle button"}) if _MENU_BUTTON.fullmatch(one.name)]
    if len(buttons) > 1:
        buttons = [one for one in buttons if re.match("(?i)main|primary", one.name)]
    return buttons[0] if len(buttons) == 1 else None
