"""The effects of an action: the differences in elements, windows and settings before and after it.

Changed pixels, tooltips, highlights and the clock in a panel are no effects.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.changes import Change
from agent.core.roles import role_group
from agent.literal.find.scene import CLICKABLE, MENU_ITEMS, TEXTS, Scene
from agent.literal.vocabulary.lexicon import plain
from agent.screen.outline import Element

_FLEETING = role_group("fleeting")
#: Kinds of changes that show what an action did.
SHOWING = frozenset({"setting", "file", "clipboard"})
#: States of the control itself, as opposed to focus or hover.
_TELLING = frozenset({"checked", "selected", "expanded", "pressed", "disabled", "indeterminate"})
#: Roles that are selected rather than switched on.
_CHOSEN = frozenset({"list item", "table cell", "tree item", "page tab", "icon", "table row"})
#: Largest width of a table cell with a check box, in pixels.
_TICK = 40
#: If only OCR words are known, this many new texts mean a new page.
_PAGE_OF_WORDS = 3
#: Most names listed as evidence.
_TOLD = 4


@dataclass(frozen=True, slots=True)
class Effects:
    """The differences between two observations; falsy if there are none."""

    changes: tuple[str, ...] = ()  # settings, files, clipboard
    windows: tuple[str, ...] = ()  # that opened or closed
    altered: tuple[str, ...] = ()  # controls with another state or value
    came: tuple[str, ...] = ()  # names of elements that appeared
    gone: tuple[str, ...] = ()  # names of elements that disappeared

    def __bool__(self) -> bool:
        return bool(self.changes or self.windows or self.altered or self.came or self.gone)

    @property
    def words(self) -> str:
        """Return the strongest evidence in words."""
        if strongest := self.changes or self.windows or self.altered:
            return "; ".join(strongest[:_TOLD])
        both = (("came", self.came[:_TOLD]), ("went", self.gone[:_TOLD]))
        return "; ".join(f"there {verb} {', '.join(f'“{name}”' for name in names)}" for verb, names in both if names)


#: Titles of windows that are not ready yet.
_LOADING = frozenset({"", "loading…", "loading..."})


def effects(before: Scene, now: Scene, changed_before: Sequence[Change], changed_now: Sequence[Change]) -> Effects:
    """Return the differences between two observations."""
    changes = _of_settings_and_files(changed_before, changed_now)
    loading = {one.app for one in before.windows if one.title.strip().casefold() in _LOADING}
    windows_of = ([one for one in scene.windows if one.app not in loading] for scene in (before, now))
    had, have = (Counter(f"“{one.title or one.app}”" for one in windows) for windows in windows_of)
    came, gone = have - had, had - have
    marked = {name: old for name in came for old in gone if _bare(name) == _bare(old)}  # as with unsaved changes
    windows = (
        *(f"the window {old} is called {name} now" for name, old in marked.items()),
        *(f"the window {name} opened" for name in came if name not in marked),
        *(f"the window {name} is not shown any more" for name in gone if name not in marked.values()),
    )
    old, new = _concerned(before, now), _concerned(now, before)
    silent, late = _silent(before, now), _silent(now, before)
    old = [one for one in old if (one.window, one.app) not in silent]
    # What a window reports for the first time is no effect, nor what it shows once it is loaded.
    new = [one for one in new if (one.window, one.app) not in late and one.app not in loading]
    altered = _altered(old, new)
    arrived, left = _difference(*([one for one in elements if one.source != "words"] for elements in (old, new)))
    items = {" ".join(element.name.split())[:60] for element in old if element.role in MENU_ITEMS}
    left = tuple(name for name in left if name not in items)  # a closing menu is no effect
    if not arrived and not left and not silent and before.has_words:
        arrived, left = _difference(old, new)
        if len(arrived) < _PAGE_OF_WORDS:  # OCR may read a word or two differently at any time
            arrived, left = (), ()
    return Effects(changes, windows, altered, arrived, left)


def _bare(title: str) -> str:
    return title.strip("“”*• ")


def _silent(before: Scene, now: Scene) -> set[tuple[str, str]]:
    """Return the windows of both observations that report elements in the first only: their application is busy."""
    reporting, still_reporting = (
        {(one.window, one.app) for one in scene.elements if one.source != "words"} for scene in (before, now)
    )
    return {(one.title, one.app) for one in now.windows} & (reporting - still_reporting)


def new_changes(before: Sequence[Change], now: Sequence[Change]) -> list[Change]:
    """Return the changes that were not known before."""
    known = {(change.kind, change.what, change.after) for change in before}
    return [one for one in now if (one.kind, one.what, one.after) not in known]


def _of_settings_and_files(before: Sequence[Change], now: Sequence[Change]) -> tuple[str, ...]:
    """Return the new changes of settings, files and the clipboard, in words. Windows are compared separately."""
    words = [str(one) for one in new_changes(before, now) if one.kind in SHOWING]
    left = {(change.kind, change.what) for change in now}
    gone = [one for one in before if (one.kind, one.what) not in left and one.kind in ("setting", "file")]
    return (*words, *(f"{one.what} is as it was" for one in gone))


def _concerned(scene: Scene, other: Scene) -> list[Element]:
    """Return the elements in windows that do not come and go by themselves; a panel's clock is left out, too."""
    apps = {window.app for window in (*scene.windows, *other.windows)}
    return [
        element
        for element in scene.elements
        if (element.app in apps or (element.source == "words" and not element.app))
        and not any(one.role in _FLEETING for one in (element, *scene.parents(element)))
    ]


