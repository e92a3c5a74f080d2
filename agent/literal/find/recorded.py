"""Finds what a recipe recorded on a screen: by exactly its name and role, or by its picture, in its window."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.core.geometry import Region
from agent.literal.find.scene import CLICKABLE, FIELDS, TEXTS, Scene
from agent.literal.goals import DESKTOP, Target
from agent.literal.vocabulary.translations import Names
from agent.screen.nearby import near as texts_near
from agent.screen.outline import Element, ShownWindow

#: Roles of targets whose own role is not recorded, because only the words there were read.
_ANY = CLICKABLE | TEXTS | {"image", "panel", "table column header", "tree table", "paragraph"}


#: Most desktop units between a picture and the words that name it.
_BESIDE = 100


class Recorded:
    """Finds a recipe's targets and windows on one screen, by their names in the desktop's language."""

    def __init__(self, scene: Scene, names: Names) -> None:
        self._scene, self._names = scene, names

    def matching(self, target: Target, near: Sequence[str] = (), roles: frozenset[str] = frozenset()) -> list[Element]:
        """Return the elements of exactly a target's name and role in its window, visible or not.

        `near`: if not empty, one of these texts must be beside, above or around the element.
        """
        if target.picture:
            return self._named_and_alike(target) if target.name else self._looking_alike(target)
        inside = self.of_kind(target, roles, target.inside)
        if target.name:
            names = self._names.of(target.name)
            found = [
                one for one in inside if any(is_same(own, name) for own in (one.name, one.label) for name in names)
            ]
        else:
            found = [
                one for one in inside if not one.name.strip() and ("editable" in one.states or one.role not in FIELDS)
            ]
            found = [one for one in found if "focused" in one.states] or found
        texts = {_plain(name) for text in near for name in self._names.of(text)}
        return [
            one for one in found
            if not texts or any(_plain(text) in texts for text in texts_near(self._scene.elements, one))
        ]  # fmt: skip

    def of_kind(self, target: Target, roles: frozenset[str], window: str) -> list[Element]:
        """Return the elements of a target's role in a window; of any of `roles` if it has none."""
        wanted = frozenset({target.role}) if target.role else roles or _ANY
        return [one for one in self._scene.elements if one.role in wanted and self._is_in(one, window)]

    def windows(self, name: str) -> list[ShownWindow]:
        """Return the windows of a name."""
        return [one for one in self._scene.windows if self.is_named(one, name)]

    def covered(self, name: str) -> ShownWindow | None:
        """Return the only window of that name if it is not in front; None for no or several such windows."""
        windows = self.windows(name) if name else []
        return windows[0] if len(windows) == 1 and windows[0] is not self._scene.front else None

    def is_named(self, window: ShownWindow, wanted: str) -> bool:
        """Return whether a window has a name: its title, or its application."""
        return self._fits(window.title, window.app, wanted)

    def _named_and_alike(self, target: Target) -> list[Element]:
        """Return the elements like a target's picture that are nearest to its name; all if the name is not there."""
        alike = self._looking_alike(target)
        named = self.matching(replace(target, picture="", role=""))
        if not named:
            return alike
        apart = {one.id: min(_distance(one.box, other.box) for other in named) for one in alike}
        return [one for one in alike if apart[one.id] == min(apart.values()) <= _BESIDE]

    def _looking_alike(self, target: Target) -> list[Element]:
        """Return the nameless elements of a target's role that look like its picture; without a role, all places."""
        places = self._scene.places_of(target.picture)
        if target.role:
            nameless = [one for one in self.of_kind(target, frozenset(), target.inside) if not one.name.strip()]
            return [one for one in nameless if any(one.box.contains(place.middle) for place in places)]
        found = []
        for number, place in enumerate(places, 1):
            window = next((one for one in self._scene.windows if one.box.contains(place.middle)), None)
            title, app = (window.title, window.app) if window is not None else ("", "")
            element = Element(-number, "", "", place, window=title, app=app)
            if window in (None, self._scene.front) and self._is_in(element, target.inside):
                found.append(element)
        return found

    def _is_in(self, element: Element, window: str) -> bool:
        """Return whether an element is in the window of that name. If the front window has the name, only it counts."""
        front = self._scene.front
        if window == DESKTOP or (window.casefold() == DESKTOP and not self.windows(window)):
            return not (element.window or element.app or self._scene.is_covered(element))
        if not window or (front is not None and self.is_named(front, window)):
            listed = any((one.title, one.app) == (element.window, element.app) for one in self._scene.windows)
            popped_up = bool(window) and not listed and is_same(element.window, window)  # a list in its own window
            return self._scene.in_front(element) or popped_up
        if element.window or element.app:
            return self._fits(element.window, element.app, window)
        return any(self._scene.in_window(element, one) for one in self.windows(window))

    def _fits(self, title: str, app: str, wanted: str) -> bool:
        return is_same(app, wanted) or any(is_same(title, name) for name in self._names.of(wanted))


def is_same(text: str, wanted: str) -> bool:
    """Return whether two names are the same but for spaces and capitals; "*" stands for any text in a longer name."""
    have, want = _plain(text), _plain(wanted)
    if "*" in want and any(map(str.isalnum, want)):
        return re.fullmatch(".*".join(map(re.escape, want.split("*"))), have) is not None
    return bool(have) and have == want


def _distance(one: Region, other: Region) -> int:
    """Return the larger of the columns and rows between two boxes."""
    across = max(one.left, other.left) - min(one.right, other.right)
    return max(0, across, max(one.top, other.top) - min(one.bottom, other.bottom))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
