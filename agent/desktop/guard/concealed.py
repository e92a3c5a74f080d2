"""The screen as it may leave this machine: hidden windows, hidden regions and fields for secrets are black."""

from collections.abc import Callable
from dataclasses import replace

from agent.core.geometry import Region
from agent.desktop.guard.masked_screen import MaskedScreen, blank
from agent.desktop.protocol.windows import OpenWindows, Windows
from agent.safety.disclosure import Leaving, holds_secret
from agent.screen.capture import Frame, Screen
from agent.screen.outline import Element, Outline

BLACK = (0, 0, 0)


class BorrowedScreen:
    """A `Screen` that somebody else closes."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def grab(self) -> Frame:
        return self._screen.grab()

    def close(self) -> None:
        """Leave it open."""


class ConcealedScreen:
    """A `Screen` without what a policy hides; the screen below stays open when this one is closed.

    Where windows are to be hidden and the desktop does not tell of its windows, `grab` raises EnvironmentLacksError.
    """

    def __init__(self, screen: Screen, leaving: Leaving, open_windows: OpenWindows) -> None:
        borrowed = BorrowedScreen(screen)
        self._leaving = leaving
        self._screen: Screen = borrowed
        if leaving.hide:
            self._screen = MaskedScreen(borrowed, self._hidden, open_windows, BLACK)

    def grab(self) -> Frame:
        """Capture what may be seen."""
        frame = self._screen.grab()
        for region in self._leaving.regions:
            blank(frame, region, BLACK)
        return frame

    def close(self) -> None:
        """Close the connection to the windows."""
        self._screen.close()

    def _hidden(self, windows: Windows) -> list[Region]:
        """Where hidden windows are to be seen, and menus and the like of the programs that show them."""
        hides = self._leaving.hides
        hidden = frozenset(one.id for one in windows.windows() if hides(one.app, one.title))
        if not hidden:
            return []
        layers = windows.layers()
        programs = {layer.client for layer in layers if layer.window.id in hidden} - {None}
        helpers = [layer.outer for layer in layers if layer.helper and layer.client in programs]
        return [*windows.visible(hidden), *helpers]


class Concealer:
    """Takes out of a picture and its outline what only the outline tells.

    Args:
        leaving: what is hidden.
        is_secret: whether a text holds a secret that is known.
    """

    def __init__(self, leaving: Leaving, is_secret: Callable[[str], bool]) -> None:
        self._leaving = leaving
        self._is_secret = is_secret

    def __call__(self, frame: Frame | None, outline: Outline) -> tuple[Frame | None, Outline]:
        """Both without hidden windows, regions and fields for secrets; the picture that is given stays as it is."""
        leaving = self._leaving
        hidden = [one for one in outline.windows if leaving.hides(one.app, one.title)]
        titles = {one.title for one in hidden if one.title}
        naming = [one for one in outline.elements if any(title in one.name for title in titles)]  # in a task list
        secret = [one for one in outline.elements if self._holds_secret(one)]
        if frame is not None and (naming or secret):
            frame = replace(frame, image=frame.image.copy())
            for one in (*naming, *secret):
                blank(frame, one.box, BLACK)
        left_out = {one.id for one in naming}
        elements = tuple(
            replace(one, value=None) if holds_secret(one) else one
            for one in outline.elements
            if one.id not in left_out and one.window not in titles and not leaving.keeps_element(one)
        )
        windows = tuple(one for one in outline.windows if one not in hidden)
        return frame, replace(outline, elements=elements, windows=windows)

    def _holds_secret(self, element: Element) -> bool:
        return holds_secret(element) or any(self._is_secret(text) for text in (element.value or "", element.name))
