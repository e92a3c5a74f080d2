"""The sources of information about the desktop (windows, elements, words on the screen), and which of them fail.

A source that never worked is mentioned when a run begins, and its rules match nothing. A source that fails during the
run must not look like "nothing is there": rules that need it ask the person (`Situation.lost`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.guard.reach import Reach
from agent.desktop.protocol.elements import Elements, NoAnswerError, OpenElements
from agent.desktop.protocol.windows import Connection, Windows
from agent.safety.situation import Sense
from agent.screen.captions import Caption, caption_at
from agent.screen.capture import Frame, Screen
from agent.screen.ocr import Ocr, data_folder
from foundation.errors import EnvironmentLacksError

T = TypeVar("T")
_WHO = "Knowing what a click would hit"
_LOST = "{}: from now on, rules about {} always ask you."
#: What the person is told when a source fails, and when it works again.
_NEWS: dict[Sense, tuple[str, str]] = {
    "windows": (
        "The window that gets an action is no longer known (the connection to the display was lost)",
        "It is known again which window gets an action.",
    ),
    "words": (
        "What is written on the screen cannot be read any more",
        "What is written on the screen can be read again.",
    ),
    "elements": (
        "What an action hits is no longer known (the accessibility tree does not answer)",
        "What an action hits is known again.",
    ),
}


class Sources:
    """Queries windows, elements and words. A query that fails returns None or nothing. Used from one thread."""

    def __init__(self, screen: Screen, reach: Reach, open_elements: OpenElements, languages: Sequence[str]) -> None:
        self._screen = screen
        self._languages = languages
        self._ocr: Ocr | None = None
        self._connection = Connection(reach.open_windows)
        self._windows: Windows | None = None
        self._open_elements: OpenElements | None = open_elements
        self._elements: Elements | None = None
        self._late = False  # whether an application did not report its elements in time since `connect`
        self._works: dict[Sense, bool] = {}  # without those that never worked
        self._news: list[str] = []

    @property
    def lost(self) -> frozenset[Sense]:
        """The sources that worked before and fail now, or did not answer in time."""
        late = frozenset[Sense]({"elements"} if self._late else ())
        return late | {sense for sense, works in self._works.items() if not works}

    def news(self) -> list[str]:
        """Return what changed since the last call, as sentences for the person."""
        news, self._news = self._news, []
        return news

    def connect(self, *, check: bool = True) -> bool:
        """Connect to the windows, or reconnect if the connection was lost. Return whether windows are known.

        With `check`, a new judgement begins: an application that was late for the one before is asked again.
        """
        self._late = self._late and not check
        for _ in range(2):
            self._windows = self._connection.get()
            if self._windows is None or not check:
                break
            try:
                self._windows.active()
            except EnvironmentLacksError:
                self._connection.close()
                self._windows = None
            else:
                self._note("windows", works=True)
                return True
        if check:
            self._note("windows", works=False)
        return self._windows is not None

    def windows(self, question: Callable[[Windows], T]) -> T | None:
        """Return the answer of the windows to a question."""
        if self._windows is None:
            return None
        try:
            return question(self._windows)
        except EnvironmentLacksError:
            self._connection.close()
            self._note("windows", works=False)
            return None

    def elements(self, question: Callable[[Elements], T | None]) -> T | None:
        """Return the answer of the accessibility tree to a question; also None if it comes too late."""
        if self._late:
            return None
        try:
            if self._elements is None and self._open_elements is not None:
                opened, self._open_elements = self._open_elements, None
                self._elements = opened()
            if self._elements is None:
                return None
            answer = question(self._elements)
        except NoAnswerError:
            self._late = True
            return None
        except Exception:  # no bus, a broken tree or a lost display: only the words are left
            self._note("elements", works=False)
            return None
        self._note("elements", works=True)
        return answer

    def captions(self, points: list[DesktopPoint]) -> tuple[str, DesktopPoint | None, bool]:
        """Return the texts at these points, the middle of the last text, and whether any is drawn like a button."""

        def captions(frame: Frame, ocr: Ocr) -> list[tuple[Caption, DesktopPoint]]:
            viewport, read = frame.viewport, []
            for point in points:
                at = viewport.desktop_to_capture(point)
                one = caption_at(frame.image, at.x, at.y, ocr, max(1.0, viewport.scale[0]))
                aside = (one.offset[0] / viewport.scale[0], one.offset[1] / viewport.scale[1])
                read.append((one, DesktopPoint(point.x + aside[0], point.y + aside[1])))
            return read

        found = [one for one in self._read(captions) or () if one[0].text]
        middle = found[-1][1] if found else None
        return joined(one.text for one, _ in found), middle, any(one.framed for one, _ in found)

    def text_in(self, region: Region) -> str:

        def text(frame: Frame, ocr: Ocr) -> str:
            ends = DesktopPoint(region.left + region.width, region.top + region.height)
            first, last = map(frame.viewport.desktop_to_capture, (DesktopPoint(region.left, region.top), ends))
            crop = frame.image.crop((round(first.x), round(first.y), round(last.x), round(last.y)))
            return " ".join(word.text for word in ocr.words(crop, 2.0 / max(1.0, frame.viewport.scale[0])))

        return self._read(text) or ""

    def close(self) -> None:
        """Close the connections; may hang if the display is dead."""
        self._connection.close()
        if self._elements is not None:
            self._elements.close()

    def _read(self, look: Callable[[Frame, Ocr], T]) -> T | None:
        try:
            self._ocr = self._ocr or Ocr(_WHO, self._languages)
            read = look(self._screen.grab(), self._ocr)
        except Exception:  # no language data, or a lost display, which raises any of a dozen exceptions
            self._note("words", works=False)
            return None
        self._note("words", works=True)
        return read

    def _note(self, sense: Sense, *, works: bool) -> None:
        known = self._works.get(sense)
        if known is not None and known != works:
            failed, works_again = _NEWS[sense]
            self._news.append(works_again if works else _LOST.format(failed, sense))
        if works or known is not None:
            self._works[sense] = works


def unreadable() -> str:
    """Return why OCR does not work here, as a sentence for the person; "" if it does."""
    try:
        data_folder(_WHO)
    except EnvironmentLacksError as error:
        return f"{error} Until then, no rule knows what is written on a button."
    return ""


def joined(texts: Iterable[str]) -> str:
    """Join texts with newlines, without duplicates and empty texts."""
    return "\n".join(dict.fromkeys(filter(None, texts)))
