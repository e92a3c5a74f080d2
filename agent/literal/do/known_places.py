"""Finds the place of a named thing in the tables, and checks whether the front window shows that place.

Of several things with the same name, the thing in the window or on the page that the person named counts.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from agent.core.changes import Change
from agent.literal.do.now import Move, Now
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import AMOUNTS, COMBOS, FIELDS, SWITCHES
from agent.literal.goals import Target
from agent.literal.vocabulary.lexicon import letters_of, plain, programs_of_kind
from agent.literal.vocabulary.places import Place, Setting, find_page, find_places, is_same_page, is_vague


def known_place(now: Now, target: Target, *, on: bool = True) -> Place | None:
    """Return the thing's place in the tables, else the page that the person named; None if neither is known.

    Of several things with the same name, the thing in the front window comes first. If the person named a window,
    things in other windows do not count.
    """
    desktop = now.names.desktop
    if desktop is None or not target.name or _is_on_page(now, target):
        return None
    names = dict.fromkeys(filter(None, (target.whole, target.name)))
    places = [place for name in names for place in find_places(name, desktop, on=on)]
    if target.here or (not target.inside and is_vague(target.whole or target.name)):
        places = [place for place in places if in_its_window(now, place)]
    if target.inside:
        places = [place for place in places if is_in(now, place, target.inside)]
    elif now.earlier and now.scene.front is not None:  # menu items of other applications are not meant
        is_here = _is_in_front(now, target.name)  # nor what has a name that the window of the earlier goal shows
        places = [one for one in places if in_its_window(now, one) or not (is_here or one.role == "check menu item")]
    shown = next((place for place in places if in_its_window(now, place)), None)
    return shown or next(iter(places), None) or page_named(now, target.inside)


def _is_on_page(now: Now, target: Target) -> bool:
    """Return whether the browser in front shows a control of that name: then it is meant, and not the desktop's."""
    if now.scene.front_of_kind("browser") is None or target.inside:
        return False
    found = now.finder.best(Target(target.name), SWITCHES | AMOUNTS | COMBOS | FIELDS)
    return found is not None and now.scene.in_front(found)


def _is_in_front(now: Now, name: str) -> bool:
    """Return whether the window in front shows a control or a heading of that name."""
    roles = SWITCHES | AMOUNTS | COMBOS | FIELDS | {"label", "heading", "panel", "table column header", "list", "table"}
    shown = (one for one in now.scene.shown(roles, without="") if one.source != "words" and now.scene.in_front(one))
    return any(fit_of(one.name.rstrip(":"), name) >= WHOLE for one in shown)


def is_in(now: Now, place: Place, name: str) -> bool:
    """Return whether a place is in the window, application, page or tab of that name."""
    around = (place.app, place.window, *place.path)
    names = (place.app, place.desktop_file.rpartition(".")[2])  # Files is Nautilus
    programs = {letters_of(one).removesuffix("settings") for one in names} - {""}  # its settings may be a program, too
    if programs.intersection((*programs_of_kind(name.casefold()), letters_of(name))):  # "the text editor", "Thunar"
        return True
    return any(fit_of(one, name) >= WHOLE or is_same_page(one, name) for label in around for one in now.names.of(label))


def in_its_window(now: Now, place: Place) -> bool:
    """Return whether the front window is the window that contains a place."""
    front = now.scene.front
    return front is not None and any(now.scene.named_window(name) is front for name in now.names.of_window(place))


def settings_of(now: Now, place: Place | None, since: Move) -> Iterator[tuple[Change, Setting]]:
    """Yield the settings of a place, and its files of settings ("file */helpers.rc"), that changed since a step."""
    settings = place.settings if place is not None else ()
    changed = [(change.what, change) for change in now.changed_since(since, "setting")]
    changed += [(f"file {change.what}", change) for change in now.changed_since(since, "file")]
    for what, change in changed:
        yield from ((change, setting) for setting in settings if fnmatchcase(what, setting.what))


def shows(now: Now, place: Place) -> bool:
    """Return whether a place's window is in front and no other of its tabs is selected."""
    names = {plain(one) for label in place.path for one in now.names.of(label)}
    hidden = any(plain(one.name) in names for one in now.scene.shown({"page tab"}, without="selected"))
    return not hidden and (
        not now.scene.windows
        or not place.app
        or in_its_window(now, place)
        or shows_page(now, place)
        or shows_dialog(now, place)
    )


def targets_of(target: Target, place: Place | None) -> list[Target]:
    """Return the target as the person named it, then as the tables name it."""
    targets = [target]
    if place is not None and place.control:
        targets.append(Target(place.control, under=place.under or target.under, inside=target.inside))
    elif place is not None and place.role and place.under and place.role != "radio button":  # each has its own name
        inside = target.inside or (place.window if place.role == "push button" else "")  # no launcher of a panel
        targets.append(Target(role=place.role, under=place.under, inside=inside))
    return targets


def page_named(now: Now, name: str) -> Place | None:
    """Return the page of that name in the tables, unless a window has the name."""
    if not name or now.names.desktop is None or any(now.scene.named_window(one) for one in now.names.of(name)):
        return None
    return find_page(name, now.names.desktop, now.names.of)


def shows_dialog(now: Now, place: Place) -> bool:
    """Return whether the dialog at the end of a place's path is in front."""
    front, windows = now.scene.front, [now.scene.named_window(name) for name in now.names.of_window(place)]
    of_app = front is not None and any(one is not None and one.app == front.app for one in windows)
    return of_app and front is not None and bool(place.path) and now.fits(front.title, place.path[-1])


def shows_page(now: Now, place: Place) -> bool:
    """Return whether the front window shows a place's page, by its heading."""
    names = now.names.of_window(place)
    headings = (one for one in now.scene.shown({"label", "heading"}, without="") if one.source != "words")
    return any(fit_of(one.name, name) >= WHOLE for one in headings for name in names)
