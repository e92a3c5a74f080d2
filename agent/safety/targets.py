"""Facts about the target of an action: its window, the window's edges, and the element that is hit or typed into."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache, lru_cache

from agent.core.actions import TYPING, Action, Click, Drag, HoldKeys, LongPress, PressKeys, TypeText, points_of
from agent.core.geometry import DesktopPoint, Region
from agent.core.roles import role_group
from agent.safety.addresses import is_script, leaves_site, shows_other_site
from agent.safety.situation import Fact, Place, Situation
from agent.safety.text import spelled
from agent.safety.words import is_drawn_apart, is_strange, plain, shipped_words
from agent.screen.outline import Element
from foundation.configs import load_config

TEXT_ROLES = role_group("texts")
_ONE_LINE = role_group("fields of one line")
#: Most height of a single-line field, in pixels.
_TALLEST_LINE = 64
MENU_ITEMS = role_group("menu items")
_SWITCHES = role_group("switches")
_BUTTONS = role_group("buttons")
_ROWS = role_group("rows")
_VALUES = role_group("values")
HOLDING = role_group("holding")
_SILENT = role_group("silent")
#: Where the close button can be, in pixels: distance from the window's side, and height of a title bar.
_CORNER, _TITLE_BAR = 56, 48
#: Facts that follow from an element's role, which a web page can set freely.
_OF_ROLES: frozenset[Fact] = frozenset(
    {"a text", "one line", "a long text", "a search", "a menu's title", "a switch", "a link", "a row", "a value"}
)
_PICTURES = frozenset({"image", "icon", "canvas", "link"})
_PRESSING = frozenset({"enter", "kp_enter", "space"})
#: States of elements that open or fold something. The opened content is judged by itself.
_OPENING = frozenset({"has popup", "expandable"})
#: Most height of a button in a page, in pixels; a taller element is a container.
_TALLEST_BUTTON = 120
#: Up to this many characters, typed text may as well be meant as shortcuts.
_SHORTEST_TEXT = 3
#: Most words of a search. A longer text may be a message, in a page's field that only claims to be for searches.
_LONGEST_SEARCH = 8
#: OCR words contradict a name if they have at least this many letters and a lower similarity than this.
_LEAST_READ, _ALIKE = 3, 0.6


def facts_of_place(action: Action[DesktopPoint], place: Place | None, seen: Situation) -> set[Fact]:
    """Return the facts that follow from the target of an action."""
    roles, texts = [one.role for one in seen.elements], [seen.words, *(one.name for one in seen.elements)]
    dialog = place if place is not None and place.dialog else None
    holds: dict[Fact, bool] = {
        "replaces text": bool(dialog and not is_page(dialog) and shipped_words("replaces text").found(dialog.title)),
        "a strange language": is_strange(seen.asked),
        "drawn apart": any(map(is_drawn_apart, texts)),
        "a switch": bool(roles) and all(role in _SWITCHES for role in roles),
        "a link": set(roles) == {"link"},
        "another address": any(shows_other_site(text, link_of(seen)) for text in texts),
        "another site": place is not None and leaves_site(link_of(seen), place.site),
        "opens choices": any(one.states & _OPENING for one in seen.elements[-1:]),
        "a row": bool(roles) and roles[-1] in _ROWS,
        "a value": bool(roles) and roles[-1] in _VALUES,
        "a dialog": dialog is not None,
        "a question": bool(seen.asked),
        "named in the question": any(_is_asked_about(seen.asked, one.name) for one in seen.elements),
        "a document": not seen.asked and _is_document(place),
        "nothing told": not seen.elements and not seen.words.strip(),
    }
    found = facts_of_focus(seen) | {fact for fact, is_so in holds.items() if is_so}
    if isinstance(action, TYPING):
        if not seen.elements:
            found.add("unknown focus")
        elif seen.elements[-1].role in _BUTTONS or link_of(seen):
            found |= _pressed(place, seen)
        # To an element that takes no text, a longer text is single keys, too. In lists of choices it finds one.
        keys = isinstance(action, TypeText) and bool(roles) and roles[-1] not in _VALUES and bool(action.text.strip())
        if (_is_short(action) or keys) and "a text" not in found:
            found.add("a bare letter")
            if dialog is not None:  # in dialogs, some toolkits accept mnemonics without alt
                found.add("mnemonic")
        if isinstance(action, PressKeys | HoldKeys) and is_mnemonic(frozenset(action.keys)):
            found.add("mnemonic")
        return found
    found -= {"one line", "a long text"}
    if isinstance(action, LongPress) or (isinstance(action, Click) and action.button == "left"):
        found |= _pressed(place, seen)
    if isinstance(action, Drag) and None not in (seen.origin, seen.under) and seen.origin != seen.under:
        found.add("another window")
    if set(roles) == {"menu"}:
        found.add("a menu's title")
    if place is not None and place.region is not None:
        for point in points_of(action):
            found |= _at_the_edge(point, place.region)
    return found


def _is_asked_about(question: str, caption: str) -> bool:
    """Whether a question has a button's caption among other words: "Close board?" and "Close"."""
    words = re.escape(plain(caption.strip(" .…")))
    asked = re.findall(r"[^.!?]+(?=[?？])", plain(question))
    return len(words) > 2 and any(re.search(rf"(?<!\w){words}(?!\w)", one) and one.strip() != words for one in asked)


