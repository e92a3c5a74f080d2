"""The windows of sway, as its tree tells of them. Other compositors of this kind do not tell where a window is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.desktop.windows import Layer, Window, WindowId, WindowKind
from agent.desktop.wlroots.input import Pointer
from agent.desktop.wlroots.sway import GET_TREE, RUN_COMMAND, Sway, open_sway
from agent.geometry import DesktopPoint, Region, without


@dataclass(frozen=True, slots=True)
class _Shown:
    """A window in the tree."""

    layer: Layer
    visible: bool
    focused: bool
    floating: bool
    on_top: bool  # it fills its monitor, above all else there

    @property
    def id(self) -> WindowId:
        return self.layer.window.id


class SwayWindows:
    """See `Windows`. Panels and notifications (layer shells) and open menus are not in the tree.

    Args:
        sway: a connection; closed with this.
        pointer: where our pointer is.
    """

    def __init__(self, sway: Sway, pointer: Pointer) -> None:
        self._sway = sway
        self._pointer = pointer

    def windows(self) -> list[Window]:
        """See `Windows.windows`."""
        return sorted((one.layer.window for one in self._read()), key=lambda window: int(str(window.id)))

    def window(self, identifier: WindowId) -> Window | None:
        """See `Windows.window`."""
        found = self._find(identifier)
        return None if found is None else found.layer.window

    def active(self) -> Window | None:
        """See `Windows.active`."""
        return next((one.layer.window for one in self._read() if one.focused), None)

    def stacking(self) -> list[WindowId]:
        """See `Windows.stacking`."""
        return [one.id for one in self._read()]

    def at(self, x: int, y: int) -> Window | None:
        """See `Windows.at`."""
        point = DesktopPoint(x, y)
        return next((one.window for one in self.layers() if one.outer.contains(point)), None)

    def region(self, identifier: WindowId) -> Region | None:
        """See `Windows.region`."""
        found = self._find(identifier)
        return None if found is None else found.layer.box

    def visible(self, identifiers: frozenset[WindowId]) -> list[Region]:
        """See `Windows.visible`."""
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
        """See `Windows.layers`."""
        return [one.layer for one in reversed(self._read()) if one.visible]

    def layers_at(self, points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
        """See `Windows.layers_at`."""
        layers = self.layers()

        def top(point: DesktopPoint) -> WindowId | None:
            return next((layer.window.id for layer in layers if layer.outer.contains(point)), None)

        return [top(DesktopPoint(*point)) for point in points]

    def is_ordinary(self, identifier: WindowId) -> bool:
        """See `Windows.is_ordinary`."""
        found = self._find(identifier)
        return found is not None and found.visible

    def kind(self, identifier: WindowId) -> WindowKind:
        """See `Windows.kind`: sway lets dialogs float, and other windows only when it is told to."""
        found = self._find(identifier)
        return "dialog" if found is not None and found.floating else ""

    def pointer(self) -> tuple[int, int]:
        """See `Windows.pointer`: where our own was put last, as no other is told."""
        return self._pointer.at

    def activate(self, identifier: WindowId) -> bool:
        """See `Windows.activate`."""
        if self._find(identifier) is None:
            return False
        done = self._sway.ask(RUN_COMMAND, f"[con_id={int(str(identifier))}] focus")
        return bool(done) and bool(done[0].get("success"))

    def of_terminal(self, environ: Mapping[str, str]) -> Window | None:  # noqa: ARG002 -- the protocol's
        """See `Windows.of_terminal`: nothing of the kind is told on Wayland."""
        return None

    def close(self) -> None:
        """See `Windows.close`."""
        self._sway.close()

    def _find(self, identifier: WindowId) -> _Shown | None:
        return next((one for one in self._read() if one.id == identifier), None)

    def _read(self) -> list[_Shown]:
        """All windows, the lowest first; those that are not shown are the lowest."""
        found = list(_below(self._sway.ask(GET_TREE), floating=False))
        return sorted(found, key=lambda one: (one.visible, one.on_top, one.floating))


def _below(node: Mapping[str, Any], *, floating: bool) -> Iterator[_Shown]:
    if node.get("pid") and not node.get("nodes"):
        yield _shown(node, floating=floating)
    for child in node.get("nodes", ()):
        yield from _below(child, floating=floating)
    for child in node.get("floating_nodes", ()):  # the one used last at the end
        yield from _below(child, floating=True)


def _shown(node: Mapping[str, Any], *, floating: bool) -> _Shown:
    frame, inner, told = node["rect"], node["window_rect"], node.get("geometry", {})
    title_bar = node.get("deco_rect", {}).get("height", 0)  # above the frame, but for windows that float
    outer = Region(frame["x"], frame["y"] - title_bar, max(1, frame["width"]), max(1, frame["height"] + title_bar))
    left, top = frame["x"] + inner["x"], frame["y"] + inner["y"]
    box = Region(left, top, max(1, inner["width"]), max(1, inner["height"]))
    properties = node.get("window_properties") or {}
    app = node.get("app_id") or properties.get("class") or ""
    native = node.get("shell") != "xwayland"
    window = Window(int(node["id"]), str(node.get("name") or ""), str(app), int(node["pid"]))
    surface = (left - told.get("x", 0), top - told.get("y", 0)) if native else None
    layer = Layer(window, box, outer, client=window.pid, surface=surface)
    return _Shown(
        layer, bool(node.get("visible")), bool(node.get("focused")), floating, bool(node.get("fullscreen_mode"))
    )


def open_windows() -> SwayWindows | None:
    """A connection to the windows of this process's sway, for who moves no pointer; None where it is none."""
    sway = open_sway()
    return None if sway is None else SwayWindows(sway, Pointer((0, 0)))
