"""The windows of a desktop, as far as it tells of them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from agent.core.geometry import Region
from agent.screen.outline import ShownWindow

#: What a desktop calls a window by; means nothing elsewhere.
WindowId: TypeAlias = Hashable


#: What a window is there for: it asks something of whoever uses another one, or is the desktop below all others.
WindowKind: TypeAlias = Literal["dialog", "backdrop", ""]


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window."""

    id: WindowId
    title: str
    app: str  # the name of the application's class, such as Firefox
    pid: int | None  # the process that shows it; None where that is not known


@dataclass(frozen=True, slots=True)
class Layer:
    """Something that is shown on the desktop: a top-level window, or a helper of one (a menu, a tool tip)."""

    window: Window
    box: Region  # of its contents, without the frame around it and without the shadow that it draws itself
    outer: Region  # with that frame
    helper: bool = False  # no window manager cares for it
    backdrop: bool = False  # the desktop itself, below everything
    passing: bool = False  # a tool tip: it is gone before a click arrives
    client: Hashable = None  # which program shows it; a program's windows have it in common
    kinds: frozenset[str] = frozenset()  # what it says that it is (EWMH's words): MENU, DOCK, NOTIFICATION and so on
    surface: tuple[int, int] | None = None  # where its own coordinates begin, where it knows no others (Wayland)


class Windows(Protocol):
    """One user's connection to the windows, used from one thread.

    Every method but `close` raises EnvironmentLacksError where the connection was lost.
    """

    def windows(self) -> list[Window]:
        """All top-level windows, in the order in which they appeared."""

    def window(self, identifier: WindowId) -> Window | None:
        """One of them; None when it is gone."""

    def active(self) -> Window | None:
        """The window that has the focus."""

    def stacking(self) -> list[WindowId]:
        """All top-level windows, the lowest first."""

    def at(self, x: int, y: int) -> Window | None:
        """The top-most window at a point of the desktop; a menu or other helper counts as the window that it is of."""

    def region(self, identifier: WindowId) -> Region | None:
        """Where a window is, without its frame; None when it is gone."""

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """The parts of these windows that nothing covers. Asked often, and always for the same ones."""

    def layers(self) -> list[Layer]:
        """What is shown, the top-most first."""

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """Which layer, by its window, gets a click at each of these points; None for none."""

    def is_ordinary(self, identifier: WindowId) -> bool:
        """Whether a window is there to be worked with: shown, and neither a panel nor the desktop itself."""

    def kind(self, identifier: WindowId) -> WindowKind:
        """What a window is there for; "" for anything else, and when it is gone."""

    def pointer(self) -> tuple[int, int]:
        """Where the pointer is."""

    def activate(self, identifier: WindowId) -> bool:
        """Bring a window to the front; False when it is not there any more."""

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:
        """The window that a terminal tells the programs in it, by their environment; None where none is told."""

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the thread that calls it; None where windows are unknown.
OpenWindows: TypeAlias = Callable[[], Windows | None]


class Connection:
    """One thread's connection to the windows, opened when it is first needed, and anew after it was dropped."""

    def __init__(self, open_windows: OpenWindows) -> None:
        self._open = open_windows
        self._windows: Windows | None = None

    def get(self) -> Windows | None:
        """The connection; None where windows are unknown."""
        self._windows = self._windows or self._open()
        return self._windows

    def close(self) -> None:
        """Close it; the next `get` opens another one."""
        windows, self._windows = self._windows, None
        if windows is not None:
            windows.close()


def receiver(windows: Windows, own: frozenset[WindowId]) -> Window | None:
    """The window that will get what is typed: the one with the focus or, where that is ours, the one used before it."""
    active = windows.active()
    if active is None or active.id not in own:
        return active
    others = (one for one in reversed(windows.stacking()) if one not in own and windows.is_ordinary(one))
    other = next(others, None)
    return active if other is None else windows.window(other)


def shown(windows: Windows) -> list[ShownWindow]:
    """The windows that are there to be worked with, the top-most first. Raises EnvironmentLacksError."""
    active = windows.active()
    found = []
    for identifier in reversed(windows.stacking()):
        if not windows.is_ordinary(identifier):
            continue
        window, region = windows.window(identifier), windows.region(identifier)
        if window is not None and region is not None:
            found.append(ShownWindow(window.title, window.app, region, active is not None and active.id == identifier))
    return found
