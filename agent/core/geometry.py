"""Typed coordinate spaces and the maps between them.

Most wrong clicks anywhere are a mix-up between spaces, so a point here always carries its space in its type:

- `NamedPoint`: a place that a planner calls by words, and a grounder has yet to find;
- `GridPoint`: what the model wrote, on its own grid (0..999, 0..1000, or pixels of the image it was sent);
- `CapturePoint`: pixels of the captured monitor, before anything was resized;
- `DesktopPoint`: what the input system takes (logical units, all monitors, may be negative).

Points are continuous: a grid of divisor d maps k to k/d of the width, as the models' own evaluations do. Zero is a
coordinate like any other. Clamping happens once, on the way to the desktop, in `Viewport.to_desktop`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height, each at least 1. The unit depends on the context. Raises ValueError: a side is below 1."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise ValueError(f"a size needs both sides to be at least 1, not {self.width}x{self.height}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "1920x1080". Raises ValueError on anything else."""
        width, separator, height = text.lower().partition("x")
        if not separator or not (width.isascii() and width.isdigit()) or not (height.isascii() and height.isdigit()):
            raise ValueError(f"not a size: {text!r} (a size looks like 1920x1080)")
        if len(width) > 6 or len(height) > 6:
            raise ValueError(f"not a size of any screen: {text!r}")
        return cls(int(width), int(height))

    @property
    def area(self) -> int:
        """Width times height."""
        return self.width * self.height

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of a model's coordinates: x in 0..width, y in 0..height.

    A relative grid (0..999, 0..1000) has the same number on both axes. An absolute grid has the size of the image that
    was sent, so x and y need separate factors. If a server pads an image into a larger frame, the grid has an offset: x
    in left..left+width, y in top..top+height.
    """

    width: float
    height: float
    left: float = 0.0
    top: float = 0.0

    @classmethod
    def relative(cls, divisor: int) -> Self:
        """Return the 0..divisor grid on both axes."""
        return cls(divisor, divisor)

    @classmethod
    def pixels(cls, sent: Size) -> Self:
        """Return the grid of an image's pixels, as sent."""
        return cls(sent.width, sent.height)


#: The grid of a model family: a divisor, "pixels" of the image sent last, or a measured grid.
Counted: TypeAlias = int | str | Grid


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A place described in words ("the Save button at the top right"), not yet located on the screen."""

    words: str


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A point as the model wrote it, with its grid. Always finite."""

    x: float
    y: float
    grid: Grid

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise ValueError("a point must be finite")

    def overshoot(self) -> float:
        """Return how far outside the grid the point lies, as a share of the grid's side; 0 if inside."""
        across, down = self.share
        return max(0.0, -across, across - 1, -down, down - 1)

    @property
    def share(self) -> tuple[float, float]:
        """The point as shares of the grid's width and height, from its top left."""
        return (self.x - self.grid.left) / self.grid.width, (self.y - self.grid.top) / self.grid.height


