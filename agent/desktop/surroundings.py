"""Looks at the desktop for the policy: which window gets an action, and what is written where it points.

The windows and their classes come from the X server and the captions from the screen itself, so that neither the model
nor a page that talks to it has a say in them (a page does choose its window's title, which is why titles only ever
make the policy ask).
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.actions import Action, Drag, HoldKeys, OpenApp, PressKeys, Scroll, TypeText, points_of
from agent.desktop.apps.launcher import Launcher
from agent.desktop.x11.windows import Window, WindowList, window_list
from agent.geometry import DesktopPoint
from agent.safety.policy import Place, Situation
from agent.safety.text import spelled
from agent.screen.captions import caption_at
from agent.screen.capture import Frame, Screen
from agent.screen.ocr import Ocr, data_folder
from foundation.errors import EnvironmentLacksError

_WHO = "Knowing what a click would hit"
#: Of what was typed before, so much is kept to judge a text that comes in pieces.
_REMEMBERED = 300
#: Of its beginnings, so many are kept in mind when an unknown part was erased.
_ERASED = 40


@dataclass(frozen=True, slots=True)
class Judged:
    """Which windows an action was judged to reach; None where that is not known."""

    action: Action[DesktopPoint]
    windows: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Typed:
    """What was typed into a window without a pause: a text may come in pieces, and be corrected.

    Args:
        window: which.
        text: the text, its end.
        judged: so many characters of it were judged as they stand; None for all.
        erased: what may stand there instead, where it is not known how much was taken away.
    """

    window: int | None
    text: str = ""
    judged: int | None = None
    erased: tuple[str, ...] = ()

    def after(self, action: Action[DesktopPoint]) -> "_Typed":
        """What stands there after an action."""
        if not (isinstance(action, PressKeys | HoldKeys) and "backspace" in action.keys):
            entered = spelled(action)
            kept = tuple((one + entered)[-_REMEMBERED:] for one in self.erased)  # still not known which of them it is
            return _Typed(self.window, (self.text + entered)[-_REMEMBERED:], None, kept)
        if isinstance(action, PressKeys) and not {"ctrl", "alt", "super"} & set(action.keys):
            return _Typed(self.window, self.text[:-1], 0, tuple(one[:-1] for one in self.erased))
        # A word, a line, or as many as the key repeats: whatever is left is a beginning of what stood there.
        ends = range(max(0, len(self.text) - _ERASED), len(self.text))
        return _Typed(self.window, self.text, 0, tuple(self.text[:end] for end in ends))


class DesktopSurroundings:
    """The `Surroundings` of this desktop. Used from one thread, the one that the screen is used from.

    Args:
        screen: what captions are read from.
        launcher: knows what a name would open.
        home: where the wheel turns when an action names no point.
        receiver: the window that will get what is typed, where that is not the one that has the focus.
    """

    def __init__(
        self,
        screen: Screen,
        launcher: Launcher,
        home: DesktopPoint,
        receiver: Callable[[WindowList], Window | None] = WindowList.active,
    ) -> None:
        self._screen = screen
        self._launcher = launcher
        self._home = home
        self._receiver = receiver
        self._windows: WindowList | None = None
        self._ocr: Ocr | None = None
        self._typed = _Typed(None)
        self.judged: Judged | None = None

    @staticmethod
    def remark() -> str:
        """What a person must know about what cannot be found out here; "" if everything can."""
        try:
            data_folder(_WHO)
        except EnvironmentLacksError as error:
            return f"{error} Until then, no rule knows what is written on a button."
        return ""

    def of(self, action: Action[DesktopPoint]) -> Situation:
        """What is known where this action would land; see `Surroundings.of`."""
        self.judged = None
        if isinstance(action, OpenApp):
            return Situation(opens=self._opens(action.name))
        windows = self._connected()
        if isinstance(action, TypeText | PressKeys | HoldKeys):
            return self._of_typing(action, windows)
        return self._of_pointing(action, windows)

    def close(self) -> None:
        """Close the connection; does not wait, because the one to a dead display may hang."""
        windows, self._windows = self._windows, None
        if windows is not None:
            threading.Thread(target=windows.close, daemon=True).start()

    def _opens(self, name: str) -> tuple[str, ...] | None:
        with suppress(OSError):
            app = self._launcher.catalogue.find(name)
            if app is None:
                return ()
            program = next((part for part in app.command if part != "env" and "=" not in part), "")
            return (app.name, app.id, program.rsplit("/", 1)[-1]) if program else (app.name, app.id)
        return None

    def _of_typing(self, action: Action[DesktopPoint], windows: WindowList | None) -> Situation:
        window = self._asked(windows, self._receiver)
        identifier = window.id if window else None
        before = self._typed if self._typed.window == identifier else _Typed(identifier)
        self._typed = before.after(action)
        if windows is not None:
            self.judged = Judged(action, (window.id if window else None,))
        return Situation(self._place(window, windows), typed=before.text, judged=before.judged, erased=before.erased)

    def _of_pointing(self, action: Action[DesktopPoint], windows: WindowList | None) -> Situation:
        points = aims(action, self._home, windows)
        found = [
            self._asked(windows, lambda known, point=point: known.at(*point.rounded()))  # type: ignore[misc]
            for point in points
        ]
        if windows is not None:
            self.judged = Judged(action, tuple(window.id if window else None for window in found))
        words = "" if isinstance(action, Scroll) else self._words(points)
        return Situation(
            under=self._place(found[-1], windows) if found else None,
            origin=self._place(found[0], windows) if len(found) > 1 else None,
            words=words,
        )

    def _words(self, points: list[DesktopPoint]) -> str:
        try:
            self._ocr = self._ocr or Ocr(_WHO)
            frame = self._screen.grab()
            read = [self._at(frame, point, self._ocr) for point in points]
        except Exception:  # no language data, or a display that is gone, which mss tells in a dozen ways too
            return ""
        return "\n".join(dict.fromkeys(text for text in read if text))

    @staticmethod
    def _at(frame: Frame, point: DesktopPoint, ocr: Ocr) -> str:
        at = frame.viewport.desktop_to_capture(point)
        return caption_at(frame.image, at.x, at.y, ocr, max(1.0, frame.viewport.scale[0]))

    def _connected(self) -> WindowList | None:
        if self._windows is None:
            self._windows = window_list()
        return self._windows

    def _asked(self, windows: WindowList | None, question: Callable[[WindowList], Window | None]) -> Window | None:
        """The answer of the X server; None where there is none, and a lost connection is made anew next time."""
        if windows is None:
            return None
        try:
            return question(windows)
        except Exception:  # python3-xlib surfaces a lost connection as any of a dozen exceptions
            self._windows = None
            return None

    def _place(self, window: Window | None, windows: WindowList | None) -> Place | None:
        if window is None:
            return None
        region: Any = None
        if windows is not None:
            with suppress(Exception):  # as above
                region = windows.region(window.id)
        return Place(window.app, window.title, region)


def aims(action: Action[DesktopPoint], home: DesktopPoint, windows: WindowList | None) -> list[DesktopPoint]:
    """The points that an action really touches: also where the pointer is, for a drag that names no start."""
    points = points_of(action)
    if isinstance(action, Scroll) and not points:
        return [home]
    if isinstance(action, Drag) and action.start is None and windows is not None:
        with suppress(Exception):  # a lost connection: the hand will find out
            return [DesktopPoint(*map(float, windows.pointer())), *points]
    return points
