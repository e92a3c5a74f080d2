"""Keeps what is on our own windows out of the elements of a screen."""

from dataclasses import replace

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.elements import Elements, FieldText
from agent.desktop.protocol.windows import Connection, OpenWindows, WindowId, Windows
from agent.screen.outline import Element, Outline
from foundation.errors import EnvironmentLacksError


class MaskedElements:
    """`Elements` of which none lies on our own windows; used from the thread that made it."""

    def __init__(self, elements: Elements, own: frozenset[WindowId], open_windows: OpenWindows) -> None:
        self._elements = elements
        self._own = own
        self._windows = Connection(open_windows)

    def outline(self) -> Outline:
        covered, ours = self._ours()
        told = self._elements.outline()
        elements = tuple(one for one in told.elements if not any(part.contains(_middle(one.box)) for part in covered))
        windows = tuple(window for window in told.windows if window.box not in ours)
        return replace(told, elements=elements, windows=windows)

    def at(self, point: DesktopPoint) -> Element | None:
        covered, _ = self._ours()
        return None if any(part.contains(point) for part in covered) else self._elements.at(point)

    def focused(self) -> Element | None:
        active = self._connected().active()
        return None if active is None or active.id in self._own else self._elements.focused()

    def field_text(self) -> FieldText | None:
        active = self._connected().active()
        return None if active is None or active.id in self._own else self._elements.field_text()

    def close(self) -> None:
        self._windows.close()
        self._elements.close()

    def _ours(self) -> tuple[list[Region], list[Region]]:
        """What is to be seen of our windows, and where they are."""
        windows = self._connected()
        places = (windows.region(one) for one in self._own)
        return windows.visible(self._own), [place for place in places if place is not None]

    def _connected(self) -> Windows:
        windows = self._windows.get()
        if windows is None:
            raise EnvironmentLacksError("The desktop tells no more of its windows.", "Is the display still there?")
        return windows


def _middle(box: Region) -> DesktopPoint:
    return DesktopPoint(box.left + box.width / 2, box.top + box.height / 2)
