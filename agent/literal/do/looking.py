"""Where to look for something that is not to be seen: the window, page or panel it is in, further down, behind a tab.

Nothing is touched on the way but what leads somewhere: windows, tabs, rows, panels. What cannot be found that way is
not there.
"""

from collections.abc import Sequence
from dataclasses import astuple
from itertools import pairwise

from agent.core.geometry import Region
from agent.literal.find.finder import AREAS, WHOLE, fit_of
from agent.literal.find.scene import AMOUNTS, COMBOS, FIELDS, MENU_ITEMS, Scene, below, contains, right_of
from agent.literal.goals import Target
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Intent, Move
from agent.literal.state.effects import effects
from agent.literal.state.goal_state import GoalState, Step, Stuck, Verdict, press, start, wait
from agent.literal.vocabulary.places import Place, find_page, find_place
from agent.screen.outline import Element, ShownWindow

#: What leads to a page of a window.
_WAYS = frozenset(
    {"page tab", "list item", "tree item", "table cell", "push button", "toggle button", "radio button", "link", "icon",
     "menu", "push button menu", "table row", "label", "text", ""}
)  # fmt: skip
_SCROLLED = frozenset(
    {"scroll pane", "viewport", "list", "list box", "table", "tree", "tree table", "document web", "panel", "page"}
)
_MOST_SCROLLS = 12
#: On a busy machine a page tells its controls seconds after it is shown.
_LAST_WAIT = 1.6
#: A busy program scrolls when the screen was taken for still; then it is scrolled again.
_MOST_WAITS = 2
#: What may be an entry of a menu, by what the person calls it; and menus that are looked into.
_IN_MENUS = frozenset({"", "push button", "menu item", "check box", "switch", "radio button"})
_MOST_MENUS = 10
#: A busy application is asked so often whether something is where it says.
_MOST_DOUBTS = 4
_NOTCHES = 5
#: One notch moves GTK's lists by about so many pixels, browsers' pages by twice as much.
_NOTCH = 60
#: GTK 4 takes the first notch after the pointer came for nothing more than its arrival (seen in Settings 43).
_FEWEST = 2
#: Turning the wheel there would change what is held.
_NO_WHEEL = AMOUNTS | COMBOS | {"scroll bar", "page tab list", "page tab"}


def known_place(now: GoalState, target: Target, *, on: bool = True) -> Place | None:
    """Where the tables say the thing is on this desktop; None where they do not, or the person said where."""
    desktop = now.names.desktop
    if desktop is None or not target.name:
        return None
    known = find_place(target.whole or target.name, desktop, on=on) or find_place(target.name, desktop, on=on)
    return known or page_named(now, target.inside)


def page_named(now: GoalState, name: str) -> Place | None:
    """The page of that name in the tables, where no window is called so."""
    if not name or now.names.desktop is None or any(now.scene.named_window(one) for one in now.names.of(name)):
        return None
    return find_page(name, now.names.desktop, now.names.of)


def look_further(now: GoalState, target: Target, place: Place | None = None, *, tabs: bool = True) -> Verdict:
    """The next place to look for something that is not to be seen, or the end."""
    if now.tried("menu"):
        return _in_a_menu(now, target) or not_found(now, target)
    if now.finder.doubted(target) is not None and now.waits < _MOST_DOUBTS:
        return wait(f"{describe_target(target)} does not answer yet: wait and look again.")
    for verdict in (
        _to_its_place(now, target, place),
        _to_what_it_is_in(now, target),
        _later(now),
        to_offscreen(now, target),
        _further_down(now, target),
        _behind_a_tab(now) if tabs else None,
        _in_a_menu(now, target),
    ):
        if verdict is not None:
            return verdict
    waited = now.waits or any(move.call.get("seconds") == _LAST_WAIT for move in now.moves)
    if not waited and (now.earlier or now.moves):
        return wait("It is not to be seen: look once more, as it may come late.", _LAST_WAIT)
    return not_found(now, target)


