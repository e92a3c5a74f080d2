"""Looks at the desktop for the policy: which window gets an action, and what is written where it points.

The windows and their classes come from the desktop and the captions from the screen itself, so that neither the model
nor a page that talks to it has a say in them (a page does choose its window's title, which is why titles only ever
make the policy ask).
"""

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from agent.core.actions import TOUCHING, TYPING, Action, Click, KeyAction, LongPress, OpenApp, Scroll, VisitPage
from agent.core.geometry import DesktopPoint, Region
from agent.desktop.guard.aiming import aims, leads_away
from agent.desktop.guard.senses import Senses
from agent.desktop.guard.targets import Sighting
from agent.desktop.protocol.desktop import Applications
from agent.desktop.protocol.elements import Elements, OpenElements
from agent.desktop.protocol.windows import Connection, OpenWindows, Window, WindowId, Windows
from agent.safety.input_history import InputHistory
from agent.safety.naming import nameless
from agent.safety.situation import UNKNOWN, Fact, Place, Sense, Situation
from agent.safety.targets import TEXT_ROLES, takes_text
from agent.safety.text import spelled
from agent.safety.words import shipped_words
from agent.screen.captions import Caption, caption_at
from agent.screen.capture import Frame, Screen
from agent.screen.ocr import Ocr, data_folder
from agent.screen.outline import Element
from foundation.errors import EnvironmentLacksError

T = TypeVar("T")
_DRAWN: frozenset[Fact] = frozenset({"drawn as a button"})
_UNREAD: frozenset[Fact] = frozenset({"unread field"})

