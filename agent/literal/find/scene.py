"""The screen as the engine sees it: elements with their windows, labels and neighbours."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from agent.core.geometry import Region
from agent.core.roles import role_group
from agent.literal.vocabulary.lexicon import letters_of, plain, programs_of_kind
from agent.screen.outline import Element, Outline, ShownWindow
from agent.screen.picture_search import places_of

if TYPE_CHECKING:
    from PIL.Image import Image

SWITCHES = role_group("what is on or off")
AMOUNTS = role_group("numbers")
FIELDS = role_group("what takes text")
COMBOS = role_group("what opens choices")
CHOICES = role_group("choices")
MENU_ITEMS = role_group("menu items")
BUTTONS = role_group("what is pressed")
CLICKABLE = SWITCHES | AMOUNTS | FIELDS | COMBOS | CHOICES | MENU_ITEMS | BUTTONS
#: Roles of plain text.
TEXTS = role_group("plain texts")
#: Roles of rows in a list, which contain other elements.
ROWS = role_group("rows of a list")
#: Words in the names of applications that only name their desktop.
_OF_DESKTOPS = frozenset({"xfce", "xfce4", "gnome", "mate", "kde", "org", "settings"})
#: Largest distance of a label from its control, in heights of the label.
_FAR = 34


class Scene:
    """An outline, with the lookups that the engine needs. `picture` returns the screenshot."""

    def __init__(self, outline: Outline, picture: "Callable[[], Image] | None" = None) -> None:
        self.outline = outline
        self.windows = outline.windows
        self.elements = outline.elements
        self._picture = picture
        self._places: dict[str, list[Region]] = {}

    def places_of(self, picture: str) -> list[Region]:
        """Return where the screen looks like a small picture."""
        if picture not in self._places:
            shot = self._picture() if self._picture is not None else None
            self._places[picture] = [] if shot is None else places_of(picture, shot, self.outline.size)
        return self._places[picture]

    @cached_property
    def by_id(self) -> dict[int, Element]:
        """The elements by their ids."""
        return {element.id: element for element in self.elements}

    @cached_property
    def front(self) -> ShownWindow | None:
        """The focused window, or else the topmost."""
        return next((window for window in self.windows if window.active), next(iter(self.windows), None))

    @property
    def has_tree(self) -> bool:
        """Whether there are elements from another source than OCR."""
        return any(element.source != "words" for element in self.outline.elements)

    @property
    def has_words(self) -> bool:
        """Whether OCR has read the screen, too."""
        return any(element.source != "tree" for element in self.elements)

    @property
    def is_late(self) -> bool:
        """Whether the front window may still report its elements, because it is busy or was just opened."""
        has_elements = any(element.source != "words" and self.in_front(element) for element in self.outline.elements)
        return (bool(self.outline.lacks) or self.has_tree) and not has_elements and self.front is not None

    def in_front(self, element: Element) -> bool:
        """Return whether an element belongs to the front window or one of its menus."""
        front = self.front
        if front is None:
            return True
        if element.source == "words" and not element.window:
            return front.box.contains(element.box.middle)
        if element.window != front.title or (element.app and front.app and element.app != front.app):
            return False
        # If two windows have the same title, only the position shows the element's window.
        twins = sum((one.title, one.app) == (front.title, front.app) for one in self.windows)
        return twins < 2 or front.box.contains(element.box.middle)

    def in_window(self, element: Element, window: ShownWindow) -> bool:
        """Return whether an element belongs to a window."""
        if element.window:
            return element.window == window.title and element.app in ("", window.app)
        return window.box.contains(element.box.middle)

    def shown(self, roles: Collection[str] = (), without: str = "offscreen") -> list[Element]:
        """Return the elements of these roles, or of any, in the front window that do not have a state."""
        among = (one for one in self.elements if (not roles or one.role in roles) and without not in one.states)
        return [one for one in among if self.in_front(one)]

    def is_on_panel(self, element: Element) -> bool:
        """Return whether a button or text is in no window, as on a panel or dock."""
        is_plain = element.role in ("push button", "toggle button") or element.role in TEXTS
        return is_plain and not any(self.in_window(element, window) for window in self.windows)

    def is_covered(self, element: Element) -> bool:
        """Return whether a window lies over an element of the desktop itself."""
        return any(window.box.contains(element.box.middle) for window in self.windows)

    def parents(self, element: Element) -> Iterable[Element]:
        """Yield the ancestors of an element, the innermost first."""
        seen = {element.id}
        while element.parent is not None and element.parent not in seen and element.parent in self.by_id:
            element = self.by_id[element.parent]
            seen.add(element.id)
            yield element

    @cached_property
    def _children(self) -> dict[int, list[Element]]:
        found: dict[int, list[Element]] = {}
        for element in self.elements:
            if element.parent is not None:
                found.setdefault(element.parent, []).append(element)
        return found

    def within(self, element: Element) -> list[Element]:
        """Return the descendants of an element in tree order."""
        inside: list[Element] = []
        for child in self._children.get(element.id, ()):
            inside += [child, *self.within(child)] if child.id != element.id else []
        return inside

    @cached_property
    def texts(self) -> list[Element]:
        """Plain texts that are not empty."""
        return [element for element in self.elements if element.role in TEXTS and element.name.strip()]

    @cached_property
    def _labelling(self) -> list[Element]:
        """Texts, check boxes and radio buttons that may label the control beside them: "Custom DPI setting:"."""
        marked = [one for one in self.elements if one.role in ("check box", "radio button") and one.name.strip()]
        return [*self.texts, *marked]

    def text_of(self, element: Element) -> str:
        """Return an element's name, else its label, else the text beside it in its row."""
        return element.name.strip() or element.label.strip() or self._beside(element)

    def titles_of(self, element: Element) -> list[str]:
        """Return an element's possible names. The text beside it counts if it shows a value or has no name."""
        titles = [title for title in (element.name.strip(), element.label.strip()) if title]
        if element.role in AMOUNTS | FIELDS | COMBOS or not titles:
            titles.append(self._beside(element))
        return [title for title in titles if title]

    def _beside(self, element: Element) -> str:
        """Return the nearest text in the same row, preferably on the left; "" for none."""
        best: tuple[float, str] | None = None
        beside = self._labelling if element.role in AMOUNTS | COMBOS | FIELDS else self.texts
        rows = element.role in ROWS and next((up for up in self.parents(element) if up.role not in ROWS), None)
        for text in beside:
            if rows and not rows.box.contains(text.box.middle):
                continue  # text in the pane beside a list does not name a row of the list
            in_one = not text.window or not element.window or (text.window, text.app) == (element.window, element.app)
            if not in_one or not same_row(text.box, element.box):
                continue
            if element.role in ROWS and element.box.contains(text.box.middle):
                continue  # one of several texts inside the row, none of which is its name
            if element.role in AMOUNTS | FIELDS and text.source == "words" and element.box.contains(text.box.middle):
                continue  # what stands in a field is no name of it
            gap = gap_between(text.box, element.box)
            cost = gap if text.box.left < element.box.left else gap + 40
            near = gap <= _FAR * max(text.box.height, 12)
            if text.box.left > element.box.left and self._names_another(text, element):
                continue
            if near and text.id != element.id and not self._between(text, element):
                best = min(best or (cost, text.name), (cost, text.name))
        return best[1].strip() if best else ""

    def _names_another(self, text: Element, element: Element) -> bool:
        """Return whether a text is the name of another control in its row."""
        return any(
            text.name.strip() in (other.name.strip(), other.label.strip()) and same_row(other.box, text.box)
            for other in self.elements
            if other.role in CLICKABLE and other.id not in (text.id, element.id)
        )

    def _between(self, text: Element, element: Element) -> bool:
        """Return whether another control is between a text and a control, so that the text belongs to the other."""
        left, right = sorted((text.box, element.box), key=lambda box: box.left)
        return any(
            other.role in CLICKABLE
            and other.id not in (text.id, element.id)
            and same_row(other.box, element.box)
            and left.right <= other.box.left
            and other.box.right <= right.left
            for other in self.elements
        )

    def named_window(self, name: str, *, kinds: bool = True) -> ShownWindow | None:
        """Return the topmost window with that title or application, or with `kinds` of that kind of application."""
        return next(iter(self.windows_named(name, kinds=kinds)), None) if plain(name) else self.front

    def windows_named(self, name: str, *, kinds: bool = True) -> list[ShownWindow]:
        """Return all windows that fit a name equally well, the topmost first. See `named_window`."""
        wanted = plain(name)
        fits: list[Callable[[ShownWindow], bool]] = [
            lambda one: wanted in (plain(one.title), plain(one.app)),
            lambda one: _holds(one.title, wanted),
            lambda one: _holds(re.sub(r"[*/\\]+", " ", one.title), wanted),  # "*~/Notes/a.txt - Mousepad"
            lambda one: _holds(re.sub(r"[-._]", " ", one.app), wanted),
            lambda one: kinds and _is_of_kind(one, wanted),
            lambda one: plain(one.title) == re.sub(r" (?:settings|preferences)$", "", wanted),  # "the desktop settings"
        ]
        found = ([one for one in self.windows if wanted and fit(one)] for fit in fits)
        return next(filter(None, found), [])

    def window_of_program(self, name: str) -> ShownWindow | None:
        """Return the topmost window of the application of that name, or of that kind of application."""
        return next((one for one in self.windows if self.is_of_program(one, name)), None)

    @staticmethod
    def is_of_program(window: ShownWindow, name: str) -> bool:
        """Return whether a window is one of the application of that name, or of that kind of application."""
        return _program(window) == plain(name) or _is_of_kind(window, plain(name))

    def front_of_kind(self, kind: str) -> ShownWindow | None:
        """Return the front window if its application is of a kind, such as "text editor"."""
        return self.front if self.front is not None and _is_of_kind(self.front, kind) else None

    @cached_property
    def menu_is_open(self) -> bool:
        """Whether a menu is open and shows its items. OCR words do not count as items."""
        return any(
            element.role in MENU_ITEMS
            and "offscreen" not in element.states
            and any(parent.role in ("menu", "popup menu") for parent in self.parents(element))
            for element in self.outline.elements
        )


def _program(window: ShownWindow) -> str:
    """Return an application's name without the desktop's: "xfce4-terminal" is "terminal"."""
    return " ".join(word for word in re.split(r"[-._ ]", plain(window.app)) if word not in _OF_DESKTOPS)


def _is_of_kind(window: ShownWindow, wanted: str) -> bool:
    """Return whether the window's application is of the wanted kind, such as "text editor"."""
    programs = programs_of_kind(wanted)
    return bool(window.app) and letters_of(window.app).endswith(programs) if programs else False


def _holds(text: str, wanted: str) -> bool:
    return holds(plain(text).split(), wanted.split())


def holds(have: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether words contain other words in sequence."""
    return bool(words) and any(have[at : at + len(words)] == words for at in range(len(have) - len(words) + 1))


def same_row(one: Region, other: Region) -> bool:
    """Return whether two boxes are side by side: the smaller one's centre is within the taller one's height."""
    low, high = sorted((one, other), key=lambda box: box.height)
    return high.top <= low.middle.y < high.bottom


def gap_between(one: Region, other: Region) -> int:
    """Return the columns between two boxes, 0 if they overlap horizontally."""
    return max(0, max(one.left, other.left) - min(one.right, other.right))
