"""Opens, closes, raises and resizes windows, which are identified by title and application."""

import re
from collections.abc import Sequence
from functools import partial

from agent.literal.do import clicking
from agent.literal.do.known_places import page_named
from agent.literal.do.looking import MOST_DOUBTS, Search, is_main_menu, to_front
from agent.literal.do.now import Already, Done, Move, Now, OrGoal, Pursuit, Step, Steps, StuckError, surely, until
from agent.literal.find.effects import called
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import CLICKABLE, MENU_ITEMS, SWITCHES, TEXTS, Scene
from agent.literal.goals import ArrangeWindow, Click, Close, CloseOthers, Open, Target
from agent.literal.vocabulary import lexicon
from agent.screen.outline import Element, ShownWindow

_MOST_WAITS = 2
_PAGES = frozenset({"list item", "tree item", "page tab"})
_HEADINGS = frozenset({"heading", "label"})
_ICONS = frozenset({"icon", "desktop icon", "table cell"})
#: Titles of error windows that appear instead of the wanted one.
_FAILURE = re.compile(r"(?i)\b(?:error|failed|fehler)\b")
#: Key combinations of xfwm4 and Marco, then of GNOME Shell, KWin and Muffin. GNOME may run with another window
#: manager, which would leave the H of super+h to the application. So there the first one is tried first.
_CHORDS = {
    "maximize": ("alt+f10", "super+up"),
    "unmaximize": ("alt+f10", "super+down"),
    "minimize": ("alt+f9", "super+h"),
    "fullscreen": ("alt+f11", "f11"),
    "show desktop": ("ctrl+alt+d", "super+d"),
}
#: The desktop's message if nothing has the wanted name (`agent.desktop.apps.launcher`); it lists names for models.
_ABSENT = re.compile("no installed application, file or folder is called")
_LARGE = 0.85
_MENUS = frozenset({"menu", "popup menu"})
_SUBMENU = re.compile(r"(?i) (?:sub-?)?menu$")
#: Words that mean settings, but may also be part of a button's name.
_SETTINGS = ("options", "settings", "preferences")


def close(now: Now, goal: Close) -> Pursuit:
    """Close a window."""
    missing = f"I see no window called “{goal.target}”." if goal.target else "I see no window to close."
    window = yield from _bring_to_front(now, goal.target, missing, of_application=True)
    if goal.dialog and not window.dialog:
        raise StuckError(f"“{window.title or window.app}” in front is no dialog. To close it, say “close the window”.")
    return (yield from _close_front(now, window))


def close_others(now: Now, goal: CloseOthers) -> Pursuit:
    """Close all windows but the kept ones."""
    kept = [one for name in goal.kept or ("",) for one in _named(now, name)]
    if missing := [name for name in goal.kept if not _named(now, name)]:
        raise StuckError(f"I see no window called “{missing[0]}”.")
    closed: list[str] = []
    while other := next((one for one in now.scene.windows if _key(one) not in map(_key, kept)), None):
        yield from _close_front(now, (yield from raise_window(now, other)))
        closed.append(other.title or other.app)
    return Done(f"these windows are closed: {', '.join(closed)}" if closed else "no other window is open")


def _close_front(now: Now, window: ShownWindow) -> Pursuit:
    attempt = yield Step.press(f"Close “{window.title or window.app}”.", "alt+f4", main=True)
    had = [_key(one) for one in attempt.scene.windows]

    def end() -> Done | None:
        have = [_key(one) for one in now.scene.windows]
        if had.count(_key(window)) > have.count(_key(window)):
            return Done(f"the window “{window.title or window.app}” is closed")
        asks = next((one for one in now.scene.windows if _key(one) not in had), None)
        came = now.effects_of(attempt).came
        if asks is None and not came:
            return None
        question = f"“{asks.title}”" if asks is not None and asks.title else ", ".join(came[:5])
        if not now.last:
            return Done(f"when I closed the window, it asked: {question}")
        raise StuckError(f"The window did not close; it asks first: {question}.")

    failed = "I tried to close the window, but it is still there."
    return (yield from surely(end, "The window is still there: wait.", failed))