_WHO = "Knowing what a click would hit"
_MASKED = "password text"
#: A dialog that is larger is more than a question, in desktop units; what it says is not read.
_LARGEST_QUESTION = (760, 420)
#: What a press on it answers no question with.
_NO_ANSWERS = frozenset(
    {"check box", "radio button", "slider", "list item", "table cell", "page tab", "combo box", "tree item", "switch",
     "icon"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """Which windows an action was judged to reach; None where that is not known."""

    action: Action[DesktopPoint]
    windows: tuple[WindowId | None, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """The elements that an action was found to hit."""

    action: Action[DesktopPoint]
    elements: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Meant:
    """What is known of where an action was meant to go; None where it is not."""

    seen: Sighting | None = None  # the windows when the model was shown the screen
    judged: Judged | None = None  # by which the last action was judged
    hit: Hit | None = None  # what it was found to hit


class DesktopSurroundings:
    """The `Surroundings` of this desktop. Used from one thread, the one that the screen is used from.

    Args:
        screen: what captions are read from.
        applications: know what a name would open.
        home: where the wheel turns when an action names no point.
        open_windows: of the desktop.
        receiver: the window that will get what is typed, where that is not the one that has the focus.
        open_elements: of the desktop.
        languages: tesseract's names of what the screen is written in.
        untold: what this desktop never tells.
    """

    def __init__(
        self,
        screen: Screen,
        applications: Applications,
        home: DesktopPoint,
        open_windows: OpenWindows,
        receiver: Callable[[Windows], Window | None] = lambda windows: windows.active(),
        open_elements: OpenElements = lambda: None,
        languages: Sequence[str] = ("eng",),
        untold: frozenset[Sense] = frozenset(),
    ) -> None:
        self._untold = untold
        self._screen = screen
        self._applications = applications
        self._home = home
        self._receiver = receiver
        self._windows = Connection(open_windows)
        self._ocr: Ocr | None = None
        self._languages = languages
        self._open_elements: OpenElements | None = open_elements
        self._elements: Elements | None = None
        self._clicked: tuple[WindowId | None, tuple[Element, ...]] = (None, ())
        self._senses = Senses()
        self._history: InputHistory | None = None  # begun with the first action: then the windows are known
        self._seen: Sighting | None = None
        self._judged: Judged | None = None
        self._hits: Hit | None = None

    @staticmethod
    def remark() -> str:
        """What a person must know about what cannot be found out here; "" if everything can."""
        try:
            data_folder(_WHO)
        except EnvironmentLacksError as error:
            return f"{error} Until then, no rule knows what is written on a button."
        return ""

    @property
    def meant(self) -> Meant:
        """Where the last action was meant to go. For the hand's thread."""
        return Meant(self._seen, self._judged, self._hits)

    def saw(self) -> None:
        """The model is shown the screen as it stands now: what it decides is meant for these windows."""
        windows = self._windows.get()
        self._seen = self._asked(windows, lambda known: Sighting(self._receiver(known), tuple(known.layers())))

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; see `Surroundings.of`."""
        self._judged = self._hits = None
        if not isinstance(action, TOUCHING):
            return UNKNOWN
        windows = self._connected()
        if self._history is None:
            there = self._asked(windows, lambda known: known.windows()) or []
            self._history = InputHistory(frozenset(window.id for window in there))
        if isinstance(action, OpenApp | VisitPage):
            seen, window = self._of_opening(action), None
        elif isinstance(action, TYPING):
            seen, window = self._of_typing(action, windows)
        else:
            seen, window = self._of_pointing(action, windows)
        return self._history.judge(action, replace(seen, lost=self._senses.lost, untold=self._untold), window)

    def did(self, action: Action[DesktopPoint]) -> None:
        if self._history is not None:
            self._history.did(action)

    def news(self) -> list[str]:
        return self._senses.news()

    def glance(self, action: Action[DesktopPoint]) -> Situation:
        self._hits = None
        if isinstance(action, OpenApp | VisitPage) or not isinstance(action, TOUCHING):
            return UNKNOWN
        windows = self._connected()
        if isinstance(action, TYPING):
            window = self._asked(windows, self._receiver)
            received = self._receives(action, window.id if window else None, windows)
            return Situation(self._where(window, windows), elements=received)
        points, found = self._under(action, windows)
        under = found[-1] if found else None
        hit = self._hit(action, points, windows, under)
        words = self._captions(points)[0] if isinstance(action, Click | LongPress) and nameless(hit) else ""
        return Situation(under=self._where(under, windows), elements=hit, words=words)

    def close(self) -> None:
        """Close the connections; does not wait, because the one to a dead display may hang."""
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._windows.close()
        if self._elements is not None:
            self._elements.close()

    def _of_opening(self, action: OpenApp | VisitPage) -> Situation:
        if isinstance(action, VisitPage):
            found = self._applications.browser()
        else:
            found = self._applications.identify(action.name, action.application)
        if found is None:
            return UNKNOWN
        return Situation(opens=found.names, facts=frozenset({"not the system's"} if found.foreign else ()))

    def _of_typing(self, action: KeyAction, windows: Windows | None) -> tuple[Situation, WindowId | None]:
        window = self._asked(windows, self._receiver)
        identifier = window.id if window else None
        if windows is not None:
            self._judged = Judged(action, (identifier,))
        place, elements = self._place(window, windows), self._receives(action, identifier, windows)
        text = spelled(action)
        presses = bool({"\n", "\r"} & set(text)) or text.isspace()
        sent, unread = self._sent(text, elements, active=window is not None)
        names = [one.name for one in elements if one.role not in TEXT_ROLES] if presses else []
        return Situation(
            place,
            elements=elements,
            asked=self._question(place) if presses and _may_agree(names) else "",
            facts=(self._starting(names, place) if presses else frozenset()) | (_UNREAD if unread else frozenset()),
            sent=sent,
        ), identifier

    def _sent(self, text: str, elements: Sequence[Element], *, active: bool) -> tuple[str | None, bool]:
        """What stands in the focused field when a text's first Enter comes, and whether that cannot be read."""
        if not {"\n", "\r"} & set(text) or (elements and not takes_text(elements[-1])):
            return None, False  # no Enter, or one for a button, a link, a page
        if any(one.role == _MASKED for one in elements[-1:]):
            return None, False
        field = self._told(lambda known: known.field_text()) if active else None
        return (None, True) if field is None else (field.after(re.split(r"[\n\r]", text)[0]), False)

    def _of_pointing(self, action: Action[DesktopPoint], windows: Windows | None) -> tuple[Situation, WindowId | None]:
        points, found = self._under(action, windows)
        if windows is not None:
            self._judged = Judged(action, tuple(window.id if window else None for window in found))
        words, framed = ("", False) if isinstance(action, Scroll) else self._captions(points)
        under = self._place(found[-1], windows) if found else None
        elements = self._hit(action, points, windows, found[-1] if found else None)
        pressed = isinstance(action, Click | LongPress)
        answers = pressed and not any(one.role in _NO_ANSWERS for one in elements)
        opened = isinstance(action, Click) and action.count > 1
        seen = Situation(
            under=under,
            origin=self._place(found[0], windows) if len(found) > 1 else None,
            words=words,
            elements=elements,
            asked=self._question(under) if answers and _may_agree([words]) else "",
            facts=self._starting([words, *(one.name for one in elements)], under, opened=opened)
            | (_DRAWN if framed else frozenset())
            if pressed
            else frozenset(),
        )
        return seen, found[-1].id if found and found[-1] is not None else None

    def _under(
        self, action: Action[DesktopPoint], windows: Windows | None
    ) -> tuple[list[DesktopPoint], list[Window | None]]:
        """The points that an action touches, and the windows there."""
        points = aims(action, self._home, windows)
        places = [point.rounded() for point in points]
        return points, [self._asked(windows, lambda known, at=at: known.at(*at)) for at in places]  # type: ignore[misc]

    def _starting(self, names: Iterable[str], place: Place | None, *, opened: bool = True) -> frozenset[Fact]:
        """Whether what is shown by one of these names would start something, when it is pressed, or opened."""
        told, facts = [name for name in names if name.strip()], set[Fact]()
        if any(self._applications.lists_foreign(name) for name in told):
            facts.add("not the system's")
        if opened and any(self._applications.may_start(name) for name in told):
            facts.add("may be a program")
        # What is written under icons can often not be read.
        title = "" if place is None or place.backdrop else place.title or "?"
        if opened and place is not None and self._applications.may_start_in(title, told):
            facts.add("beside programs")
        return frozenset(facts)

    def _question(self, place: Place | None) -> str:
        """What a small dialog says; "" for other windows."""
        if place is None or not place.dialog or place.region is None:
            return ""
        region, (width, height) = place.region, _LARGEST_QUESTION
        if region.width > width or region.height > height:
            return ""
        return _joined(self._read(lambda frame, ocr: [_text_in(frame, region, ocr)]))

    def _hit(
        self,
        action: Action[DesktopPoint],
        points: list[DesktopPoint],
        windows: Windows | None,
        under: Window | None = None,
    ) -> tuple[Element, ...]:
        """What lies at these points; what is typed after a click there goes into it, where it takes text."""
        hit = tuple(element for point in points if (element := self._at(point)) is not None)
        self._hits = Hit(action, hit)
        if isinstance(action, Click | LongPress) and any(takes_text(element) for element in hit):
            under = under or self._asked(windows, lambda known: known.at(*points[-1].rounded()))
            self._clicked = (under.id if under else None, hit)
        return hit

    def _receives(
        self, action: Action[DesktopPoint], window: WindowId | None, windows: Windows | None
    ) -> tuple[Element, ...]:
        """The element that gets what is typed into a window, the surest last.

        It is the one that has the focus. Where that is not known, it is the one clicked last there, unless a key led
        away; so may be a field for a password in any case, as the focus may still be on its way there.
        """
        clicked_in, clicked = self._clicked
        clicked = clicked if clicked_in == window else ()
        if clicked and leads_away(action):
            self._clicked = (None, ())
        active = self._asked(windows, lambda known: known.active())
        # Another window gets the focus only when it is typed into.
        focused = self._told(lambda known: known.focused()) if active is not None and active.id == window else None
        if focused is None:
            return clicked
        return (*(one for one in clicked if one.role == _MASKED != focused.role), focused)

    def _at(self, point: DesktopPoint) -> Element | None:
        return self._told(lambda known: known.at(point))

    def _told(self, question: Callable[[Elements], T | None]) -> T | None:
        try:
            if self._elements is None and self._open_elements is not None:
                opened, self._open_elements = self._open_elements, None
                self._elements = opened()
            if self._elements is None:
                return None
            told = question(self._elements)
        except Exception:  # no bus, a tree that is broken, a display that is gone: then the words must do
            self._senses.failed("elements")
            return None
        self._senses.worked("elements")
        return told

    def _captions(self, points: list[DesktopPoint]) -> tuple[str, bool]:
        """What is written at these points, and whether it is drawn as the caption of a button."""

        def captions(frame: Frame, ocr: Ocr) -> list[Caption]:
            places = [frame.viewport.desktop_to_capture(point) for point in points]
            scale = max(1.0, frame.viewport.scale[0])
            return [caption_at(frame.image, at.x, at.y, ocr, scale) for at in places]

        read = self._read(captions)
        return _joined(one.text for one in read), any(one.framed for one in read)

    def _read(self, look: Callable[[Frame, Ocr], list[T]]) -> list[T]:
        """What a look at the screen reads; nothing where it cannot."""
        try:
            self._ocr = self._ocr or Ocr(_WHO, self._languages)
            read = look(self._screen.grab(), self._ocr)
        except Exception:  # no language data, or a display that is gone, which is told in a dozen ways
            self._senses.failed("words")
            return []
        self._senses.worked("words")
        return read

    def _connected(self) -> Windows | None:
        """The connection to the windows, made anew once where it was lost; None where windows are unknown."""
        for _ in range(2):
            windows = self._windows.get()
            if windows is None:
                break
            try:
                windows.active()
            except EnvironmentLacksError:
                self._windows.close()
            else:
                self._senses.worked("windows")
                return windows
        self._senses.failed("windows")
        return None

    def _asked(self, windows: Windows | None, question: Callable[[Windows], T]) -> T | None:
        """What the desktop answers; None where it does not, and a lost connection is made anew next time."""
        if windows is None:
            return None
        try:
            return question(windows)
        except EnvironmentLacksError:
            self._windows.close()
            self._senses.failed("windows")
            return None

    def _where(self, window: Window | None, windows: Windows | None) -> Place | None:
        """What a person is told of a window: its name, and where it is."""
        if window is None:
            return None
        return Place(window.app, window.title, self._asked(windows, lambda known: known.region(window.id)))

    def _place(self, window: Window | None, windows: Windows | None) -> Place | None:
        if window is None:
            return None
        region = self._asked(windows, lambda known: known.region(window.id))
        kind = self._asked(windows, lambda known: known.kind(window.id))
        return Place(window.app, window.title, region, kind == "dialog", kind == "backdrop")


def _joined(texts: Iterable[str]) -> str:
    """Texts as one, each once."""
    return "\n".join(dict.fromkeys(filter(None, texts)))


def _may_agree(names: Iterable[str]) -> bool:
    """Whether what is pressed says yes, or nobody knows what it says."""
    told = [name for name in names if name.strip()]
    return not told or any(shipped_words("yes").found(name) for name in told)


def _text_in(frame: Frame, region: Region, ocr: Ocr) -> str:
    """What is written in a part of the desktop."""
    ends = DesktopPoint(region.left + region.width, region.top + region.height)
    first, last = map(frame.viewport.desktop_to_capture, (DesktopPoint(region.left, region.top), ends))
    crop = frame.image.crop((round(first.x), round(first.y), round(last.x), round(last.y)))
    return " ".join(word.text for word in ocr.words(crop, 2.0 / max(1.0, frame.viewport.scale[0])))
