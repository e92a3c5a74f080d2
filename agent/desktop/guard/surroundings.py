"""Looks at the desktop for the policy: which window gets an action, and what is written where it points.

The windows and their classes come from the desktop, and the captions from the screen. Neither the model nor a web page
that talks to it can forge them. (A page does choose its window's title, so titles can only make the policy ask.)
"""

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.core.actions import TOUCHING, TYPING, Action, Click, KeyAction, LongPress, OpenApp, Scroll, VisitPage
from agent.core.geometry import DesktopPoint
from agent.core.roles import role_group
from agent.desktop.guard.reach import Reach
from agent.desktop.guard.sources import Sources
from agent.desktop.guard.targets import Hit, Judged, Meant, aims, leads_away, sight
from agent.desktop.protocol.desktop import Applications
from agent.desktop.protocol.elements import FieldText, OpenElements
from agent.desktop.protocol.windows import Window, WindowId
from agent.safety.addresses import site_of
from agent.safety.commands import after_prompt
from agent.safety.input_history import InputHistory
from agent.safety.naming import nameless
from agent.safety.situation import UNKNOWN, Fact, Place, Sense, Situation
from agent.safety.targets import TEXT_ROLES, facts_of_focus, is_page, takes_text
from agent.safety.text import spelled
from agent.safety.words import harmless_buttons, shipped_words
from agent.screen.capture import Screen
from agent.screen.outline import Element

_DRAWN: frozenset[Fact] = frozenset({"drawn as a button"})
_UNREAD: frozenset[Fact] = frozenset({"unread field"})
_MASKED = "password text"
#: Width and height in desktop units. A larger dialog is more than a question, and its text is not read.
_LARGEST_QUESTION = (760, 420)
#: Roles of elements that answer no question when they are pressed.
_NO_ANSWERS = role_group("no answers")


