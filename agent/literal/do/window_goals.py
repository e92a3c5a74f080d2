"""Windows: opened, closed, brought to the front, made large or small; by their titles and applications."""

import re
from collections.abc import Sequence

from agent.literal.do import clicking
from agent.literal.do.looking import to_front, to_offscreen
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import CLICKABLE, MENU_ITEMS, SWITCHES, TEXTS, Scene
from agent.literal.goals import ArrangeWindow, Click, Close, Open, Target
from agent.literal.state.conversation import Move
from agent.literal.state.effects import called
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press, start, wait
from agent.screen.outline import Element, ShownWindow

_MOST_WAITS = 2
#: A busy application is asked so often whether something is where it says.
_MOST_DOUBTS = 4
_PAGES = frozenset({"list item", "tree item", "page tab"})
_HEADINGS = frozenset({"heading", "label"})
_ICONS = frozenset({"icon", "desktop icon", "table cell"})
#: Titles of what comes instead of what was to be opened.
_FAILURE = re.compile(r"\b(?:error|failed|fehler)\b", re.IGNORECASE)
#: Chords by window manager: xfwm4's and Marco's own, then those of GNOME Shell, KWin and Muffin.
_CHORDS = {
    "maximize": ("alt+f10", "super+up"),
    "unmaximize": ("alt+f10", "super+down"),
    "minimize": ("alt+f9", "super+h"),
    "fullscreen": ("alt+f11", "f11"),
}
_LARGE = 0.85
_MENUS = frozenset({"menu", "popup menu"})
_SUBMENU = re.compile(r" (?:sub-?)?menu$", re.IGNORECASE)
#: Words after which settings are meant, and that may be part of a button's name all the same.
_SETTINGS = ("options", "settings", "preferences")


def close(now: GoalState, goal: Close) -> Verdict:
    """The next step of closing a window."""
    attempt = now.acted
    if attempt is not None:
        return _closed(now, attempt)
    window = _window(now, goal.target)
    if window is None:
        return Stuck(f"I see no window called “{goal.target}”." if goal.target else "I see no window to close.")
    if window is not now.scene.front and window is not _front_of(now, goal.target):
        if len(now.tried("focus")) >= max(3, len(now.scene.windows) + 1):
            return Stuck(f"I could not bring “{window.title}” to the front.")
        return to_front(now, window, "focus", goal.target)
    return press(f"Close “{window.title or window.app}”.", "act", "alt+f4", about=_key(window))


def _key(window: ShownWindow) -> str:
    return f"{window.app}|{window.title}"[:200]


def _closed(now: GoalState, attempt: Move) -> Verdict:
    before = _before(attempt)
    if before is None:
        return Done("I pressed the keys that close a window", verified=False)
    had, have = [_key(window) for window in before.windows], [_key(window) for window in now.scene.windows]
    if had.count(attempt.about) > have.count(attempt.about):
        app, _, title = attempt.about.partition("|")
        return Done(f"the window “{title or app}” is closed")
    new = [window for window in now.scene.windows if _key(window) not in had]
    asks = new[0] if new else None
    effects = now.effects_of(attempt)
    if asks is not None or effects.came:
        what = f"“{asks.title}”" if asks is not None and asks.title else ", ".join(effects.came[:5])
        if not now.last:
            return Done(f"when I closed the window, it asked: {what}")
        return Stuck(f"The window did not close; it asks first: {what}.")
    if now.waits < _MOST_WAITS:
        return wait("The window is still there: wait.")
    return Stuck("I tried to close the window, but it is still there.")


def _before(move: Move) -> Scene | None:
    return None if move.screen is None or move.screen.outline is None else Scene(move.screen.outline)


def _window(now: GoalState, name: str) -> ShownWindow | None:
    """The window of that name; for none, the one in front, or the one that was opened last in this run."""
    if not name:
        return now.scene.front
    return next((window for one in now.names.of(name) if (window := now.scene.named_window(one)) is not None), None)


def _front_of(now: GoalState, name: str) -> ShownWindow | None:
    """The window in front, where it is of the wanted application."""
    front = now.scene.front
    if front is None:
        return None
    return front if any(fit_of(text, name) >= WHOLE for text in (front.title, front.app)) else None


def arrange(now: GoalState, goal: ArrangeWindow) -> Verdict:
    """The next step of changing how a window is shown."""
    attempt = now.acted
    if goal.how == "focus":
        return _focus(now, goal)
    if attempt is not None:
        return _arranged(now, goal, attempt)
    window = _window(now, goal.target)
    if window is None:
        return Stuck(f"I see no window called “{goal.target}”." if goal.target else "I see no window.")
    if goal.how == "maximize" and _is_large(now, window):
        return Done(f"“{window.title}” is maximized already")
    if window is not now.scene.front:
        if len(now.tried("focus")) >= max(3, len(now.scene.windows) + 1):
            return Stuck(f"I could not bring “{window.title}” to the front.")
        return to_front(now, window, "focus", goal.target)
    keys = _CHORDS[goal.how][now.names.desktop in ("kde", "cinnamon")]
    return press(f"{goal.how.capitalize()} “{window.title}”.", "act", keys, about=_key(window))