@cache
def _group(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(one, re.IGNORECASE) for one in load_config("policies/default.toml")["groups"][name])


def is_browser(place: Place | None) -> bool:
    """Whether a window is a browser's."""
    return place is not None and (_is_of("browsers", place.app) or _is_of("browsers", place.title))


def is_page(place: Place | None) -> bool:
    """Whether a window shows third-party documents, such as web pages, which choose their elements' roles and names
    freely.
    """
    mail = place is not None and (_is_of("mailers", place.app) or _is_of("mailers", place.title))
    return mail or is_browser(place)


def _is_document(place: Place | None) -> bool:
    """Whether a window shows a document. Its title is a file, not a place: "bank statement.ods" is no bank."""
    if place is None or place.dialog or is_page(place):
        return False
    return _is_of("programs with documents", place.app) and _is_of("titles of documents", place.title)


@lru_cache(maxsize=128)
def _is_of(group: str, text: str) -> bool:
    return bool(text) and any(pattern.search(text) for pattern in _group(group))


def claimed_facts(action: Action[DesktopPoint], place: Place | None, seen: Situation) -> frozenset[Fact]:
    """Return the facts that rest on a page's word alone, for an action that presses something in the page."""
    editable = any("editable" in one.states for one in seen.elements)
    if not is_page(place):
        return frozenset()
    if isinstance(action, TypeText) or (editable and isinstance(action, PressKeys | HoldKeys)):
        sent = action.text if isinstance(action, TypeText) else seen.sent or seen.typed
        return frozenset({"a search"}) if len(sent.split()) > _LONGEST_SEARCH else frozenset()
    if isinstance(action, PressKeys | HoldKeys):
        return _OF_ROLES if _PRESSING & set(action.keys) else frozenset()
    # The middle button opens a link, but pastes into a field that claims to be one.
    return _OF_ROLES if editable else _OF_ROLES - {"a link"}


def named_elements(place: Place | None, seen: Situation, *, typing: bool) -> Iterator[Element]:
    """Yield the elements whose names count: no containers, and no text field that keys go to.

    In a page, only the size shows which elements are containers.
    """
    for element in seen.elements:
        if is_page(place):
            holds = element.box.height > _TALLEST_BUTTON or (typing and "editable" in element.states)
        else:
            holds = element.role in HOLDING or element.role.startswith("document")
            holds = holds or (typing and element.role in TEXT_ROLES)
        if not holds:
            yield element


def _pressed(place: Place | None, seen: Situation) -> set[Fact]:
    scripted = is_page(place) and (is_script(link_of(seen)) or _takes_clicks(seen))
    if scripted or any(one.role in _BUTTONS for one in seen.elements):
        texts = captions(seen, typing=seen.under is None)
        return {"a button"} if any(map(str.strip, texts)) else {"a button", "nameless"}
    if is_page(place) and _is_picture(seen):
        return {"a button", "nameless"}
    drawn = "drawn as a button" in seen.facts and not (place is not None and place.backdrop)
    if not drawn or not (is_page(place) or all(one.role in _SILENT for one in seen.elements)):
        return set()
    if seen.words.strip():
        return {"a button"}
    return {"a button", "nameless"} if place is not None and place.dialog else set()


def _takes_clicks(seen: Situation) -> bool:
    """Whether a small part of a page takes clicks itself, whatever its role. A row opens what it lists."""
    element = seen.elements[-1] if seen.elements else None
    if element is None or element.box.height > _TALLEST_BUTTON or takes_text(element):
        return False
    return "clickable" in element.states and element.role not in _ROWS