class DesktopSurroundings:
    """Examines the desktop for the policy. May block: used from the thread that captures.

    `languages` are tesseract's names of the languages on the screen, and `untold` is what this desktop never provides.
    """

    def __init__(
        self,
        screen: Screen,
        applications: Applications,
        reach: Reach,
        open_elements: OpenElements = lambda: None,
        languages: Sequence[str] = ("eng",),
        untold: frozenset[Sense] = frozenset(),
    ) -> None:
        self._untold = untold
        self._applications = applications
        self._reach = reach
        self._sources = Sources(screen, reach, open_elements, languages)
        self._clicked: tuple[WindowId | None, tuple[Element, ...]] = (None, ())
        self._history: InputHistory | None = None  # created with the first action, when the windows are known
        self._meant = Meant()

    @property
    def meant(self) -> Meant:
        """Where the last action was meant to go. Read by the hand's thread."""
        return self._meant

    def saw(self) -> None:
        """Note that the model now sees the screen: its next action is meant for these windows."""
        self._sources.connect(check=False)
        seen = self._sources.windows(lambda known: sight(known, self._reach))
        self._meant = replace(self._meant, seen=seen)

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """Return what is known about an action's target. Never raises for what cannot be found out."""
        self._meant = Meant(self._meant.seen)
        if not isinstance(action, TOUCHING):
            return UNKNOWN
        known = self._sources.connect()
        if self._history is None:
            open_windows = self._sources.windows(lambda windows: windows.windows()) or []
            self._history = InputHistory(frozenset(window.id for window in open_windows))
        if isinstance(action, OpenApp | VisitPage):
            seen, window = self._of_opening(action), None
        elif isinstance(action, TYPING):
            seen, window = self._of_typing(action, known)
            seen = replace(seen, default=self._default(action, seen, window))
        else:
            seen, window = self._of_pointing(action, known)
        return self._history.judge(action, replace(seen, lost=self._sources.lost, untold=self._untold), window)

    def did(self, action: Action[DesktopPoint]) -> None:
        """Note that the action judged last was carried out, possibly as the person changed it."""
        if self._history is not None:
            self._history.did(action)

    def pointer(self) -> DesktopPoint | None:
        """Return where the pointer is; None if the desktop does not say."""
        self._sources.connect(check=False)
        at = self._sources.windows(lambda known: known.pointer())
        return None if at is None else DesktopPoint(*map(float, at))

    def news(self) -> list[str]:
        """Return new warnings about lost information, as sentences for the person; each once."""
        return self._sources.news()

    def glance(self, action: Action[DesktopPoint]) -> Situation:
        """Return only the action's target element and window, with the same guarantees as `of`."""
        self._meant = replace(self._meant, hit=None)
        if isinstance(action, OpenApp | VisitPage) or not isinstance(action, TOUCHING):
            return UNKNOWN
        self._sources.connect()
        if isinstance(action, TYPING):
            window = self._sources.windows(self._reach.receiver)
            received = self._receives(action, window.id if window else None)
            return Situation(self._place(window, shown=True), elements=received)
        points, found = self._under(action)
        under = found[-1] if found else None
        hit = self._hit(action, points, under)
        words, words_at = "", None
        if isinstance(action, Click | LongPress) and nameless(hit):
            words, words_at, _ = self._sources.captions(points)
        return Situation(under=self._place(under, shown=True), elements=hit, words=words, words_at=words_at)

    def close(self) -> None:
        """Close the connections. Does not wait, because closing the one to a dead display may hang."""
        threading.Thread(target=self._sources.close, daemon=True).start()

    def _of_opening(self, action: OpenApp | VisitPage) -> Situation:
        if isinstance(action, VisitPage):
            found = self._applications.browser()
        else:
            found = self._applications.identify(action.name, action.application)
        if found is None:
            return UNKNOWN
        told: dict[Fact, bool] = {"not the system's": found.foreign, "of an ordinary kind": found.ordinary}
        return Situation(opens=found.names, facts=frozenset(fact for fact, is_so in told.items() if is_so))

    def _of_typing(self, action: KeyAction, known: bool) -> tuple[Situation, WindowId | None]:
        window = self._sources.windows(self._reach.receiver)
        identifier = window.id if window else None
        if known:
            self._meant = replace(self._meant, judged=Judged(action, (identifier,)))
        place, elements = self._place(window), self._receives(action, identifier)
        text = spelled(action)
        presses = bool({"\n", "\r"} & set(text)) or text.isspace()
        field = self._field(elements) if window is not None else None
        sends = bool({"\n", "\r"} & set(text)) and (not elements or takes_text(elements[-1]))
        unread = sends and field is None and not any(one.role == _MASKED for one in elements[-1:])
        names = [one.name for one in elements if one.role not in TEXT_ROLES] if presses else []
        return Situation(
            place,
            elements=elements,
            asked=self._question(window, place) if presses and _may_answer(names) else "",
            fields=self._submitted(window, place, names) if names else (),
            facts=(self._starting(names, place) if presses else frozenset()) | (_UNREAD if unread else frozenset()),
            typed=field.text[: field.start] if field else "",
            rest=field.text[field.end :] if field else "",
            read=field is not None,
            sent=field.after(re.split(r"[\n\r]", text)[0]) if field and sends else None,
        ), identifier

    def _default(self, action: KeyAction, seen: Situation, window: WindowId | None) -> Situation | None:
        """Return the situation of a click on the button that Enter presses from a field of one line."""
        enters = bool({"\n", "\r"} & set(spelled(action)))
        if not enters or self._history is None or is_page(seen.focused) or "one line" not in facts_of_focus(seen):
            return None
        button = self._sources.elements(lambda known: known.default_button())
        if button is None:
            return None
        pressed = Situation(under=seen.focused, elements=(button,), asked=seen.asked, fields=seen.fields)
        return self._history.judge(Click(button.box.middle), pressed, window)

    def _field(self, elements: Sequence[Element]) -> FieldText | None:
        """Read the focused field, or in a terminal the line behind the prompt. None if it cannot be read."""
        focus = elements[-1] if elements else None
        if focus is not None and (not takes_text(focus) or focus.role == _MASKED):
            return None
        field = self._sources.elements(lambda known: known.field_text())
        is_terminal = focus is not None and focus.role == "terminal"
        return field.line(after_prompt) if field is not None and is_terminal else field

    def _submitted(self, window: Window | None, place: Place | None, names: Iterable[str]) -> tuple[str, ...]:
        """Return the contents of the fields of a page or dialog, if the pressed element may submit them."""
        if _is_harmless(names) or place is None or window is None or not (place.dialog or is_page(place)):
            return ()
        if not self._is_active(window.id):
            return ()
        return tuple(self._sources.elements(lambda known: known.fields()) or ())

    def _of_pointing(self, action: Action[DesktopPoint], known: bool) -> tuple[Situation, WindowId | None]:
        points, found = self._under(action)
        if known:
            judged = Judged(action, tuple(window.id if window else None for window in found))
            self._meant = replace(self._meant, judged=judged)
        words, words_at, framed = ("", None, False) if isinstance(action, Scroll) else self._sources.captions(points)
        under = self._place(found[-1]) if found else None
        elements = self._hit(action, points, found[-1] if found else None)
        pressed = isinstance(action, Click | LongPress)
        answers = pressed and not any(one.role in _NO_ANSWERS for one in elements)
        opened = isinstance(action, Click) and action.count > 1
        names = [words, *(one.name for one in elements)]
        facts = frozenset[Fact]()
        if pressed:
            facts = self._starting(names, under, opened=opened)
            facts |= _DRAWN if framed else frozenset()
        return Situation(
            under=under,
            origin=self._place(found[0]) if len(found) > 1 else None,
            words=words,
            words_at=words_at,
            elements=elements,
            asked=self._question(found[-1], under) if found and answers and _may_answer(names) else "",
            fields=self._submitted(found[-1], under, names) if answers and elements else (),
            facts=facts,
        ), found[-1].id if found and found[-1] is not None else None

    def _under(self, action: Action[DesktopPoint]) -> tuple[list[DesktopPoint], list[Window | None]]:
        """Return the points that an action touches, and the windows there."""
        points = self._sources.windows(lambda known: aims(action, known))
        points = aims(action, None) if points is None else points
        places = [point.rounded() for point in points]
        return points, [self._sources.windows(lambda known, at=at: known.at(*at)) for at in places]  # type: ignore[misc]

    def _starting(self, names: Iterable[str], place: Place | None, *, opened: bool = True) -> frozenset[Fact]:
        """Return facts about what pressing or opening something with one of these names would start."""
        captions = [name for name in names if name.strip()]
        folder = None if place is None else "" if place.backdrop else place.title or "?"
        return self._applications.starting(captions, folder, opened=opened)

    def _question(self, window: Window | None, place: Place | None) -> str:
        """Return the title and text of a small dialog, or the texts of dialogs drawn inside the window; "" if none."""
        if window is None or place is None:
            return ""
        region, (width, height) = place.region, _LARGEST_QUESTION
        if place.dialog and region is not None and region.width <= width and region.height <= height:
            return f"{place.title}\n{self._sources.text_in(region)}"
        if not self._is_active(window.id):
            return ""
        return "\n".join(self._sources.elements(lambda known: known.dialogs()) or ())

    def _hit(
        self, action: Action[DesktopPoint], points: list[DesktopPoint], under: Window | None
    ) -> tuple[Element, ...]:
        """Return the elements at these points, and remember a clicked text field as the target of later typing."""
        found = (self._sources.elements(lambda known, at=point: known.at(at)) for point in points)  # type: ignore[misc]
        hit = tuple(element for element in found if element is not None)
        self._meant = replace(self._meant, hit=Hit(action, hit))
        if isinstance(action, Click | LongPress) and any(takes_text(element) for element in hit):
            under = under or self._sources.windows(lambda known: known.at(*points[-1].rounded()))
            self._clicked = (under.id if under else None, hit)
        return hit

    def _receives(self, action: Action[DesktopPoint], window: WindowId | None) -> tuple[Element, ...]:
        """Return the elements that may receive text typed into a window, the most certain last.

        This is the focused element. If it is unknown, it is the element that was clicked last, unless a key has moved
        the focus since. A clicked password field always counts, because the focus may still be on its way there.
        """
        clicked_in, clicked = self._clicked
        clicked = clicked if clicked_in == window else ()
        if clicked and leads_away(action):
            self._clicked = (None, ())
        # A window that is not active yet gets the focus only when the text is typed.
        focused = self._sources.elements(lambda known: known.focused()) if self._is_active(window) else None
        if focused is None:
            return clicked
        return (*(one for one in clicked if one.role == _MASKED != focused.role), focused)

    def _is_active(self, window: WindowId | None) -> bool:
        active = self._sources.windows(lambda known: known.active())
        return active is not None and active.id == window

    def _place(self, window: Window | None, *, shown: bool = False) -> Place | None:
        """Describe a window: its names and region and, unless `shown`, also its kind and its page's site."""
        if window is None:
            return None
        region = self._sources.windows(lambda known: known.region(window.id))
        place = Place(window.app, window.title, region, window=window.id)
        if shown:
            return place
        kind = self._sources.windows(lambda known: known.kind(window.id))
        place = replace(place, dialog=kind == "dialog", backdrop=kind == "backdrop")
        if not is_page(place) or not self._is_active(window.id):
            return place
        return replace(place, site=site_of(self._sources.elements(lambda known: known.page()) or ""))


def _may_answer(names: Sequence[str]) -> bool:
    """Whether a pressed button may answer a question: it has no name, says yes or no, or is not listed as harmless."""
    return not _is_harmless(names) or any(
        shipped_words(answer).found(name) for answer in ("yes", "no", "cancels") for name in names
    )


def _is_harmless(names: Iterable[str]) -> bool:
    """Whether a pressed button has a caption, and all its captions are listed as harmless."""
    captions = [name for name in names if name.strip()]
    return bool(captions) and all(map(harmless_buttons().covers, captions))