def _focus(now: GoalState, goal: ArrangeWindow) -> Verdict:
    window = _window(now, goal.target)
    if window is None:
        if now.moves:
            return Stuck(f"The window “{goal.target}” is not there any more.")
        return Stuck(f"I see no window called “{goal.target}”.")
    if window is now.scene.front:
        return Done(f"“{window.title}” is in front")
    if len(now.tried("focus")) >= max(3, len(now.scene.windows) + 1):
        return Stuck(f"I could not bring “{window.title}” to the front.")
    return to_front(now, window, "focus", goal.target)


def _is_large(now: GoalState, window: ShownWindow) -> bool:
    size = now.scene.outline.size
    return window.box.width >= _LARGE * size.width and window.box.height >= _LARGE * size.height


def _arranged(now: GoalState, goal: ArrangeWindow, attempt: Move) -> Verdict:
    window = next((one for one in now.scene.windows if _key(one) == attempt.about), None)
    before = _before(attempt)
    then = None if before is None else next((one for one in before.windows if _key(one) == attempt.about), None)
    title = attempt.about.partition("|")[2]
    if goal.how == "minimize":
        if window is None:
            return Done(f"the window “{title}” is not shown any more")
    elif window is not None and then is not None and window.box != then.box:
        larger = window.box.width * window.box.height > then.box.width * then.box.height
        if larger is (goal.how != "unmaximize"):
            return Done(f"the window “{title}” is {window.box.width}x{window.box.height} now")
    if now.waits < 1:
        return wait("The window is as it was: wait.", 0.5)
    return Stuck(f"I tried to {goal.how} the window “{title}”, but it is as it was.")


def open_it(now: GoalState, goal: Open) -> Verdict:
    """The next step of opening an application, a settings panel, a file or a folder."""
    attempt = now.acted
    name = goal.name
    if menu := _menu_named(now, goal):
        return clicking.click(now, Click(Target(name, inside=menu)))
    if attempt is None:
        visible = _in_open_menu(now, goal) or _visible_in_front(now, goal)
        if visible is not None:
            return visible
        return start(f"Open “{name}”.", "act", _spoken(goal))
    if attempt.action == "open" and attempt.has("failed"):
        return _by_sight(now, goal, attempt)
    if attempt.action == "click" and (before := _before(attempt)) is not None and before.menu_is_open:
        return clicking.click(now, Click(Target(name)))  # an entry of a menu need not open a window
    if _was_menu(now, attempt):
        return clicking.click(now, Click(Target(name, role="menu")))
    window = _new_window(now, attempt)
    if window is not None and _FAILURE.search(window.title):
        return Stuck(f"I opened “{name}”, and “{window.title}” came.")
    if (front := _of_application(now, name, attempt)) is not None:
        return Done(f"{name} is open: “{front.title or front.app}” is in front")
    if window is not None:
        return Done(f"{name} is open: the window “{window.title or window.app}” opened")
    if (page := _page_of(now, name, attempt)) is not None:
        return Done(f"{name} is open: {called(page)} is shown")
    if now.waits < _MOST_WAITS:
        return wait(f"“{name}” may need longer: wait.", 2)
    clicks = now.tried("act")
    if attempt.action == "click" and len(clicks) == 1 and (again := _icon_in_front(now, goal)) is not None:
        return now.click(f"A click on “{name}” opened nothing: double-click it.", "act", again, "double_click")
    effects = now.effects_of(attempt)
    if effects.altered or effects.came:
        return Done(f"I opened “{name}”, and nothing of that name is in front: {effects.words}", verified=False)
    return Stuck(f"I started “{name}”, but no window appeared.")


def _was_menu(now: GoalState, attempt: Move) -> bool:
    """Whether a click was on a menu in the menu bar, which opens no window."""
    before = _before(attempt)
    return (
        attempt.action == "click"
        and before is not None
        and any(one.role == "menu" and now.clicked(attempt, one.box) for one in before.elements)
    )


def _new_window(now: GoalState, attempt: Move) -> ShownWindow | None:
    """A window that was not there before an attempt; one that only calls itself otherwise now is none."""
    before = _before(attempt)
    if before is None:
        return None
    had = {_key(window) for window in before.windows}
    more = len(now.scene.windows) > len(before.windows)
    apps = {window.app for window in before.windows}
    return next((one for one in now.scene.windows if _key(one) not in had and (more or one.app not in apps)), None)


def _page_of(now: GoalState, name: str, attempt: Move) -> Element | None:
    """What says in front that the page of that name is open: its heading, or its row or tab, which is chosen."""

    def named(scene: Scene, roles: "frozenset[str]") -> list[Element]:
        return [
            one
            for one in scene.elements
            if one.role in roles
            and scene.in_front(one)
            and "offscreen" not in one.states
            and any(fit_of(one.name, wanted) >= WHOLE for wanted in now.names.of(name))
        ]

    before = _before(attempt)
    chosen = [one for one in named(now.scene, _PAGES) if "selected" in one.states]
    headings = named(now.scene, _HEADINGS)
    new = headings if before is not None and len(headings) > len(named(before, _HEADINGS)) else []
    return next(iter((*new, *chosen)), None)