def arrange(now: Now, goal: ArrangeWindow) -> Pursuit:
    """Bring a window to the front, change its state, or minimize all windows."""
    if goal.how == "show desktop" and not now.scene.windows:
        return Already("no window covers the desktop")
    missing = f"I see no window called “{goal.target}”." if goal.target else "I see no window."

    def is_large(window: ShownWindow) -> bool:
        size = now.scene.outline.size
        return window.box.width >= _LARGE * size.width and window.box.height >= _LARGE * size.height

    if goal.how == "maximize" and (large := [one for one in _named(now, goal.target)[:1] if is_large(one)]):
        return Already(f"“{large[0].title}” is maximized already")
    window = yield from _bring_to_front(now, goal.target, missing)
    if goal.how == "focus":
        return Done(f"“{window.title}” is in front")

    before = now.scene.windows

    def end() -> Done | None:
        shown = _again(window, before, now.scene.windows)
        if goal.how == "show desktop":
            return Done("the windows are minimized") if not now.scene.windows else None
        if goal.how == "minimize":
            return Done(f"the window “{window.title}” is not shown any more") if shown is None else None
        if shown is None or shown.box == window.box or (goal.how in ("maximize", "fullscreen") and not is_large(shown)):
            return None
        larger = shown.box.width * shown.box.height > window.box.width * window.box.height
        if larger is (goal.how == "unmaximize"):
            return None
        return Done(f"the window “{window.title}” is {shown.box.width}x{shown.box.height} now")

    common, own = _CHORDS[goal.how]
    chords = {"gnome": (common, own), "kde": (own,), "cinnamon": (own,)}.get(now.names.desktop or "", (common,))
    for chord in chords:
        yield Step.press(f"{goal.how.capitalize()} “{window.title}”.", chord, main=True)
        if done := (yield from until(end, "The window is as it was: wait.", 1, 0.5)):
            return done
    raise StuckError(f"I tried to {goal.how} the window “{window.title}”, but it is as it was.")


def is_tab_here(now: Now, name: str) -> bool:
    """Return whether a name is a tab's, and no window's."""
    return not _named(now, name) and now.finder.best(Target(name, "page tab"), _PAGES) is not None


def _bring_to_front(now: Now, name: str, missing: str, *, of_application: bool = False) -> Steps[ShownWindow]:
    """Bring a window to the front. `of_application`: accept the window in front if its application has the name.

    If several have the name, the person says which, unless this run opened one.
    """
    windows, front = _named(now, name), now.scene.front
    if not windows:
        raise StuckError(missing)
    if name and len(windows) > 1 and not (now.opened(name) and front in windows):
        choices = [f"“{one.title}” at {one.box.left},{one.box.top}" for one in windows]
        return (yield from raise_window(now, windows[(yield from now.pick(name, choices))]))
    if of_application and front and any(fit_of(text, name) >= WHOLE for text in (front.title, front.app)):
        return front
    return (yield from raise_window(now, windows[0]))


def raise_window(now: Now, window: ShownWindow) -> Steps[ShownWindow]:
    """Bring this window to the front."""
    count = len([one for one in now.scene.windows if one.app == window.app])
    for attempt in range(max(3, len(now.scene.windows) + 1)):
        same = [one for one in now.scene.windows if _key(one) == _key(window)]
        of_app = [one for one in now.scene.windows if one.app == window.app]
        if not same and len(of_app) == count:  # none is gone, so its title changed: the file in it was saved
            same = [one for one in of_app if one.box == window.box]
        if not same:
            raise StuckError(f"The window “{window.title}” is not there any more.")
        shown = next((one for one in same if one.box == window.box), same[0])
        if shown is now.scene.front:
            return shown
        yield to_front(now, shown, main=True, by_keys=attempt > 0)
    raise StuckError(f"I could not bring “{window.title}” to the front.")


def _key(window: ShownWindow) -> tuple[str, str]:
    return window.app, window.title


def _again(window: ShownWindow, before: Sequence[ShownWindow], now: Sequence[ShownWindow]) -> ShownWindow | None:
    """Return a window as it is now, also with another title; None if its application has fewer windows."""
    had, have = ([one for one in windows if one.app == window.app] for windows in (before, now))
    by_title = next((one for one in have if one.title == window.title), None)
    if by_title is not None or len(have) < len(had):
        return by_title
    return next((one for one in have if _key(one) not in map(_key, had)), None)


def _named(now: Now, name: str) -> list[ShownWindow]:
    """Return the windows of that name; the front window for no name."""
    if not name:
        return [now.scene.front] if now.scene.front is not None else []
    return next((found for one in now.names.of(name) if (found := now.scene.windows_named(one))), [])


def preferences_of(now: Now, name: str) -> ShownWindow | None:
    """Return the window of an application's preferences, if it is open."""
    titles = [title.casefold() for word in ("Preferences", "Settings") for title in now.names.of(word)]
    windows = (one for one in now.scene.windows if any(title in one.title.casefold() for title in titles))
    return next((one for one in windows if now.scene.is_of_program(one, name)), None)


