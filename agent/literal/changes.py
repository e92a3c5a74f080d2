"""Compares two screenshots as the engine needs it: did it change, where, and did it become darker."""

from typing import TYPE_CHECKING

from agent.screen.blobs import blobs
from agent.screen.fingerprint import CELL, Fingerprint
from agent.screen.ocr import Box

if TYPE_CHECKING:
    from PIL.Image import Image

#: A change of fewer cells of 32x32 pixels than this share of the screen is no new window or page.
_LARGE_SHARE = 0.02
#: More changed cells than this are a menu, a dialog, a page.
_MUCH = 16
#: Mean brightness (of 255) by which a changed region must differ to count as darker or lighter: a window's
#: theme changes it by 148 to 185 (XFCE, GNOME), pictures that GNOME's Appearance is still loading by 26 to 84.
_BRIGHTNESS_STEP = 110
#: Below this mean brightness a window is dark; light themes are above 200, dark ones below 80.
_DARK = 110


def changed(before: "Image", after: "Image") -> bool:
    """Whether anything changed."""
    return bool(_cells(before, after))


def _cells(before: "Image", after: "Image") -> frozenset[tuple[int, int]]:
    return Fingerprint.of(before).changed_cells(Fingerprint.of(after))


def changed_at(before: "Image", after: "Image", x: float, y: float) -> bool:
    """Whether a click at a point had an effect: something changed near it, or much changed anywhere.

    A highlight that goes away where the pointer was before is a small change elsewhere, and no effect of the click.
    """
    cells = _cells(before, after)
    row, column = int(y // CELL), int(x // CELL)
    near = any(abs(cell_row - row) <= 1 and abs(cell_column - column) <= 3 for cell_row, cell_column in cells)
    return near or len(cells) > _MUCH


def changed_region(before: "Image", after: "Image") -> Box | None:
    """The box around a large change (a window, a page); None when little or everything changed.

    Of several changes apart from each other the largest counts: a new window also changes the task bar and perhaps a
    clock.
    """
    import numpy as np

    if before.size != after.size:
        return None
    cells = _cells(before, after)
    rows, columns = after.height // CELL + 1, after.width // CELL + 1
    if not cells or len(cells) > 0.9 * rows * columns:
        return None
    changes = np.zeros((rows + 2, columns + 2), np.bool_)
    near = np.zeros_like(changes)
    for row, column in cells:
        changes[row + 1, column + 1] = True
        near[row : row + 3, column : column + 3] = True  # changes up to a cell apart belong together
    patches = [(int(changes[box.top : box.bottom, box.left : box.right].sum()), box) for box in blobs(near)]
    size, patch = max(patches, key=lambda pair: pair[0], default=(0, Box(0, 0, 0, 0)))
    if size < _LARGE_SHARE * rows * columns:
        return None
    inside = np.argwhere(changes[patch.top : patch.bottom, patch.left : patch.right])
    top, left = inside.min(axis=0)
    bottom, right = inside.max(axis=0)
    return Box(
        int(left + patch.left - 1) * CELL,
        int(top + patch.top - 1) * CELL,
        min(int(right + patch.left) * CELL, after.width),
        min(int(bottom + patch.top) * CELL, after.height),
    )


def share_changed(before: "Image", after: "Image", region: Box) -> float:
    """The share of a region's cells that changed, 0 to 1."""
    cells = _cells(before, after)
    inside = sum(region.contains((column + 0.5) * CELL, (row + 0.5) * CELL) for row, column in cells)
    return inside / max(1, round(region.width / CELL) * round(region.height / CELL))


def brightness(image: "Image", region: Box | None = None) -> float:
    """The mean grey value of a region, 0 to 255."""
    from PIL import ImageStat

    part = image if region is None else image.crop(region)
    return float(ImageStat.Stat(part.convert("L")).mean[0])


def became(shows: str, before: "Image", after: "Image") -> bool:
    """Whether what changed became `darker` or `lighter`."""
    region = changed_region(before, after)
    difference = brightness(after, region) - brightness(before, region)
    return difference <= -_BRIGHTNESS_STEP if shows == "darker" else difference >= _BRIGHTNESS_STEP


def is_already(shows: str, image: "Image", region: Box | None) -> bool:
    """Whether the region looks `darker` or `lighter` by itself."""
    dark = brightness(image, region) < _DARK
    return dark if shows == "darker" else not dark
