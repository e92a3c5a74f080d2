"""Looks at the desktop for the policy: which window gets an action, and what is written where it points.

The windows and their classes come from the desktop and the captions from the screen itself, so that neither the model
nor a page that talks to it has a say in them (a page does choose its window's title, which is why titles only ever
make the policy ask).
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from agent.actions import (
    TOUCHING,
    TYPING,
    Action,
    Click,
    Drag,
    HoldKeys,
    LongPress,
    OpenApp,
    PressKeys,
    Scroll,
    points_of,
)
from agent.desktop.base import Applications
from agent.desktop.elements import Elements, OpenElements
from agent.desktop.sighting import Sighting
from agent.desktop.windows import Connection, OpenWindows, Window, WindowId, Windows
from agent.geometry import DesktopPoint
from agent.safety.situation import UNKNOWN, Place, Situation
from agent.safety.text import spelled
from agent.screen.captions import caption_at
from agent.screen.capture import Screen
from agent.screen.ocr import Ocr, data_folder
from agent.screen.outline import Element
from foundation.errors import EnvironmentLacksError

T = TypeVar("T")

_WHO = "Knowing what a click would hit"
#: Of what was typed before, so much is kept to judge a text that comes in pieces.
_REMEMBERED = 300
_MASKED = "password text"
#: Roles of what takes typed text.
_TEXT_ROLES = frozenset({"entry", "text", _MASKED, "spin button", "terminal", "editbar", "document text"})
#: Of its beginnings, so many are kept in mind when an unknown part was erased.
_ERASED = 40


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


@dataclass(frozen=True, slots=True)
class _TypedText:
    """What was typed into a window without a pause: a text may come in pieces, and be corrected."""

    window: WindowId | None
    text: str = ""  # its end
    judged: int | None = None  # so many characters of it were judged as they stand; None for all
    erased: tuple[str, ...] = ()  # what may stand there instead, where it is not known how much was taken away

    def after(self, action: Action[DesktopPoint]) -> "_TypedText":
        """What stands there after an action."""
        if not (isinstance(action, PressKeys | HoldKeys) and "backspace" in action.keys):
            entered = spelled(action)
            kept = tuple((one + entered)[-_REMEMBERED:] for one in self.erased)  # still not known which of them it is
            return _TypedText(self.window, (self.text + entered)[-_REMEMBERED:], None, kept)
        if isinstance(action, PressKeys) and not {"ctrl", "alt", "super"} & set(action.keys):
            return _TypedText(self.window, self.text[:-1], 0, tuple(one[:-1] for one in self.erased))
        # A word, a line, or as many as the key repeats: whatever is left is a beginning of what stood there.
        ends = range(max(0, len(self.text) - _ERASED), len(self.text))
        return _TypedText(self.window, self.text, 0, tuple(self.text[:end] for end in ends))


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
    ) -> None:
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
        self._typed = _TypedText(None)
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
        if isinstance(action, OpenApp):
            return Situation(opens=self._applications.identify(action.name, action.application))
        windows = self._windows.get()
        if isinstance(action, TYPING):
            return self._of_typing(action, windows)
        return self._of_pointing(action, windows)

    def glance(self, action: Action[DesktopPoint]) -> Situation:
        """See `Surroundings.glance`."""
        self._hits = None
        if isinstance(action, OpenApp) or not isinstance(action, TOUCHING):
            return UNKNOWN
        windows = self._windows.get()
        if isinstance(action, TYPING):
            window = self._asked(windows, self._receiver)
            received = self._receives(action, window.id if window else None, windows)
            return Situation(None if window is None else Place(window.app, window.title), elements=received)
        points = aims(action, self._home, windows)
        found = [
            self._asked(windows, lambda known, point=point: known.at(*point.rounded()))  # type: ignore[misc]
            for point in points
        ]
        under = found[-1] if found else None
        place = None if under is None else Place(under.app, under.title)
        return Situation(under=place, elements=self._hit(action, points, windows, under))

    def close(self) -> None:
        """Close the connections; does not wait, because the one to a dead display may hang."""
        threading.Thread(target=self._close, daemon=True).start()

    def _close(self) -> None:
        self._windows.close()
        if self._elements is not None:
            self._elements.close()

    def _of_typing(self, action: Action[DesktopPoint], windows: Windows | None) -> Situation:
        window = self._asked(windows, self._receiver)
        identifier = window.id if window else None
        before = self._typed if self._typed.window == identifier else _TypedText(identifier)
        self._typed = before.after(action)
        if windows is not None:
            self._judged = Judged(action, (identifier,))
        return Situation(
            self._place(window, windows),
            elements=self._receives(action, identifier, windows),
            typed=before.text,
            judged=before.judged,
            erased=before.erased,
        )

    def _of_pointing(self, action: Action[DesktopPoint], windows: Windows | None) -> Situation:
        points = aims(action, self._home, windows)
        found = [
            self._asked(windows, lambda known, point=point: known.at(*point.rounded()))  # type: ignore[misc]
            for point in points
        ]
        if windows is not None:
            self._judged = Judged(action, tuple(window.id if window else None for window in found))
        words = "" if isinstance(action, Scroll) else self._words(points)
        return Situation(
            under=self._place(found[-1], windows) if found else None,
            origin=self._place(found[0], windows) if len(found) > 1 else None,
            words=words,
            elements=self._hit(action, points, windows, found[-1] if found else None),
        )

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
        if isinstance(action, Click | LongPress) and any(_takes_text(element) for element in hit):
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
        if clicked and _leads_away(action):
            self._clicked = (None, ())
        active = self._asked(windows, lambda known: known.active())
        # Another window gets the focus only when it is typed into.
        focused = self._told(lambda known: known.focused()) if active is not None and active.id == window else None
        if focused is None:
            return clicked
        return (*(one for one in clicked if one.role == _MASKED != focused.role), focused)

    def _at(self, point: DesktopPoint) -> Element | None:
        return self._told(lambda known: known.at(point))

    def _told(self, question: Callable[[Elements], Element | None]) -> Element | None:
        try:
            if self._elements is None and self._open_elements is not None:
                opened, self._open_elements = self._open_elements, None
                self._elements = opened()
            return None if self._elements is None else question(self._elements)
        except Exception:  # no bus, a tree that is broken, a display that is gone: then the words must do
            return None

    def _words(self, points: list[DesktopPoint]) -> str:
        try:
            self._ocr = self._ocr or Ocr(_WHO, self._languages)
            frame = self._screen.grab()
            places = [frame.viewport.desktop_to_capture(point) for point in points]
            scale = max(1.0, frame.viewport.scale[0])
            read = [caption_at(frame.image, at.x, at.y, self._ocr, scale) for at in places]
        except Exception:  # no language data, or a display that is gone, which is told in a dozen ways
            return ""
        return "\n".join(dict.fromkeys(filter(None, read)))

    def _asked(self, windows: Windows | None, question: Callable[[Windows], T]) -> T | None:
        """What the desktop answers; None where it does not, and a lost connection is made anew next time."""
        if windows is None:
            return None
        try:
            return question(windows)
        except EnvironmentLacksError:
            self._windows.close()
            return None

    def _place(self, window: Window | None, windows: Windows | None) -> Place | None:
        if window is None:
            return None
        return Place(window.app, window.title, self._asked(windows, lambda known: known.region(window.id)))


def _takes_text(element: Element) -> bool:
    return element.role in _TEXT_ROLES or "editable" in element.states


def _leads_away(action: Action[DesktopPoint]) -> bool:
    """Whether what is typed next goes elsewhere, as far as can be known."""
    keys = set(action.keys) if isinstance(action, PressKeys | HoldKeys) else set()
    return bool(
        keys & {"tab", "enter", "kp_enter", "escape", "alt", "super"} or {"\t", "\n", "\r"} & set(spelled(action))
    )


def aims(action: Action[DesktopPoint], home: DesktopPoint, windows: Windows | None) -> list[DesktopPoint]:
    """The points that an action really touches: also where the pointer is, for a drag that names no start."""
    points = points_of(action)
    if isinstance(action, Scroll) and not points:
        return [home]
    if isinstance(action, Drag) and action.start is None and windows is not None:
        with suppress(EnvironmentLacksError):  # the hand will find out
            return [DesktopPoint(*map(float, windows.pointer())), *points]
    return points