def open_it(now: Now, goal: Open) -> OrGoal:
    """Open an application, a settings panel, a page, or an icon of that name."""
    name = goal.name
    menu = _SUBMENU.sub("", goal.inside) if not goal.kind else ""
    found = now.finder.best(Target(menu), {"menu"}) if menu else None
    if is_main_menu(goal.inside):
        return (yield from clicking.click(now, Click(Target(name, inside=goal.inside))))
    if found is not None and now.scene.in_front(found):
        return (yield from clicking.click(now, Click(Target(name, inside=menu))))
    running = now.scene.window_of_program(name)
    step = _in_open_menu(now, goal)
    own_window = goal.kind == "settings" and running is not None and running is now.scene.front  # it may show its name
    if step is None and not own_window:
        step = yield from _visible_in_front(now, goal)
    if goal.kind == "settings" and (shown := preferences_of(now, name)) is not None:
        return Done(f"“{(yield from raise_window(now, shown)).title}” is in front")
    its_own = goal.kind == "settings" and (running is not None or name.casefold() in lexicon.applications())
    if step is None and its_own:
        yield from open_it(now, Open(name, "application"))
        return Click(Target("Preferences"))
    if step is None and running is not None and not goal.anew and not goal.inside:
        front = yield from raise_window(now, running)
        return Done(f"{name} is open: “{front.title}” is in front")
    if step is None and goal.kind in ("", "application") and not _is_place(now, goal.inside):
        raise StuckError(f"I know no “{goal.inside}” in which “{name}” could be opened: leave it out, or say it after.")
    spoken = f"{name} settings" if goal.kind == "settings" and "setting" not in name.casefold() else name
    attempt = yield step or Step.start(f"Open “{name}”.", spoken, main=True)
    if attempt.action == "open" and attempt.failure is not None:
        return (yield from _by_sight(now, goal, attempt.failure))
    menus = [one for one in attempt.scene.elements if one.role == "menu" and now.clicked(attempt, one.box)]
    if attempt.action == "click" and (menus or attempt.scene.menu_is_open):  # a menu item need not open a window
        role = "" if attempt.scene.menu_is_open else "menu"
        return (yield from clicking.came_of(now, Click(Target(name, role)), attempt))
    came = lambda: _came(now, name, attempt)  # noqa: E731
    longer = f"“{name}” may need longer: wait."
    done = yield from until(came, longer, _MOST_WAITS, 2)
    if done is None and attempt.action == "click":
        icon = yield from now.the(Target(name), _ICONS)
        if icon is not None and now.scene.in_front(icon):
            words = f"A click on “{name}” opened nothing: double-click it."
            attempt = yield now.click(words, icon, "double_click")
            done = yield from until(came, longer, _MOST_WAITS, 2)
    if done is not None:
        return done
    effects = now.effects_of(attempt)
    if effects.altered or effects.came:
        return Done(f"I opened “{name}”, and nothing of that name is in front: {effects.words}", verified=False)
    raise StuckError(f"I started “{name}”, but no window appeared.")


def _is_place(now: Now, name: str) -> bool:
    """Return whether something can be opened in a place of that name; also True for no name."""
    known = not name or name.casefold() in lexicon.programs() or page_named(now, name) is not None
    return known or any(now.scene.named_window(one) is not None for one in now.names.of(name))


def _came(now: Now, name: str, attempt: Move) -> Done | None:
    """Check for the opened window or page; None for none yet."""
    window = _new_window(now, attempt)
    if window is not None and (message := _message(now, window)):
        raise StuckError(f"I opened “{name}”, and “{message}” appeared.")
    if (front := _of_application(now, name, attempt)) is not None:
        return Done(f"{name} is open: “{front.title or front.app}” is in front")
    if window is not None and window.title:  # a window without a title may be a message whose text comes later
        return Done(f"{name} is open: the window “{window.title}” opened")
    if (page := _page_of(now, name, attempt)) is not None:
        return Done(f"{name} is open: {called(page)} is shown")
    return None


def _message(now: Now, window: ShownWindow) -> str:
    """Return the text of a message window, which names a failure in its title or has one button; else ""."""
    if _FAILURE.search(window.title):
        return window.title
    inside = [one for one in now.scene.elements if one.app == window.app and now.scene.in_window(one, window)]
    texts = [one.name for one in inside if one.role == "label" and one.name]
    alone = not window.title and [one.role for one in inside].count("push button") == 1
    return " ".join(texts) if alone else ""


def question_since(now: Now, begun: int) -> str:
    """Return the text of a dialog that came by the last of the moves from the index `begun` on; "" for none."""
    attempt = next((one for one in reversed(now.moves[begun:]) if one.action not in ("open", "wait")), None)
    window = None if attempt is None else _new_window(now, attempt)
    if window is None or not window.dialog:
        return ""
    inside = [one for one in now.scene.elements if one.app == window.app and now.scene.in_window(one, window)]
    text = next((one.name for one in inside if one.role == "label" and one.name), window.title)
    return text if [one.role for one in inside].count("push button") > 1 else ""


