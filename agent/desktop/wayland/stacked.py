"""Window queries for compositors that describe all windows at once, answered from positions and stacking order."""

from abc import abstractmethod
from dataclasses import dataclass

from agent.core.geometry import DesktopPoint, Region, without
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind, Windows


@dataclass(frozen=True, slots=True)
class StackedWindow:
    """A window as a compositor describes it."""

    layer: Layer
    visible: bool
    focused: bool
    kind: WindowKind
    order: int  # increases with the order in which windows opened
    #: The window that a menu or tooltip belongs to; None for windows.
    owner: WindowId | None = None

    @property
    def id(self) -> WindowId:
        """The window's id."""
        return self.layer.window.id


class StackedWindows(Windows):
    """The windows of a compositor that describes all windows at once."""

    @abstractmethod
    def read(self) -> list[StackedWindow]:
        """Return all windows, lowest first; hidden windows come before visible ones. Raises EnvironmentLacksError."""

    @abstractmethod
    def bring(self, identifier: WindowId) -> bool:
        """Bring an existing window to the front. Return whether that worked."""

    def windows(self) -> list[Window]:
        return [one.layer.window for one in sorted(self._listed(), key=lambda one: one.order)]

    def active(self) -> Window | None:
        return next((one.layer.window for one in self._listed() if one.focused), None)

    def stacking(self) -> list[WindowId]:
        return [one.id for one in self._listed()]

    def at(self, x: int, y: int) -> Window | None:
        point = DesktopPoint(x, y)
        windows = self.read()
        top = next((one for one in reversed(windows) if one.visible and one.layer.outer.contains(point)), None)
        if top is None or top.owner is None:
            return None if top is None else top.layer.window
        return next((one.layer.window for one in windows if one.id == top.owner), top.layer.window)

    def region(self, identifier: WindowId) -> Region | None:
        found = self._find(identifier)
        return None if found is None else found.layer.box

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        covered: list[Region] = []
        seen: list[Region] = []
        for layer in self.layers():
            if layer.window.id in identifiers:
                parts = [layer.outer]
                for cover in covered:
                    parts = [rest for part in parts for rest in without(part, cover)]
                seen += parts
            covered.append(layer.outer)
        return seen

    def layers(self) -> list[Layer]:
        return [one.layer for one in reversed(self.read()) if one.visible]

    def is_ordinary(self, identifier: WindowId) -> bool:
        found = self._find(identifier)
        return found is not None and found.visible and not found.layer.backdrop and not found.layer.kinds

    def kind(self, identifier: WindowId) -> WindowKind:
        found = self._find(identifier)
        return "" if found is None else found.kind

    def activate(self, identifier: WindowId) -> bool:
        return self._find(identifier) is not None and self.bring(identifier)

    def _listed(self) -> list[StackedWindow]:
        return [one for one in self.read() if not one.layer.helper]

    def _find(self, identifier: WindowId) -> StackedWindow | None:
        return next((one for one in self._listed() if one.id == identifier), None)