def _icon_in_front(now: GoalState, goal: Open) -> Element | None:
    """The icon or cell of that name in the window in front."""
    found = now.the(Target(goal.name), _ICONS)
    return found.element if found is not None and now.scene.in_front(found.element) else None


def _spoken(goal: Open) -> str:
    if goal.kind == "settings" and "setting" not in goal.name.casefold():
        return f"{goal.name} settings"
    return goal.name


def _of_application(now: GoalState, name: str, attempt: Move) -> ShownWindow | None:
    """The window in front, where it is of that name: an application that was open already comes to the front."""
    front = now.scene.front
    if front is None:
        return None
    wanted = [*now.names.of(name)]
    for one in wanted:
        if now.scene.named_window(one, kinds=False) is front:
            return front
    # What was opened may call its window otherwise: then the focus went to it.
    before = _before(attempt)
    if before is None or before.front is None or attempt.action != "open":
        return None
    shown = {_key(window) for window in now.scene.windows}
    stayed = _key(before.front) in shown and _key(front) in {_key(window) for window in before.windows}
    return front if stayed and _key(front) != _key(before.front) else None


def _names_of(goal: Open) -> list[str]:
    """What the thing may be called: "View Options" may be a button or options, "the Zoom submenu" a menu."""
    bare = _SUBMENU.sub("", goal.name)
    longer = [f"{goal.name} {kind}" for kind in _SETTINGS] if goal.kind == "settings" else []
    return list(dict.fromkeys([*longer, goal.name, bare]))


def _in_open_menu(now: GoalState, goal: Open) -> Step | None:
    """An entry of the menu that hangs open: what is opened next is looked for there before any application."""
    if not now.scene.menu_is_open or goal.inside:
        return None
    for name in _names_of(goal):
        found = now.finder.best(Target(name), MENU_ITEMS)
        if found is not None and any(up.role in _MENUS for up in now.scene.parents(found.element)):
            return now.click(f"“{found.text}” is in the open menu: choose it.", "act", found.element)
    return None


def _menu_named(now: GoalState, goal: Open) -> str:
    """The menu of the window in front in which the thing is said to be; "" for none."""
    if not goal.inside or goal.kind:
        return ""
    name = _SUBMENU.sub("", goal.inside)
    menu = now.finder.best(Target(name), {"menu"})
    return name if menu is not None and now.scene.in_front(menu.element) else ""


def _visible_in_front(now: GoalState, goal: Open) -> Verdict | None:
    """A row or icon of that name in a window that was opened before: it is meant there."""
    front = now.scene.front
    if not now.earlier or front is None or goal.kind in ("application",):
        return None
    for name in _names_of(goal):
        found = now.the(Target(name, inside=front.title), CLICKABLE | TEXTS)
        if found is not None and now.scene.in_front(found.element):
            return now.click(f"“{name}” is to be seen in the window in front: open it there.", "act", found.element)
        if now.finder.hidden(Target(name), CLICKABLE) is not None:
            return to_offscreen(now, Target(name))
        if now.finder.doubted(Target(name)) is not None and now.waits < _MOST_DOUBTS:
            return wait(f"“{name}” does not answer yet: wait and look again.")
    return None


def _by_sight(now: GoalState, goal: Open, attempt: Move) -> Verdict:
    """No application of that name: an icon or row that is shown under it, clicked and then double-clicked."""
    found = now.finder.all(Target(goal.name, inside=goal.inside), (CLICKABLE - SWITCHES) | TEXTS)
    clicks: Sequence[Move] = now.tried("pick")
    if clicks and (words := _opened_something(now, clicks[-1])):
        return Done(f"“{goal.name}” is open: {words}")
    if clicks and now.waits < 1:
        return wait(f"“{goal.name}” may need longer: wait.")
    for one in found:
        mine = [move for move in clicks if now.clicked(move, one.element.box)]
        if not mine:
            return now.click(f"No application is called “{goal.name}”, but it is shown: click it.", "pick", one.element)
        if len(mine) == 1 and not _opened_something(now, mine[0]):
            words = f"A click on “{goal.name}” opened nothing: double-click it."
            return now.click(words, "pick", one.element, "double_click")
    reason = next((note.detail for note in attempt.notes if note.kind == "failed"), "")
    return Stuck(f"I could not open “{goal.name}”: {reason or 'nothing has that name'}.")


def _opened_something(now: GoalState, move: Move) -> str:
    opened = [words for words in now.effects_of(move).windows if words.endswith("opened")]
    name = str(now.goal.name) if isinstance(now.goal, Open) else ""
    page = _page_of(now, name, move)
    return "; ".join(opened) or (f"{called(page)} is shown" if page is not None else "")
