"""A throw-away desktop whose windows are opened, placed and painted, to take pictures of it with its elements."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Self, TypeVar

from agent.core.actions import Click, Move
from agent.core.geometry import DesktopPoint, Region
from agent.desktop.factory import open_desktop
from agent.desktop.protocol.windows import WindowId, Windows
from agent.run.observing.outliner import Eye
from agent.safety.stop import StopSwitch
from agent.sandbox.desktop import Sandbox
from agent.screen.capture import Frame
from agent.screen.ocr import reading_languages
from agent.screen.outline import Outline
from agent.screen.settle import SettleRule, settle
from foundation.errors import EnvironmentLacksError

T = TypeVar("T")

#: Seconds for a program to show its window: the slowest here, GNOME's settings, takes 4 on two busy cores.
_PATIENCE = 30.0
_POLL = 0.05
#: A new window is drawn in several steps.
_STILL = SettleRule(quiet=0.6, cap=8.0)
#: A window may report elements late: GTK 4, while a page fades in.
_MOST_LOOKS = 5


class Stage:
    """The windows of a running sandbox (X11); a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.box = sandbox
        self.desktop = open_desktop(StopSwitch(), None, sandbox.environ)
        windows = self.desktop.open_windows()
        if windows is None:
            raise EnvironmentLacksError("The throw-away desktop does not list its windows.")
        self.manager: Windows = windows
        self._eye = Eye(self.desktop, reading_languages(sandbox.environ)[0], ours=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self._eye), closing(self.manager), closing(self.desktop.hand):
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
        return [one for one in self.manager.stacking() if self.manager.is_ordinary(one)]

    def place(self, window: WindowId, region: Region | None) -> None:
        """Bring a window to the front; with a region, move and resize it first, as far as it allows."""
        if region is not None:
            self.manager.place(window, region)
        self.manager.activate(window)
        self._wait(lambda: (active := self.manager.active()) is not None and active.id == window)

    def clear(self) -> None:
        """Close all windows."""
        self._wait(lambda: all(not self.manager.dismiss(one) for one in self.windows()))

    def point_at(self, x: int, y: int) -> None:
        """Move the pointer."""
        self.desktop.hand.perform(Move(DesktopPoint(x, y)))

    def click(self, point: DesktopPoint) -> None:
        """Press the left button at a point."""
        self.desktop.hand.perform(Click(point))

    def paint(self, commands: Sequence[Sequence[str]]) -> None:
        """Run the commands that set a theme."""
        for command in commands:
            self.box.run(*command)

    def look(self) -> tuple[Frame, Outline]:
        """Return the screen, once it is still, and its elements, once two looks agree. Raises EnvironmentLacksError."""
        settle(self.desktop.screen, _STILL)
        frame, outline = self._eye.look()
        for _ in range(_MOST_LOOKS):
            time.sleep(_STILL.quiet)
            before, (frame, outline) = outline, self._eye.look()
            if outline.elements == before.elements:
                break
        return frame, outline

    def tops(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Return, for each point, the window that gets a click there."""
        return self.manager.layers_at(points)

    def layers(self) -> list[Region]:
        """Return the regions of all windows with their frames, panels and open menus, the topmost first."""
        return [layer.outer for layer in self.manager.layers()]

    def _wait(self, found: Callable[[], T | None]) -> T | None:
        end = time.monotonic() + _PATIENCE
        while not (result := found()) and time.monotonic() < end:
            time.sleep(_POLL)
        return result
