"""Cuts out pictures of unnamed controls, and finds them on a screen."""

import base64
import binascii
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent.core.geometry import DesktopPoint, Region, Size
from agent.screen.encode import as_image, open_foreign, resize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Grays = NDArray[np.float64]

#: Side of a picture around a point without a known element, and maximum side, in desktop units. Twice that many
#: pixels a side can be read.
_SIDE, _MOST = 36, 96
#: Fewest pixels from a picture's middle to its sides.
_LEAST = 4
#: Standard deviation of the gray values from which a picture shows something (0 to 255), and levels that are kept.
_LEAST_CONTRAST, _LEVELS = 8.0, 32
#: Minimum correlation of a match (1: equal except for brightness and contrast).
_ALIKE = 0.9
#: Maximum difference of tints in a match: a red sign does not match a green one.
_OTHER_TINT = 10.0
#: Maximum places to examine. Several matches are ambiguous anyway.
_MOST_PLACES = 12
#: Size factors to search with, for screens with another scale.
_SIZES = (1.0, 2.0, 1.5, 1.25, 0.8)
#: The PNG text entry that holds the pixels per desktop unit, across and down; and the minimum of these.
_SCALE, _LEAST_SCALE = "scale", 0.1


@dataclass(frozen=True, slots=True)
class Picture:
    """A small picture of a thing."""

    grays: "Grays"  # (height, width) of 0 to 255
    tint: "Grays"  # mean of red - green, and of blue - green
    across: float  # its pixels for each desktop unit
    down: float


def cut_out(shot: "Image", size: Size, point: DesktopPoint, box: Region | None, *, once: bool = True) -> str:
    """Return a picture of what is at a point, as a PNG in base64; "" if it shows nothing.

    `shot` may have been shrunk for a model; `size` is the screen's in desktop units, from 0,0. The element's `box`
    gives the picture its size, within limits. With `once`, return "" if the screen shows it more than once.
    """
    from PIL.PngImagePlugin import PngInfo

    scale = shot.width / size.width, shot.height / size.height
    x, y = round(point.x * scale[0]), round(point.y * scale[1])
    wide, high = (_SIDE, _SIDE) if box is None else (min(box.width, _MOST), min(box.height, _MOST))
    right = min(max(round(wide * scale[0] / 2), _LEAST), _MOST, x, shot.width - x)
    down = min(max(round(high * scale[1] / 2), _LEAST), _MOST, y, shot.height - y)
    if min(right, down) < _LEAST:
        return ""
    part = shot.convert("RGB").crop((x - right, y - down, x + right, y + down))
    if _grays(part).std() < _LEAST_CONTRAST:
        return ""
    file, metadata = io.BytesIO(), PngInfo()
    metadata.add_text(_SCALE, f"{scale[0]:.4f} {scale[1]:.4f}")
    part.quantize(_LEVELS).save(file, "png", optimize=True, pnginfo=None if scale == (1, 1) else metadata)
    picture = base64.b64encode(file.getvalue()).decode()
    return picture if not once or len(places_of(picture, shot, size)) == 1 else ""


@lru_cache(maxsize=64)
def read_picture(picture: str) -> Picture:
    """Read a picture that `cut_out` made. Raises ValueError for anything else."""
    try:
        opened = open_foreign(base64.b64decode(picture, validate=True), ("PNG",))
    except (OSError, binascii.Error) as error:
        raise ValueError("that is not a picture from `mai-agent save`") from error
    if max(opened.size) > 2 * _MOST or min(opened.size) < 2:
        raise ValueError(f"a picture of {opened.width}x{opened.height} is too large or too small")
    grays, tint = _grays(opened), _tint(opened)
    if grays.std() < 1:
        raise ValueError("that picture shows nothing")
    scale = re.fullmatch(r"(\d\.\d{4}) (\d\.\d{4})", str(opened.info.get(_SCALE, "1.0000 1.0000")))
    across, down = (float(number) for number in scale.groups()) if scale else (0.0, 0.0)
    if min(across, down) < _LEAST_SCALE or max(across, down) > 1 / _LEAST_SCALE:
        raise ValueError("that picture has no scale as `mai-agent save` writes it")
    return Picture(grays, tint, across, down)


def places_of(picture: str, shot: "Image", size: Size) -> list[Region]:
    """Return where a screen shows a picture, best first, in desktop units; at most a few.

    The screenshot is brought to the picture's scale first. If the thing is nowhere at its own size, other sizes are
    tried. A place of another tint does not count.
    """
    wanted = read_picture(picture)
    for times in _SIZES:
        across, down = wanted.across / times, wanted.down / times
        scaled = as_image(resize(shot, Size(round(size.width * across), round(size.height * down))))
        if found := _places(wanted, scaled):
            sides = [(one.left / across, one.top / down, one.width / across, one.height / down) for one in found]
            return [Region(*map(round, each)) for each in sides]
    return []


def _places(wanted: Picture, screen: "Image") -> list[Region]:
    """Return where a screen shows a picture at its own size in pixels, best first.

    It is the normalized cross-correlation of the gray values, computed by Fourier transforms (J. P. Lewis, "Fast
    Normalized Cross-Correlation", 1995). A negative correlation counts as well: a dark theme draws many signs in white.
    """
    import numpy as np

    shown = _grays(screen)
    (high, wide), (rows, columns) = wanted.grays.shape, shown.shape
    if high > rows or wide > columns:
        return []
    grays = wanted.grays - wanted.grays.mean()
    spectrum = np.fft.rfft2(shown) * np.conj(np.fft.rfft2(grays, shown.shape))
    product = np.fft.irfft2(spectrum, shown.shape)[: rows - high + 1, : columns - wide + 1]
    mean = _sums(shown, high, wide) / grays.size
    variance = np.maximum(_sums(shown**2, high, wide) / grays.size - mean**2, 1.0)
    alike = np.abs(product / (grays.size * grays.std() * np.sqrt(variance)))
    found: list[Region] = []
    for _ in range(_MOST_PLACES):
        if alike.max() < _ALIKE:
            break
        top, left = (int(at) for at in np.unravel_index(alike.argmax(), alike.shape))
        part = screen.crop((left, top, left + wide, top + high))
        if abs(_tint(part) - wanted.tint).max() <= _OTHER_TINT:
            found.append(Region(left, top, wide, high))
        alike[max(0, top - high // 2) : top + high // 2 + 1, max(0, left - wide // 2) : left + wide // 2 + 1] = 0
    return found


def _grays(image: "Image") -> "Grays":
    import numpy as np

    return np.asarray(image.convert("L"), dtype=np.float64)


def _tint(image: "Image") -> "Grays":
    """Return an image's mean of red - green, and of blue - green."""
    import numpy as np

    red, green, blue = np.asarray(image.convert("RGB"), dtype=np.float64).mean((0, 1))
    return np.array([red - green, blue - green])


def _sums(values: "Grays", high: int, wide: int) -> Any:
    """Return the sum of the values in each window of that size."""
    import numpy as np

    total = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    return total[high:, wide:] - total[:-high, wide:] - total[high:, :-wide] + total[:-high, :-wide]
