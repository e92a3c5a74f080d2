"""Small pictures of things that have no name, and where a screen shows one."""

import base64
import binascii
import io
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent.core.geometry import DesktopPoint, Region
from agent.screen.pixels import open_foreign

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Grays = NDArray[np.float64]

#: Pixels of a picture around a point where no element is known, and the most of one side. A picture is read only up to
#: twice that.
_SIDE, _MOST = 36, 96
#: Standard deviation of the gray values from which a picture shows something (0 to 255), and levels that are kept.
_LEAST_CONTRAST, _LEVELS = 8.0, 32
#: Correlation (1 for equal but for brightness and contrast) from which a place looks like the picture.
_ALIKE = 0.9
#: Difference of tints from which a place is another thing: a red sign is no green one.
_OTHER_TINT = 10.0
#: Places that are looked at. Of more than one that fits, none is taken anyhow.
_MOST_PLACES = 12


def cut_out(screen: "Image", point: DesktopPoint, box: Region | None) -> str:
    """Return a picture of what is at a point, as a PNG in base64; "" if it shows nothing, or the screen shows it twice.

    Args:
        screen: the screen, one pixel for each desktop unit, beginning at 0,0.
        point: becomes the picture's middle.
        box: the element there; its size is the picture's size, within limits.
    """
    x, y = point.rounded()
    wide, high = (_SIDE, _SIDE) if box is None else (min(box.width, _MOST), min(box.height, _MOST))
    right, down = min(wide // 2, x, screen.width - x), min(high // 2, y, screen.height - y)
    if min(right, down) < 4:
        return ""
    part = screen.convert("RGB").crop((x - right, y - down, x + right, y + down))
    if _grays(part).std() < _LEAST_CONTRAST:
        return ""
    file = io.BytesIO()
    part.quantize(_LEVELS).save(file, "png", optimize=True)
    picture = base64.b64encode(file.getvalue()).decode()
    return picture if len(places_of(picture, screen)) == 1 else ""


@lru_cache(maxsize=64)
def read_picture(picture: str) -> "tuple[Grays, Grays]":
    """Return a picture's gray values, (height, width) of 0 to 255, and its tint. Raises ValueError if it is none."""
    try:
        opened = open_foreign(base64.b64decode(picture, validate=True), ("PNG",))
    except (OSError, binascii.Error) as error:
        raise ValueError("that is no picture as `mai-agent save` keeps them") from error
    if max(opened.size) > 2 * _MOST or min(opened.size) < 2:
        raise ValueError(f"a picture of {opened.width}x{opened.height} is too large or too small")
    grays, tint = _grays(opened), _tint(opened)
    if grays.std() < 1:
        raise ValueError("that picture shows nothing")
    return grays, tint


def places_of(picture: str, screen: "Image") -> list[Region]:
    """Return where a screen shows a picture, best first; at most a few. Boxes are in the screen's pixels.

    It is the normalized cross-correlation of the gray values at the picture's own size, computed by Fourier transforms
    (J. P. Lewis, "Fast Normalized Cross-Correlation", 1995). A place of another tint is none.
    """
    import numpy as np

    (wanted, tint), shown = read_picture(picture), _grays(screen)
    (high, wide), (rows, columns) = wanted.shape, shown.shape
    if high > rows or wide > columns:
        return []
    wanted = wanted - wanted.mean()
    spectrum = np.fft.rfft2(shown) * np.conj(np.fft.rfft2(wanted, shown.shape))
    product = np.fft.irfft2(spectrum, shown.shape)[: rows - high + 1, : columns - wide + 1]
    mean = _sums(shown, high, wide) / wanted.size
    variance = np.maximum(_sums(shown**2, high, wide) / wanted.size - mean**2, 1.0)
    alike = product / (wanted.size * wanted.std() * np.sqrt(variance))
    found: list[Region] = []
    for _ in range(_MOST_PLACES):
        if alike.max() < _ALIKE:
            break
        top, left = (int(at) for at in np.unravel_index(alike.argmax(), alike.shape))
        there = screen.crop((left, top, left + wide, top + high))
        if abs(_tint(there) - tint).max() <= _OTHER_TINT:
            found.append(Region(left, top, wide, high))
        alike[max(0, top - high // 2) : top + high // 2 + 1, max(0, left - wide // 2) : left + wide // 2 + 1] = 0
    return found


def _grays(image: "Image") -> "Grays":
    import numpy as np

    return np.asarray(image.convert("L"), dtype=np.float64)


def _tint(image: "Image") -> "Grays":
    """Return how much more red, and more blue, than green an image is in the mean."""
    import numpy as np

    red, green, blue = np.asarray(image.convert("RGB"), dtype=np.float64).mean((0, 1))
    return np.array([red - green, blue - green])


def _sums(values: "Grays", high: int, wide: int) -> Any:
    """Return the sum of the values in each window of that size."""
    import numpy as np

    total = np.pad(values.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    return total[high:, wide:] - total[:-high, wide:] - total[high:, :-wide] + total[:-high, :-wide]