@dataclass(frozen=True, slots=True)
class CapturePoint:
    """A point in pixels of the captured image, origin at its top left."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class DesktopPoint:
    """A point in the input system's units, across all monitors. Negative left of or above the primary monitor."""

    x: float
    y: float

    def rounded(self) -> tuple[int, int]:
        """Return the whole pixel that contains the point, as input systems expect it."""
        return math.floor(self.x), math.floor(self.y)


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle in desktop units: left, top, width, height."""

    left: int
    top: int
    width: int
    height: int

    @property
    def size(self) -> Size:
        """The width and height."""
        return Size(self.width, self.height)

    @property
    def right(self) -> int:
        """The first column beyond the right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The first row below the bottom edge."""
        return self.top + self.height

    @property
    def middle(self) -> DesktopPoint:
        """The centre."""
        return DesktopPoint(self.left + self.width / 2, self.top + self.height / 2)

    def contains(self, point: DesktopPoint) -> bool:
        """Whether the point lies inside; the right and bottom edges are outside."""
        return self.left <= point.x < self.right and self.top <= point.y < self.bottom

    def moved(self, right: int, down: int) -> "Region":
        """Return the region shifted by some units."""
        return Region(self.left + right, self.top + down, self.width, self.height)


def shared(one: Region, other: Region) -> Region | None:
    """Return the intersection of two rectangles, or None if they do not overlap."""
    left, top = max(one.left, other.left), max(one.top, other.top)
    right, bottom = min(one.right, other.right), min(one.bottom, other.bottom)
    return Region(left, top, right - left, bottom - top) if right > left and bottom > top else None


def around(boxes: Sequence[Region]) -> Region:
    """Return the bounding rectangle of at least one rectangle."""
    left, top = min(box.left for box in boxes), min(box.top for box in boxes)
    right, bottom = max(box.right for box in boxes), max(box.bottom for box in boxes)
    return Region(left, top, right - left, bottom - top)


def without(region: Region, cover: Region) -> list[Region]:
    """Return `region` minus `cover`, as up to four rectangles."""
    hole = shared(region, cover)
    if hole is None:
        return [region]
    parts = (
        (region.left, region.top, region.width, hole.top - region.top),
        (region.left, hole.bottom, region.width, region.bottom - hole.bottom),
        (region.left, hole.top, hole.left - region.left, hole.height),
        (hole.right, hole.top, region.right - hole.right, hole.height),
    )
    return [Region(*part) for part in parts if part[2] > 0 and part[3] > 0]


@dataclass(frozen=True, slots=True)
class Viewport:
    """The position of a captured monitor on the desktop."""

    region: Region  # the monitor in desktop units
    captured: Size  # the captured image in pixels; differs from the region's size on scaled (HiDPI) displays

    @classmethod
    def of_image(cls, size: Size) -> Self:
        """Return a viewport for an image alone, as if it were a monitor at the origin with scale factor 1."""
        return cls(Region(0, 0, size.width, size.height), size)

    @property
    def scale(self) -> tuple[float, float]:
        """Captured pixels per desktop unit, for x and y; (2, 2) on a typical HiDPI display."""
        return self.captured.width / self.region.width, self.captured.height / self.region.height

    def to_capture(self, point: GridPoint) -> CapturePoint:
        """Map grid to captured pixels. Not clamped: a grid's last value lands on the far edge."""
        x, y = point.x - point.grid.left, point.y - point.grid.top
        return CapturePoint(x * self.captured.width / point.grid.width, y * self.captured.height / point.grid.height)

    def capture_to_desktop(self, point: CapturePoint) -> DesktopPoint:
        """Map captured pixels to desktop units, clamped one pixel inside the monitor.

        The outermost pixels stay unused: users stop a run by pushing the pointer into a corner, and our own actions
        must never trigger that.
        """
        scale_x, scale_y = self.scale
        return DesktopPoint(
            _clamp(self.region.left + point.x / scale_x, self.region.left, self.region.width),
            _clamp(self.region.top + point.y / scale_y, self.region.top, self.region.height),
        )

    def desktop_to_capture(self, point: DesktopPoint) -> CapturePoint:
        """Map desktop units to captured pixels; exact for points that `capture_to_desktop` did not clamp."""
        scale_x, scale_y = self.scale
        return CapturePoint((point.x - self.region.left) * scale_x, (point.y - self.region.top) * scale_y)

    def to_desktop(self, point: GridPoint) -> DesktopPoint:
        """Map grid to desktop units, clamped one pixel inside the monitor."""
        return self.capture_to_desktop(self.to_capture(point))


def _clamp(value: float, origin: int, extent: int) -> float:
    """Keep a value within [origin + 1, origin + extent - 2], or in the middle of a monitor too small for that."""
    if extent < 4:
        return origin + extent / 2
    return min(max(value, origin + 1), origin + extent - 2)