def _key(element: Element) -> tuple[str, str, str]:
    editable = "editable" if "editable" in element.states else ""  # of two fields without a name, one may only show
    return (f"{element.role} {editable}", plain(element.name) or plain(element.label), element.window)


def _altered(old: Sequence[Element], new: Sequence[Element]) -> tuple[str, ...]:
    """Describe controls that occur once in both observations and changed their state or value."""
    counted = Counter(map(_key, old)), Counter(map(_key, new))
    known = {_key(element): element for element in old if counted[0][_key(element)] == 1}
    descriptions = []
    for element in new:
        key = _key(element)
        was = known.get(key)
        if was is None or counted[1][key] != 1 or element.role in TEXTS:
            continue
        if element.role in MENU_ITEMS and is_on(element) == is_on(was):
            continue  # a closing menu is no effect
        if element.states & _TELLING != was.states & _TELLING:
            descriptions.append(state_of(element))
        elif element.value != was.value:
            descriptions.append(f"{called(element)} holds “{' '.join((element.value or '').split())[:60]}”")
    return tuple(descriptions)


def _difference(old: Sequence[Element], new: Sequence[Element]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that appeared and the names that disappeared."""
    before, now = _names(old), _names(new)
    return tuple((now - before).keys()), tuple((before - now).keys())


def _names(elements: Sequence[Element]) -> "Counter[str]":
    names = ((one, " ".join(one.name.split())) for one in elements if "offscreen" not in one.states)
    # Chromium adds "Memory usage - 33 MB" to the name of a tab, at any time.
    shown = [(one.role, name.partition(" - ")[0] if one.role == "page tab" else name) for one, name in names]
    return Counter(name[:60] for role, name in shown if sum(map(str.isalnum, name)) >= (1 if role in CLICKABLE else 3))


def state_of(element: Element) -> str:
    """Describe a control and its state."""
    on = is_on(element)
    states = sorted(element.states & _TELLING - ({"disabled"} if on is not None else set()))
    if on is False and not states:
        return f"{called(element)} is {'not selected' if element.role in _CHOSEN else 'off'}"
    return f"{called(element)} is {' and '.join(states) or 'as it is by itself'}"


def called(element: Element) -> str:
    """Return an element's role and name in words."""
    name = " ".join((element.name or element.label).split())
    return f"the {element.role or 'text'} “{name[:60]}”" if name else f"the {element.role or 'text'}"


def is_on(element: Element) -> bool | None:
    """Return whether a control is on; None if it does not report that."""
    if element.role in ("toggle button", "check box", "switch", "radio button", "check menu item", "radio menu item"):
        return bool(element.states & {"checked", "pressed"})
    if element.role == "push button" and "pressed" in element.states:  # GTK 4 reports toggle buttons this way
        return True
    if is_tick(element):
        return "checked" in element.states
    if element.role in _CHOSEN:
        return "selected" in element.states
    return None


def is_tick(element: Element) -> bool:
    """Return whether an element may be the check box in a row: a small cell without a name."""
    return element.role == "table cell" and not element.name.strip() and element.box.width <= _TICK