def not_found(now: GoalState, target: Target) -> Verdict:
    """The end of a search in vain; a menu that was opened for it is closed first."""
    if now.scene.menu_is_open and now.moves and not now.tried("back"):
        return press("Close the menu again.", "back", "escape")
    shown = ", ".join(f"“{text}”" for text in now.scene.readable()) or "nothing"
    return Stuck(f"I could not find {describe_target(target)}. I can see: {shown}.")


def _to_its_place(now: GoalState, target: Target, place: Place | None) -> Verdict | None:
    """To the application, page and row that the tables name."""
    if place is None or (target.inside and page_named(now, target.inside) is None):
        return None
    window = next((found for name in now.names.of_window(place) if (found := now.scene.named_window(name))), None)
    program = place.desktop_file or place.app
    shown = (window is not None and place.window) or _shows_page(now, place)
    if program and not now.opened(program) and not shown:
        return start(f"{describe_target(target)} is in {place.app}: open it.", "prepare", program)
    return walk(now, place.path)


def _shows_page(now: GoalState, place: Place) -> bool:
    """Whether the window in front shows the page of a place: by its heading, beside the list of pages."""
    names = now.names.of_window(place)
    return any(
        one.role in ("label", "heading")
        and now.scene.in_front(one)
        and any(fit_of(one.name, name) >= WHOLE for name in names)
        for one in now.scene.elements
        if one.source != "words"
    )


def walk(now: GoalState, path: Sequence[str]) -> Verdict | None:
    """The next step along a way of tabs, rows and menus: the innermost that shows and was not taken yet."""
    gone = [move.about for move in now.tried("place")]
    for name in reversed(path):
        if name in gone:
            return None
        found = now.finder.best(Target(name), _WAYS)
        if found is None:
            if (step := to_offscreen(now, Target(name))) is not None:
                return step
            continue
        if found.element.role in ("page tab", "list item") and "selected" in found.element.states:
            return None
        return now.click(f"Go to “{name}”.", "place", found.element, about=name)
    return None


def _to_what_it_is_in(now: GoalState, target: Target) -> Verdict | None:
    """To the window, application, page or tab that the person named."""
    name = target.inside
    if not name or name.casefold() in AREAS or page_named(now, name) is not None:
        return None
    gone = [move.about for move in now.tried("place", "prepare")]
    window = next((found for one in now.names.of(name) if (found := now.scene.named_window(one))), None)
    if window is not None:
        if window is now.scene.front or name in gone:
            return None
        return to_front(now, window, "place", name)
    if name not in gone:
        way = now.finder.best(Target(name), _WAYS)
        if way is not None and "selected" in way.element.states and way.element.role in MENU_ITEMS:
            return None  # it hangs open
        if way is not None and "selected" not in way.element.states:
            return now.click(f"Go to “{name}”.", "place", way.element, about=name)
        if way is None and (step := to_offscreen(now, Target(name))) is not None:
            return step
        if way is None and not now.opened(name):
            return start(f"“{name}” is not to be seen: open it.", "prepare", name)
    return None


def to_front(now: GoalState, window: ShownWindow, intent: str, about: str) -> Verdict:
    """Bring a window to the front: by its button in a panel, or else by its title bar."""
    words = f"Bring “{window.title}” to the front."
    for element in now.scene.elements:
        if element.role not in ("toggle button", "push button", "list item") or now.scene.in_window(element, window):
            continue
        if not element.trusted or any(now.scene.in_window(element, other) for other in now.scene.windows):
            continue
        if fit_of(element.name, window.title) >= WHOLE:
            return now.click(words, "place" if intent == "place" else "focus", element, about=about)
    intention: Intent = "place" if intent == "place" else "focus"
    above = now.scene.windows[: now.scene.windows.index(window)]
    y = window.box.top - 12
    if y < 2:
        y = window.box.top + 14
    for part in (0.5, 0.3, 0.7):  # of its title bar, where there are no buttons
        x = window.box.left + part * window.box.width
        if not any(
            one.box.left - 6 <= x < right_of(one.box) + 6 and one.box.top - 30 <= y < below(one.box) + 6
            for one in above
        ):
            step = now.click_at(words, intention, x, y)
            return Step(step.words, step.intent, step.arguments, about)
    # Backwards: forwards, one press after the other goes to and fro between two windows.
    return press(words, intention, "alt+shift+tab" if len(now.scene.windows) > 2 else "alt+tab", about)


