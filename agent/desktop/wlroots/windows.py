"""The windows of sway, as its tree tells of them. Other compositors of this kind do not tell where a window is."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window, WindowId
from agent.desktop.wayland.pointer import Pointer
from agent.desktop.wayland.stacked import StackedWindows, Told
from agent.desktop.wlroots.sway import GET_TREE, RUN_COMMAND, Sway, open_sway


class SwayWindows(StackedWindows):
    """See `Windows`. Panels and notifications (layer shells) and open menus are not in the tree.

    Args:
        sway: a connection; closed with this.
        pointer: where our pointer is.
    """

    def __init__(self, sway: Sway, pointer: Pointer) -> None:
        self._sway = sway
        self._pointer = pointer

    def read(self) -> list[Told]:
        """See `StackedWindows.read`; what fills its monitor is above all else there."""
        found = [_told(node, floating=floating) for node, floating in _leaves(self._sway.ask(GET_TREE))]
        found.sort(key=lambda one: one[0])
        return [told for _, told in found]

    def order(self, identifier: WindowId) -> int:
        """See `StackedWindows.order`."""
        return int(str(identifier))

    def pointer(self) -> tuple[int, int]:
        """See `Windows.pointer`: where our own was put last, as no other is told."""
        return self._pointer.at

    def bring(self, identifier: WindowId) -> bool:
        """See `StackedWindows.bring`."""
        done = self._sway.ask(RUN_COMMAND, f"[con_id={int(str(identifier))}] focus")
        return bool(done) and bool(done[0].get("success"))

    def close(self) -> None:
        """See `Windows.close`."""
        self._sway.close()


def _leaves(node: Mapping[str, Any], *, floating: bool = False) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The windows below a node, and whether each floats."""
    if "pid" in node and not node.get("nodes"):  # 0 where it is in another container
        yield node, floating
    for child in node.get("nodes", ()):
        yield from _leaves(child, floating=floating)
    for child in node.get("floating_nodes", ()):  # the one used last at the end
        yield from _leaves(child, floating=True)


def _told(node: Mapping[str, Any], *, floating: bool) -> tuple[tuple[bool, bool, bool], Told]:
    """A window, and by what it is sorted; sway lets dialogs float, and other windows only when it is told to."""
    frame, inner, told = node["rect"], node["window_rect"], node.get("geometry", {})
    title_bar = node.get("deco_rect", {}).get("height", 0)  # above the frame, but for windows that float
    outer = Region(frame["x"], frame["y"] - title_bar, max(1, frame["width"]), max(1, frame["height"] + title_bar))
    left, top = frame["x"] + inner["x"], frame["y"] + inner["y"]
    box = Region(left, top, max(1, inner["width"]), max(1, inner["height"]))
    properties = node.get("window_properties") or {}
    app = node.get("app_id") or properties.get("class") or ""
    native = node.get("shell") != "xwayland"
    window = Window(int(node["id"]), str(node.get("name") or ""), str(app), int(node["pid"]) or None)
    surface = (left - told.get("x", 0), top - told.get("y", 0)) if native else None
    layer = Layer(window, box, outer, client=window.pid, surface=surface)
    visible = bool(node.get("visible"))
    one = Told(layer, visible, bool(node.get("focused")), "dialog" if floating else "")
    return (visible, bool(node.get("fullscreen_mode")), floating), one


def open_windows() -> SwayWindows | None:
    """A connection to the windows of this process's sway, for who moves no pointer; None where it is none."""
    sway = open_sway()
    return None if sway is None else SwayWindows(sway, Pointer((0, 0)))