def _is_picture(seen: Situation) -> bool:
    """Whether a small element of a page shows a picture without any words, which may say anything."""
    element = seen.elements[-1] if seen.elements else None
    if element is None or seen.words.strip() or element.box.height > _TALLEST_BUTTON or takes_text(element):
        return False
    shows = element.role in _PICTURES or "clickable" in element.states
    return shows and not any((one.name or one.label).strip() for one in seen.elements)


def captions(seen: Situation, *, typing: bool) -> list[str]:
    """Return the captions of the pressed element: its name, or else the words written there.

    If the words on a button differ from its name, both are returned, because either may be false. In a page, every name
    counts separately, and so do the words, whatever they look like.
    """
    place = seen.focused if typing else seen.under
    if is_page(place):
        names = [one.name or one.label for one in named_elements(place, seen, typing=typing)]
        names = [name for name in names if name.strip()]
        read = "" if typing else seen.words
        return [*names, *([read] if read.strip() and not any(_says_all(name, read) for name in names) else [])]
    named = [one.name or one.label for one in seen.elements if one.role in _BUTTONS | _ROWS | _VALUES]
    element_names = [name for name in named if name.strip()]
    read = "" if typing else seen.words
    if element_names and ("drawn as a button" not in seen.facts or any(_is_like(name, read) for name in element_names)):
        return element_names
    return [*element_names, *([read] if read.strip() else [])]


def _is_like(name: str, read: str) -> bool:
    """Whether a name matches the OCR words, within OCR's accuracy. Signs and single letters are rarely read."""
    one, other = plain(name), plain(read)
    if sum(map(str.isalpha, other)) < _LEAST_READ:
        return True
    return one in other or other in one or SequenceMatcher(None, one, other).ratio() >= _ALIKE


def _says_all(name: str, read: str) -> bool:
    """Whether a name contains all that was read: "Cancel" does not contain all of "Cancel the other order"."""
    return plain(read) in plain(name) or (_is_like(name, read) and plain(name) not in plain(read))


def _at_the_edge(point: DesktopPoint, of: Region) -> set[Fact]:
    beside = min(abs(point.x - of.left), abs(point.x - of.left - of.width)) <= _CORNER
    if not beside:
        return set()
    if of.top - _TITLE_BAR <= point.y < of.top:
        return {"end of a title bar"}
    return {"corner of a window"} if of.top <= point.y < of.top + _TITLE_BAR else set()


def facts_of_focus(seen: Situation) -> set[Fact]:
    """Return the facts about the element that has the focus, or is hit."""
    focus = focus_of(seen)
    if focus is None or not takes_text(focus):
        return set()
    lists = ("searches",) if is_page(seen.focused or seen.under) else ("searches", "addresses")
    called = (focus.name, focus.label, focus.value or "")
    is_search = any(shipped_words(name).found(text) for name in lists for text in called)
    searches: set[Fact] = {"a search"} if is_search else set()
    one_line = (focus.role in _ONE_LINE or focus.role == "text") and "multi line" not in focus.states
    return {"a text", "one line" if one_line and focus.box.height <= _TALLEST_LINE else "a long text", *searches}


def link_of(seen: Situation) -> str:
    """Return the address of the link that is hit, or has the focus; "" if it is no link, or its address is unknown."""
    return next((one.value or "" for one in seen.elements[-1:] if one.role == "link"), "")


def focus_of(seen: Situation) -> Element | None:
    """Return the element that certainly receives typed text, or None."""
    return seen.elements[-1] if seen.elements else None


def takes_text(element: Element) -> bool:
    """Whether text can be typed into an element."""
    return element.role in TEXT_ROLES or "editable" in element.states


def is_mnemonic(keys: frozenset[str]) -> bool:
    """Whether a chord opens a menu or presses a button through its underlined letter."""
    rest = keys - {"alt", "altgr", "shift"}
    return bool(keys & {"alt", "altgr"}) and len(rest) == 1 and all(len(key) == 1 and key.isalnum() for key in rest)


def _is_short(action: Action[DesktopPoint]) -> bool:
    """Whether an action enters so few characters that they are more likely shortcuts than text."""
    text = spelled(action)
    return 0 < len(text) <= (_SHORTEST_TEXT if isinstance(action, TypeText) else 1) and not text.isspace()


def is_letter(action: Action[DesktopPoint]) -> bool:
    """Whether an action enters a single visible character."""
    return len(spelled(action)) == 1 and not spelled(action).isspace()
