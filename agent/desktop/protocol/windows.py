"""The windows of a desktop, as far as the desktop exposes them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agent.core.geometry import DesktopPoint, Region
from agent.screen.outline import ShownWindow
from foundation.errors import EnvironmentLacksError

#: The desktop's identifier of a window; opaque to everything else.
WindowId: TypeAlias = Hashable
#: The purpose of a window: a dialog of another window, or the desktop itself below all others.
WindowKind: TypeAlias = Literal["dialog", "backdrop", ""]


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window."""

    id: WindowId
    title: str
    app: str  # the name of the application's class, such as Firefox
    pid: int | None  # the process that owns it; None if unknown


@dataclass(frozen=True, slots=True)
class Layer:
    """A top-level window on the desktop, or one of its helpers (a menu, a tooltip)."""

    window: Window
    box: Region  # the contents, without the frame and without a shadow that the window draws itself
    outer: Region  # the contents with the frame
    helper: bool = False  # not managed by the window manager
    backdrop: bool = False  # the desktop itself, below everything
    passing: bool = False  # a tooltip, which disappears before a click arrives
    client: Hashable = None  # the program that shows it, the same for all windows of the program
    kinds: frozenset[str] = frozenset()  # its EWMH window types: MENU, DOCK, NOTIFICATION and so on
    surface: tuple[int, int] | None = None  # the origin of its own coordinates, if it knows no others (Wayland)


class Windows(Protocol):
    """A connection to the windows, used from one thread. Methods with a body are for desktops that report no more.

    Every method but `close` raises EnvironmentLacksError if the connection was lost.
    """

    def windows(self) -> list[Window]:
        """Return all top-level windows, oldest first."""

    def window(self, identifier: WindowId) -> Window | None:
        """Return a window; None if it is gone."""
        return next((one for one in self.windows() if one.id == identifier), None)

    def active(self) -> Window | None:
        """Return the window that has the focus."""

    def stacking(self) -> list[WindowId]:
        """Return all top-level windows in stacking order, the lowest first."""

    def at(self, x: int, y: int) -> Window | None:  # noqa: ARG002
        """Return the topmost window at a point of the desktop; for a menu or other helper, its owner."""
        return None

    def region(self, identifier: WindowId) -> Region | None:  # noqa: ARG002
        """Return a window's region without its frame; None if the window is gone."""
        return None

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """Return the parts of these windows that nothing covers. Called often, always for the same windows."""

    def layers(self) -> list[Layer]:
        """Return the visible layers, the topmost first."""
        return []

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Return, for each point, the window whose layer gets a click there; None if there is none."""
        layers, places = self.layers(), [DesktopPoint(*map(float, point)) for point in points]
        return [next((one.window.id for one in layers if one.outer.contains(place)), None) for place in places]

    def is_ordinary(self, identifier: WindowId) -> bool:
        """Whether a window is shown, and neither a panel nor the desktop itself."""

    def kind(self, identifier: WindowId) -> WindowKind:
        """Return the kind of a window; "" for a normal window, and if it is gone."""

    def pointer(self) -> tuple[int, int]:
        """Return where the pointer is."""

    def activate(self, identifier: WindowId) -> bool:
        """Bring a window to the front; False if it is gone."""

    def place(self, identifier: WindowId, region: Region) -> bool:  # noqa: ARG002
        """Ask for a window's place and size, without its frame; False if it is gone, or this desktop cannot."""
        return False

    def dismiss(self, identifier: WindowId) -> bool:  # noqa: ARG002
        """Ask a window to close; False if it is gone, or this desktop cannot."""
        return False

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:  # noqa: ARG002
        """Return the terminal window that the environment names (as in WINDOWID); None if it names none."""
        return None

    def announced_bus(self) -> str:
        """Return the address of the accessibility bus that the display announces; "" if it announces none."""
        return ""

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the calling thread; None if windows are unknown.
OpenWindows: TypeAlias = Callable[[], Windows | None]


class Connection:
    """One thread's connection to the windows, opened at first use and reopened after `close`."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open = open_windows
        self._windows: Windows | None = None

    def get(self) -> Windows | None:
        """Return the connection; None if windows are unknown."""
        self._windows = self._windows or self._open()
        return self._windows

    def need(self) -> Windows:
        """Return the connection. Raises EnvironmentLacksError if windows are unknown."""
        windows = self.get()
        if windows is None:
            raise EnvironmentLacksError("The desktop no longer reports its windows.", "Is the display still there?")
        return windows

    def close(self) -> None:
        """Close the connection."""
        windows, self._windows = self._windows, None
        if windows is not None:
            windows.close()


def shown(windows: Windows) -> list[ShownWindow]:
    """Return the ordinary windows (see `is_ordinary`), the topmost first. Raises EnvironmentLacksError."""
    active = windows.active()
    found = []
    for identifier in reversed(windows.stacking()):
        if not windows.is_ordinary(identifier):
            continue
        window, region = windows.window(identifier), windows.region(identifier)
        if window is not None and region is not None:
            found.append(ShownWindow(window.title, window.app, region, active is not None and active.id == identifier))
    return found
