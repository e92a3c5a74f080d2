"""Which parts of windows can be seen, one lying over the other."""

from collections.abc import Sequence

from agent.core.geometry import DesktopPoint, Region, without
from agent.desktop.protocol.windows import Layer, WindowId, Windows


def visible_parts(layers: Sequence[Layer], monitors: Sequence[Region]) -> dict[WindowId, list[Region]]:
    """Of each layer, the parts of its contents on a monitor that no other one covers; `layers` the top-most first."""
    found: dict[WindowId, list[Region]] = {}
    for index, layer in enumerate(layers):
        parts = [part for monitor in monitors if (part := common(layer.box, monitor)) is not None]
        for above in layers[:index]:
            if above.passing:
                continue
            parts = [rest for part in parts for rest in without(part, above.outer)]
        found[layer.window.id] = parts
    return found


def tops_at(windows: Windows, layers: Sequence[Layer], points: Sequence[tuple[int, int]]) -> list[WindowId | None]:
    """Which window gets a click at each of these points; a tool tip is gone by then."""
    passing = {layer.window.id for layer in layers if layer.passing}
    lasting = [layer for layer in layers if not layer.passing]

    def below(point: tuple[int, int]) -> WindowId | None:
        here = DesktopPoint(*map(float, point))
        return next((layer.window.id for layer in lasting if layer.outer.contains(here)), None)

    tops = windows.layers_at(points)
    return [below(point) if top in passing else top for top, point in zip(tops, points, strict=True)]


def around(boxes: Sequence[Region]) -> Region:
    """The smallest box around all; there is at least one."""
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.left + box.width for box in boxes), max(box.top + box.height for box in boxes)
    return Region(left, top, right - left, bottom - top)


def common(one: Region, other: Region) -> Region | None:
    """What two boxes share; None for nothing."""
    left, top = max(one.left, other.left), max(one.top, other.top)
    right = min(one.left + one.width, other.left + other.width)
    bottom = min(one.top + one.height, other.top + other.height)
    return Region(left, top, right - left, bottom - top) if right > left and bottom > top else None


def largest_part(box: Region, parts: Sequence[Region]) -> Region | None:
    """The largest part of a box that lies in one of these; None where it is less than a fifth of it."""
    shared = [part for one in parts if (part := common(box, one)) is not None]
    best = max(shared, key=lambda part: part.width * part.height, default=None)
    if best is None or best.width * best.height * 5 < box.width * box.height:
        return None
    return best
