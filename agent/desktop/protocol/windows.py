"""The windows of a desktop, as far as it tells them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agent.core.geometry import Region
from agent.screen.outline import ShownWindow
from foundation.errors import EnvironmentLacksError

#: How a desktop identifies a window; means nothing elsewhere.
WindowId: TypeAlias = Hashable
#: The purpose of a window: a dialog of another window, or the desktop itself below all others.
WindowKind: TypeAlias = Literal["dialog", "backdrop", ""]


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window."""

    id: WindowId
    title: str
    app: str  # the name of the application's class, such as Firefox
    pid: int | None  # the process that shows it; None if unknown


@dataclass(frozen=True, slots=True)
class Layer:
    """Something shown on the desktop: a top-level window, or a helper of one (a menu, a tool tip)."""

    window: Window
    box: Region  # its contents, without the frame around it and without the shadow that it draws itself
    outer: Region  # with that frame
    helper: bool = False  # no window manager cares for it
    backdrop: bool = False  # the desktop itself, below everything
    passing: bool = False  # a tool tip: it is gone before a click arrives
    client: Hashable = None  # the program that shows it; a program's windows have it in common
    kinds: frozenset[str] = frozenset()  # its types in EWMH's words: MENU, DOCK, NOTIFICATION and so on
    surface: tuple[int, int] | None = None  # where its own coordinates begin, where it knows no others (Wayland)


class Windows(Protocol):
    """A connection to the windows, used from one thread.

    Every method but `close` raises EnvironmentLacksError if the connection was lost.
    """

    def windows(self) -> list[Window]:
        """Return all top-level windows, in the order in which they appeared."""

    def window(self, identifier: WindowId) -> Window | None:
        """Return a window; None if it is gone."""

    def active(self) -> Window | None:
        """Return the window that has the focus."""

    def stacking(self) -> list[WindowId]:
        """Return all top-level windows, the lowest first."""

    def at(self, x: int, y: int) -> Window | None:
        """Return the top-most window at a point of the desktop; for a menu or other helper, its owner."""

    def region(self, identifier: WindowId) -> Region | None:
        """Return where a window is, without its frame; None if it is gone."""

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """Return the parts of these windows that nothing covers. Asked often, and always for the same windows."""

    def layers(self) -> list[Layer]:
        """Return what is shown, the top-most first."""

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Return the layers, by their windows, that get a click at these points; None for none."""

    def is_ordinary(self, identifier: WindowId) -> bool:
        """Whether a window is there to be worked with: shown, and neither a panel nor the desktop itself."""

    def kind(self, identifier: WindowId) -> WindowKind:
        """Return the purpose of a window; "" for any other, and if it is gone."""

    def pointer(self) -> tuple[int, int]:
        """Return where the pointer is."""

    def activate(self, identifier: WindowId) -> bool:
        """Bring a window to the front; False if it is gone."""

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:
        """Return the window that a terminal names in the environment of its programs; None if it names none."""

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the calling thread; None where windows are unknown.
OpenWindows: TypeAlias = Callable[[], Windows | None]


class Connection:
    """One thread's connection to the windows, opened at first use, and again after `close`."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open = open_windows
        self._windows: Windows | None = None

    def get(self) -> Windows | None:
        """Return the connection; None where windows are unknown."""
        self._windows = self._windows or self._open()
        return self._windows

    def need(self) -> Windows:
        """Return the connection. Raises EnvironmentLacksError if windows are unknown."""
        windows = self.get()
        if windows is None:
            raise EnvironmentLacksError("The desktop tells no more of its windows.", "Is the display still there?")
        return windows

    def close(self) -> None:
        """Close it."""
        windows, self._windows = self._windows, None
        if windows is not None:
            windows.close()


def shown(windows: Windows) -> list[ShownWindow]:
    """Return the windows that are there to be worked with, the top-most first. Raises EnvironmentLacksError."""
    active = windows.active()
    found = []
    for identifier in reversed(windows.stacking()):
        if not windows.is_ordinary(identifier):
            continue
        window, region = windows.window(identifier), windows.region(identifier)
        if window is not None and region is not None:
            found.append(ShownWindow(window.title, window.app, region, active is not None and active.id == identifier))
    return found