def _later(now: GoalState) -> Verdict | None:
    """Wait once after something was opened: its window may come up empty first."""
    latest = now.latest
    if latest is None and now.earlier:
        return wait("It may not be shown yet: wait.")
    if latest is not None and latest.intent in ("prepare", "place") and not now.effects_of(latest):
        return wait("It may not be shown yet: wait.")
    return None


def to_offscreen(now: GoalState, target: Target) -> Verdict | None:
    """Scroll towards what is known to lie outside of what is shown of a list or page."""
    scrolls = now.tried("scroll")
    hidden = now.finder.hidden(target) if len(scrolls) < _MOST_SCROLLS else None
    if hidden is None:
        return None
    if scrolls and scrolls[-1] is now.latest and not moved(now, scrolls[-1]):
        waited = sum(one.intent == "scroll" and then.intent == "late" for one, then in pairwise(now.moves))
        return wait("It may move late: wait.") if waited < _MOST_WAITS else None
    panes = [up for up in now.scene.parents(hidden) if up.role in _SCROLLED and "offscreen" not in up.states]
    spot = safe_spot(now.scene, panes[0] if panes else None)
    if spot is None:
        return None
    shown = now.scene.front.box if now.scene.front is not None else Region(0, 0, *astuple(now.scene.outline.size))
    box = panes[0].box if panes else shown
    away = hidden.box.top + hidden.box.height - below(box) if hidden.box.top >= box.top else hidden.box.top - box.top
    notches = max(_FEWEST, min(10, abs(away) // _NOTCH))
    direction = "down" if away > 0 else "up"
    call = {"action": "scroll", "direction": direction, "amount": notches, "coordinate": now.point(*spot)}
    return Step(f"“{hidden.name}” is further {direction}: scroll to it.", "scroll", call)


def _further_down(now: GoalState, target: Target) -> Verdict | None:
    """Scroll to what lies further down, as long as anything moves; never with the wheel over a slider."""
    since = _since_the_last_way(now.moves)
    scrolls = [move for move in since if move.intent == "scroll"]
    if len(scrolls) >= _MOST_SCROLLS or (scrolls and scrolls[-1] is now.latest and not moved(now, scrolls[-1])):
        return None
    spot = safe_spot(now.scene)
    if spot is None:
        return None
    call = {"action": "scroll", "direction": "down", "amount": _NOTCHES, "coordinate": now.point(*spot)}
    return Step(f"{describe_target(target)} is not to be seen: scroll down.", "scroll", call)


def _since_the_last_way(moves: Sequence[Move]) -> Sequence[Move]:
    ways = [at for at, move in enumerate(moves) if move.intent in ("place", "prepare", "back")]
    return moves[ways[-1] + 1 :] if ways else moves


def moved(now: GoalState, move: Move) -> bool:
    """Whether anything stands elsewhere than before a move."""
    if move.has("no_effect") or move.screen is None or move.screen.outline is None:
        return False
    before = Scene(move.screen.outline)
    if effects(before, now.scene, (), ()):
        return True
    where = {(element.role, element.name): element.box for element in before.elements if element.name}
    return any(
        where.get((element.role, element.name), element.box) != element.box
        for element in now.scene.elements
        if element.name and now.scene.in_front(element)
    )


def safe_spot(scene: Scene, area: Element | None = None) -> tuple[float, float] | None:
    """Where the wheel may turn in the window in front; None where nothing there scrolls."""
    if scene.front is None:
        return None
    if scene.is_late:  # there may be a slider anywhere
        return None
    inside = [element for element in scene.elements if scene.in_front(element)]
    if any(element.source != "words" for element in inside):
        scrolls = any(
            (element.role in ("scroll bar", "scroll pane", "document web", "viewport", "list", "list box", "table",
                              "tree", "tree table") or "offscreen" in element.states)
            for element in inside
        )  # fmt: skip
        if not scrolls:
            return None
    panes = [element for element in inside if element.role in _SCROLLED and element.box.height >= 80]
    panes = [
        pane for pane in panes if contains(pane.box, scene.front.box)
    ]  # what lies in the middle, no list beside it
    panes.sort(key=lambda element: (element.role in ("panel", "page"), -element.box.width * element.box.height))
    box = (area or (panes[0] if panes else None) or scene.front).box
    kept = [element.box for element in inside if element.role in _NO_WHEEL | FIELDS - {"document text", "terminal"}]
    kept = [other for other in kept if other.width * other.height < 0.5 * box.width * box.height]
    bottom, right = min(below(box), scene.outline.size.height), min(right_of(box), scene.outline.size.width)
    for across in (0.5, 0.03, 0.25, 0.75, 0.12):
        for down in (0.5, 0.3, 0.7, 0.15, 0.9):
            x, y = box.left + across * (right - box.left), box.top + down * (bottom - box.top)
            if not any(o.left - 6 <= x <= right_of(o) + 6 and o.top - 6 <= y <= below(o) + 6 for o in kept):
                return x, y
    return None


def _behind_a_tab(now: GoalState) -> Verdict | None:
    """The next tab of the window in front that was not looked behind yet."""
    if now.scene.menu_is_open:
        return None
    shown = [one for one in now.scene.elements if one.role == "page tab" and now.scene.in_front(one)]
    if any(now.clicked(move, tab.box) for move in now.earlier for tab in shown if move.intent == "act"):
        return None  # the person said which
    gone = [move.about for move in now.tried("place")]
    tabs = [
        element
        for element in now.scene.elements
        if element.role == "page tab" and now.scene.in_front(element) and element.name and element.trusted
        and "selected" not in element.states and "offscreen" not in element.states and element.name not in gone
        and not any(up.role == "page tab" for up in now.scene.parents(element))
    ]  # fmt: skip
    if not tabs or len(now.tried("place")) >= 8:
        return None
    tab = tabs[0]
    inner = next((one for one in tabs if contains(one.box, tab.box) and one is not tab), tab)
    return now.click(f"Look behind the tab “{inner.name}”.", "place", inner, about=inner.name)


def _in_a_menu(now: GoalState, target: Target) -> Verdict | None:
    """The next menu of the window in front that was not looked into yet; each is closed again before the next.

    Toolkits tell what is in a menu only while it hangs open.
    """
    if target.role not in _IN_MENUS or target.ordinal or not target.name:
        return None
    looked = now.tried("menu")
    if now.scene.menu_is_open:
        ours = now.latest is not None and now.latest.intent == "menu"
        return press(f"{describe_target(target)} is not in this menu: close it.", "menu", "escape") if ours else None
    bars = {one.id for one in now.scene.elements if one.role == "menu bar"}
    menus = [
        one
        for one in now.scene.elements
        if one.parent in bars and one.role in ("menu", "menu item") and one.name.strip() and one.trusted
        and now.scene.in_front(one) and not one.states & {"disabled", "offscreen"}
        and one.name not in [move.about for move in looked]
    ]  # fmt: skip
    if not menus or len(looked) >= _MOST_MENUS * 2:
        return None
    return now.click(f"Look into the menu “{menus[0].name}”.", "menu", menus[0], about=menus[0].name)


def area_named(now: GoalState, name: str) -> Element | None:
    """The list, page or pane of that name."""
    for element in now.scene.elements:
        if element.role in _SCROLLED and fit_of(now.scene.text_of(element), name) >= WHOLE:
            return element
    return None
