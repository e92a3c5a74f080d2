"""What a run may see and touch, in one place for screen, elements and hand.

Our own windows are out of sight and reach. For a model on another machine, hidden windows, hidden regions and fields
for secrets are blank too.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.guard.own_windows import is_page_served, shows_our_page
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.windows import Connection, OpenWindows, Window, WindowId, Windows
from agent.safety.policy_rules.policy_file import Leaving, holds_secret
from agent.screen.capture import Frame, Screen
from agent.screen.outline import Element, Outline

T = TypeVar("T")
BLACK, _GREY = (0, 0, 0), (128, 128, 128)
#: Seconds for which our window may still be in captures after it has moved or closed.
_LINGER = 0.5


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be seen and touched on a desktop.

    Args:
        open_windows: opens a connection to the desktop's windows.
        own: the windows of our terminal.
        pages: whether a browser that shows our page may be on this desktop; False for a sandbox.
        placed: whether the desktop knows where our own windows are, so that they can be blanked.
        leaving: what may be sent to a model on another machine; None for the model of the run.
    """

    open_windows: OpenWindows
    own: frozenset[WindowId] = frozenset()
    placed: bool = True
    leaving: Leaving | None = None
    pages: bool = False

    @property
    def may_own(self) -> bool:
        return bool(self.own) or (self.pages and is_page_served())

    def ours(self, windows: Windows) -> frozenset[WindowId]:
        if not (self.pages and is_page_served()):
            return self.own
        return self.own | {one.id for one in windows.windows() if shows_our_page(one.title)}

    def owns(self, window: Window | None) -> bool:
        return window is not None and (window.id in self.own or (self.pages and shows_our_page(window.title)))

    def needed_windows(self, windows: Connection) -> Windows | None:
        """Return the windows; None if unknown. Raises EnvironmentLacksError if our own or hidden ones must be known."""
        return windows.need() if self.own or self.leaving else windows.get()

    def receiver(self, windows: Windows) -> Window | None:
        """Return the window that receives typed text: the focused one or, if that is ours, the one used before it."""
        active = windows.active()
        if active is None or not self.owns(active):
            return active
        own = self.ours(windows)
        others = (one for one in reversed(windows.stacking()) if one not in own and windows.is_ordinary(one))
        other = next(others, None)
        return active if other is None else windows.window(other)

    def hidden(self, windows: Windows) -> list[Region]:
        """Return the visible parts of hidden windows and of their programs' menus."""
        found = windows.visible(own) if (own := self.ours(windows)) else []
        if self.leaving is None:
            return found
        hides = self.leaving.hides
        if not (hidden := frozenset(one.id for one in windows.windows() if hides(one.app, one.title))):
            return found
        layers = windows.layers()
        programs = {layer.client for layer in layers if layer.window.id in hidden} - {None}
        menus = [layer.outer for layer in layers if layer.helper and layer.client in programs]
        return [*found, *windows.visible(hidden), *menus]

    def conceal(
        self, is_secret: Callable[[str], bool], frame: Frame | None, outline: Outline
    ) -> tuple[Frame | None, Outline]:
        """Return a copy of a capture and its outline without elements that name hidden windows or hold secrets.

        `is_secret` returns whether a text contains a known secret.
        """
        leaving = self.leaving or Leaving()
        hidden = [one for one in outline.windows if leaving.hides(one.app, one.title)]
        titles = {one.title for one in hidden if one.title}
        naming = [one for one in outline.elements if any(title in one.name for title in titles)]  # in a task list
        secret = [
            one for one in outline.elements if holds_secret(one) or is_secret(one.value or "") or is_secret(one.name)
        ]
        if frame is not None and (naming or secret):
            frame = replace(frame, image=frame.image.copy())
            for one in (*naming, *secret):
                blank(frame, one.box, BLACK)
        left_out = {one.id for one in naming}
        elements = tuple(
            replace(one, value=None) if holds_secret(one) else one
            for one in outline.elements
            if one.id not in left_out and one.window not in titles and not leaving.hides_element(one)
        )
        windows = tuple(one for one in outline.windows if one not in hidden)
        return frame, replace(outline, elements=elements, windows=windows)