def _new_window(now: Now, attempt: Move) -> ShownWindow | None:
    """Return a window that is new since an attempt; a window with a changed title does not count."""
    before = attempt.scene.windows
    had = {_key(window) for window in before}
    more = len(now.scene.windows) > len(before)
    apps = {window.app for window in before}
    return next((one for one in now.scene.windows if _key(one) not in had and (more or one.app not in apps)), None)


def _page_of(now: Now, name: str, attempt: Move) -> Element | None:
    """Return the evidence that a page is open: its new heading, or its selected row or tab."""

    def named(scene: Scene, roles: frozenset[str]) -> list[Element]:
        return [one for one in scene.shown(roles) if now.fits(one.name, name)]

    chosen = [one for one in named(now.scene, _PAGES) if "selected" in one.states]
    headings = named(now.scene, _HEADINGS)
    new = headings if len(headings) > len(named(attempt.scene, _HEADINGS)) else []
    return next(iter((*new, *chosen)), None)


def _of_application(now: Now, name: str, attempt: Move) -> ShownWindow | None:
    """Return the front window if it has that name, or if an application that ran already came to the front."""
    front, before = now.scene.front, attempt.scene.front
    if front is None:
        return None
    if any(now.scene.named_window(one, kinds=False) is front for one in now.names.of(name)):
        return front
    # The window's name may differ from the application's. Then the moved focus is the evidence.
    if before is None or attempt.action != "open" or _key(front) == _key(before):
        return None
    stayed = _key(before) in map(_key, now.scene.windows) and _key(front) in map(_key, attempt.scene.windows)
    return front if stayed else None


def _names_of(goal: Open) -> list[str]:
    """Return possible names: "View Options" may be a button or options, "the Zoom submenu" a menu."""
    bare = _SUBMENU.sub("", goal.name)
    longer = [f"{goal.name} {kind}" for kind in _SETTINGS] if goal.kind == "settings" else []
    return list(dict.fromkeys([*longer, goal.name, bare]))


def _in_open_menu(now: Now, goal: Open) -> Step | None:
    """Return a click on an item of the open menu, which takes precedence over applications."""
    if goal.inside or not now.scene.menu_is_open:
        return None
    for name in _names_of(goal):
        found = now.finder.best(Target(name), MENU_ITEMS)
        if found is not None and any(up.role in _MENUS for up in now.scene.parents(found)):
            return now.click(f"“{found.name}” is in the open menu: choose it.", found)
    return None


def _visible_in_front(now: Now, goal: Open) -> Steps[Step | None]:
    """Return a click on a row or icon of that name in the front window, unless this is the run's first goal."""
    if not now.earlier or goal.kind == "application":
        return None
    doubts = 0
    search = Search(now, Target(goal.name))
    while (front := now.scene.front) is not None:
        step = None
        for name in _names_of(goal):
            found = yield from now.the(Target(name, inside=front.title), CLICKABLE | TEXTS)
            if found is not None and now.scene.in_front(found):
                return now.click(f"“{name}” is visible in the window in front: open it there.", found)
            if now.finder.hidden(Target(name), CLICKABLE) is not None:
                step = search.to_offscreen(Target(name))
                break
            if now.finder.doubted(Target(name)) is not None and doubts < MOST_DOUBTS:
                doubts += 1
                step = Step.wait(f"“{name}” does not answer yet: wait and look again.")
                break
        if step is None:
            break
        search.latest = yield step
    return None


def _by_sight(now: Now, goal: Open, reason: str) -> Pursuit:
    """Click, then double-click, a visible icon or row of that name, because no application has it."""
    name = goal.name
    ways = {
        "click": f"No application is called “{name}”, but it is shown: click it.",
        "double_click": f"A click on “{name}” opened nothing: double-click it.",
    }
    for action, words in ways.items():
        shown = next(iter(now.finder.all(Target(name, inside=goal.inside), (CLICKABLE - SWITCHES) | TEXTS)), None)
        if shown is None:
            break
        attempt = yield now.click(words, shown.element, action, main=False)
        evidence = partial(_opened_since, now, name, attempt)
        if shows := (yield from until(evidence, f"“{name}” may need longer: wait.", 1)):
            return Done(f"“{name}” is open: {shows}")
    if _ABSENT.match(reason):
        raise StuckError(f"“{name}” is not installed, and you have no file or folder of that name.")
    raise StuckError(f"I could not open “{name}”: {reason or 'nothing has that name'}.")


def _opened_since(now: Now, name: str, move: Move) -> str:
    opened = [words for words in now.effects_of(move).windows if words.endswith("opened")]
    page = _page_of(now, name, move)
    return "; ".join(opened) or (f"{called(page)} is shown" if page is not None else "")
