"""Compares two screenshots as the engine needs it: did it change, where, and did it become darker."""

from typing import TYPE_CHECKING

from agent.literal.ocr import Box
from agent.screen.fingerprint import CELL, Fingerprint

if TYPE_CHECKING:
    from PIL.Image import Image

#: A change of fewer cells of 32x32 pixels than this share of the screen is no new window or page.
_LARGE_SHARE = 0.02
#: Mean brightness (of 255) by which a changed region must differ to count as darker or lighter.
_BRIGHTNESS_STEP = 18
#: Below this mean brightness a window is dark; light themes are above 200, dark ones below 80.
_DARK = 110


def changed(before: "Image", after: "Image") -> bool:
    """Whether anything changed."""
    return bool(Fingerprint.of(before).changed_cells(Fingerprint.of(after)))


def changed_region(before: "Image", after: "Image") -> Box | None:
    """The box around a large change (a window, a page); None when little or everything changed."""
    if before.size != after.size:
        return None
    cells = Fingerprint.of(before).changed_cells(Fingerprint.of(after))
    total = (after.width // CELL + 1) * (after.height // CELL + 1)
    if not _LARGE_SHARE * total <= len(cells) <= 0.9 * total:
        return None
    rows, columns = [row for row, _ in cells], [column for _, column in cells]
    return Box(
        min(columns) * CELL,
        min(rows) * CELL,
        min((max(columns) + 1) * CELL, after.width),
        min((max(rows) + 1) * CELL, after.height),
    )


def brightness(image: "Image", region: Box | None = None) -> float:
    """The mean grey value of a region, 0 to 255."""
    from PIL import ImageStat

    part = image if region is None else image.crop((region.left, region.top, region.right, region.bottom))
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