class MaskedScreen:
    """A `Screen` that blanks everything out of sight.

    For a model on another machine it uses the run's screen, which `close` leaves open. If windows must be hidden
    and the desktop does not know its windows, `grab` raises EnvironmentLacksError.
    """

    def __init__(self, screen: Screen, reach: Reach) -> None:
        self._screen = screen
        self._reach = reach
        self._colour = _GREY if reach.leaving is None else BLACK
        self._windows = Connection(reach.open_windows)
        self._seen: list[tuple[list[Region], float]] = []

    def grab(self) -> Frame:
        """Capture, and blank the places of hidden windows just before and just after: windows may move meanwhile.

        Also blank their places of the last half second: without a compositor, the windows below take time to redraw.
        """
        self._note_hidden()
        frame = self._screen.grab()
        self._note_hidden()
        for regions, _ in self._seen:
            for region in regions:
                blank(frame, region, self._colour)
        for region in self._reach.leaving.regions if self._reach.leaving else ():
            blank(frame, region, self._colour)
        return frame

    def _note_hidden(self) -> None:
        reach = self._reach
        hides = (reach.may_own and reach.placed) or bool(reach.leaving and reach.leaving.hide)
        if hides and (windows := reach.needed_windows(self._windows)) is not None:
            regions, now = reach.hidden(windows), time.monotonic()
            recent = [(known, last) for known, last in self._seen if now - last < _LINGER and known != regions]
            self._seen = [*recent, (regions, now)]

    def close(self) -> None:
        self._windows.close()
        if self._reach.leaving is None:
            self._screen.close()


def _unless_ours(ask: Callable[[Elements], T | None]) -> Callable[["MaskedElements"], T | None]:
    """Return a method that asks about the active window; None if that is ours."""

    def asked(self: "MaskedElements") -> T | None:
        return ask(self._elements) if self._has_foreign_focus() else None

    return asked


class MaskedElements:
    """`Elements` without those on our own windows. Used from the thread that created it."""

    def __init__(self, elements: Elements, reach: Reach) -> None:
        self._elements = elements
        self._reach = reach
        self._windows = Connection(reach.open_windows)

    def outline(self) -> Outline:
        outline, windows = self._elements.outline(), self._own_among()
        if windows is None:
            return outline
        own = self._reach.ours(windows)
        covered, places = windows.visible(own), [windows.region(one) for one in own]
        elements = tuple(one for one in outline.elements if not any(part.contains(one.box.middle) for part in covered))
        # A browser that draws its own frame has another box here.
        kept = (one for one in outline.windows if one.box not in places and not shows_our_page(one.title))
        return replace(outline, elements=elements, windows=tuple(kept))

    def at(self, point: DesktopPoint) -> Element | None:
        windows = self._own_among()
        covered = [] if windows is None else windows.visible(self._reach.ours(windows))
        return None if any(part.contains(point) for part in covered) else self._elements.at(point)

    focused = _unless_ours(lambda elements: elements.focused())
    field_text = _unless_ours(lambda elements: elements.field_text())
    fields = _unless_ours(lambda elements: elements.fields())
    dialogs = _unless_ours(lambda elements: elements.dialogs())
    default_button = _unless_ours(lambda elements: elements.default_button())
    page = _unless_ours(lambda elements: elements.page())

    def close(self) -> None:
        self._windows.close()
        self._elements.close()

    def _has_foreign_focus(self) -> bool:
        windows = self._own_among()
        return windows is None or ((active := windows.active()) is not None and not self._reach.owns(active))

    def _own_among(self) -> Windows | None:
        """Return the windows if ours may be among them; None if ours cannot be, or if the windows are unknown."""
        return self._reach.needed_windows(self._windows) if self._reach.may_own else None


def blank(frame: Frame, region: Region, colour: tuple[int, int, int]) -> None:
    """Fill a region of the desktop with a colour in a capture, in place."""
    monitor, (scale_x, scale_y) = frame.viewport.region, frame.viewport.scale
    left, top = (region.left - monitor.left) * scale_x, (region.top - monitor.top) * scale_y
    right, bottom = left + region.width * scale_x, top + region.height * scale_y
    far = min(frame.image.width, math.ceil(right)), min(frame.image.height, math.ceil(bottom))
    box = (max(0, math.floor(left)), max(0, math.floor(top)), *far)
    if box[0] < box[2] and box[1] < box[3]:
        frame.image.paste(colour, box)
