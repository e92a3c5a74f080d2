"""A throw-away desktop whose windows are opened, placed and painted, to take pictures of it with its elements."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Self, TypeVar

from agent.core.actions import Click, Move
from agent.core.geometry import DesktopPoint, Region
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.windows import WindowId, Windows
from agent.run.observing.eye import Eye
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox
from agent.screen.capture import Frame
from agent.screen.ocr import reading_languages
from agent.screen.outline import Outline
from agent.screen.settle import SettleRule, settle
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image

T = TypeVar("T")

#: Seconds for a program to show its window: the slowest here, GNOME's settings, takes 4 on two busy cores.
_PATIENCE = 30.0
_POLL = 0.05
#: A window that has just come up is drawn in several goes.
_STILL = SettleRule(quiet=0.6, cap=8.0)
#: ... and may tell of its elements late: GTK 4, while a page fades in.
_MOST_LOOKS = 5


class Stage:
    """The windows of a running sandbox (X11); a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.box = sandbox
        self._desktop = open_desktop(StopSwitch(), None, sandbox.environ)
        windows = self._desktop.open_windows()
        if windows is None:
            raise EnvironmentLacksError("The throw-away desktop does not tell of its windows.")
        self._windows: Windows = windows
        self._eye = Eye(self._desktop, reading_languages(sandbox.environ)[0], ours=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._eye), closing(self._windows), closing(self._desktop.hand):
            pass

    def open(self, command: Sequence[str]) -> WindowId:
        """Start a program, and return its first new window. Raises EnvironmentLacksError: none appears."""
        before = set(self.windows())
        try:
            self.box.start(*command)
        except OSError as error:
            raise EnvironmentLacksError(f"{command[0]} cannot be started ({error.strerror}).") from error
        new = self._wait(lambda: next((one for one in self.windows() if one not in before), None))
        if new is None:
            raise EnvironmentLacksError(f"{command[0]} shows no window.", "Is the machine very busy?")
        return new

    def windows(self) -> list[WindowId]:
        """Return the ordinary windows, the lowest first."""
        return [one for one in self._windows.stacking() if self._windows.is_ordinary(one)]

    def place(self, window: WindowId, region: Region | None) -> None:
        """Move and resize a window, as far as it lets itself, if there is a region, and bring it to the front."""
        if region is not None:
            self._windows.place(window, region)
        self._windows.activate(window)
        self._wait(lambda: (active := self._windows.active()) is not None and active.id == window)

    def region(self, window: WindowId) -> Region | None:
        """Return a window's region without its frame; None if it is gone."""
        return self._windows.region(window)

    def title(self, window: WindowId) -> str:
        """Return a window's title; "" if it is gone."""
        found = self._windows.window(window)
        return "" if found is None else found.title

    def dismiss(self, window: WindowId) -> bool:
        """Ask a window to close; False if it is gone."""
        return self._windows.dismiss(window)

    def applications(self) -> list[str]:
        """Return the names of the installed applications."""
        return self._desktop.applications.names()

    def picture(self) -> "Image":
        """Return the screen now."""
        return self._desktop.screen.grab().image

    def clear(self) -> None:
        """Close all windows."""
        self._wait(lambda: all(not self.dismiss(one) for one in self.windows()))

    def point_at(self, x: int, y: int) -> None:
        """Move the pointer."""
        self._desktop.hand.perform(Move(DesktopPoint(x, y)))

    def click(self, point: DesktopPoint) -> None:
        """Press the left button at a point."""
        self._desktop.hand.perform(Click(point))

    def paint(self, commands: Sequence[Sequence[str]]) -> None:
        """Run the commands that set a theme."""
        for command in commands:
            self.box.run(*command)

    def look(self) -> tuple[Frame, Outline]:
        """Return the screen, once it is still, and its elements, once two looks agree. Raises EnvironmentLacksError."""
        settle(self._desktop.screen, _STILL)
        frame, outline = self._eye.look()
        for _ in range(_MOST_LOOKS):
            time.sleep(_STILL.quiet)
            before, (frame, outline) = outline, self._eye.look()
            if outline.elements == before.elements:
                break
        return frame, outline

    def tops(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Return, for each point, the window that gets a click there."""
        return self._windows.layers_at(points)

    def layers(self) -> list[Region]:
        """Return the regions of all windows with their frames, panels and open menus, the topmost first."""
        return [layer.outer for layer in self._windows.layers()]

    def _wait(self, found: Callable[[], T | None]) -> T | None:
        end = time.monotonic() + _PATIENCE
        while not (result := found()) and time.monotonic() < end:
            time.sleep(_POLL)
        return result
