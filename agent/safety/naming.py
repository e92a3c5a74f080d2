"""Names the target of an action as users know it: click “Appearance” · Settings, not click at 412,305.

Names come from the screen and are untrusted. If an element's name differs from the words written on it, both are shown,
because either may be false.
"""

from collections.abc import Collection
from dataclasses import dataclass

from agent.core.actions import TYPING, Action, Drag, OpenApp, TypeText, VisitPage, describe, points_of
from agent.core.geometry import DesktopPoint, Region
from agent.core.roles import role_group
from agent.safety.situation import Situation
from agent.safety.text import one_line
from agent.screen.outline import Element

#: Longest name of an element, and of a window, in characters.
_LONGEST_NAME, _LONGEST_WINDOW = 40, 36
_CONTAINERS = role_group("containers")


@dataclass(frozen=True, slots=True)
class Aim:
    """The target of an action, as far as it is known."""

    #: the names of the targets at its points, in their order, or of the field that receives the text; "" if unknown
    names: tuple[str, ...] = ()
    window: str = ""  # the title of the window, or the application if there is no title
    box: Region | None = None  # the region of that window
    field: Region | None = None  # the region of the field that receives the text
    app: str = ""  # the class of the window's application


def aim_of(action: Action[DesktopPoint], situation: Situation) -> Aim:
    """Return what is known about the target of an action."""
    if isinstance(action, OpenApp | VisitPage):
        return Aim()
    known, field = situation.elements, None
    place = situation.focused if isinstance(action, TYPING) else situation.under
    names: tuple[str, ...] = ()
    if isinstance(action, TYPING):
        fields = [one for one in known[-1:] if one.role not in _CONTAINERS]
        names = tuple(_quoted(one.name or one.label) for one in fields)
        field = fields[0].box if fields else None
    elif isinstance(action, Drag):  # a single element or word could belong to either end
        both = len(known) == 2 and action.start is not None
        names = tuple("" if one.role in _CONTAINERS else _name(one, "") for one in known) if both else ()
    elif points_of(action):
        names = (_name_at(situation),)
    title, app, box = ("", "", None) if place is None else (place.title or place.app, place.app, place.region)
    window = title or next((one.window for one in known if one.window), "")
    app = app or next((one.app for one in known if one.app), "")
    return Aim(names, one_line(window, _LONGEST_WINDOW), box, field, one_line(app, _LONGEST_WINDOW))


def named(action: Action[DesktopPoint], aim: Aim) -> str:
    """Describe an action with names for its targets: double-click “notes.txt” · Documents."""
    words = describe(action, aim.names)
    if isinstance(action, TypeText) and aim.names and aim.names[-1]:
        words = f"{words} into {aim.names[-1]}"
    return f"{words} · {aim.window}" if aim.window else words


def unplaced(action: Action[DesktopPoint]) -> str:
    """Describe an action before its target is known: click …; users cannot place coordinates."""
    return describe(action, ["…"] * len(points_of(action)))


def nameless(elements: Collection[Element]) -> bool:
    """Whether no element that would be hit has a name, so that only the words written there can name it."""
    return not any(one.role not in _CONTAINERS and (one.name or one.label) for one in elements)


def _name_at(situation: Situation) -> str:
    """Return the name of the target at the point, as the tree reports it now, or else as the model saw it."""
    candidates = [one for one in (*situation.elements[-1:], situation.described) if one and one.role not in _CONTAINERS]
    element = next((one for one in candidates if one.name or one.label), next(iter(candidates), None))
    words, at = situation.words.splitlines()[-1:], situation.words_at
    beside = element is not None and at is not None and not element.box.contains(at)
    return _name(element, "" if beside else "".join(words))


def _name(element: Element | None, read: str) -> str:
    """Return the target at a point: its name, the words there, both if they differ, or its role."""
    written = one_line(read, _LONGEST_NAME)
    if element is None:
        return _quoted(written)
    called = one_line(element.name or element.label, _LONGEST_NAME)
    if not called:
        return _quoted(written) or f"the {one_line(element.role, _LONGEST_NAME)}"
    if written and called.casefold() not in written.casefold() and written.casefold() not in called.casefold():
        return f"{_quoted(written)} ({one_line(element.role, _LONGEST_NAME)} {_quoted(called)})"
    return _quoted(called)


def _quoted(name: str) -> str:
    line = one_line(name, _LONGEST_NAME).replace("“", "‘").replace("”", "’")
    return f"“{line}”" if line else ""
