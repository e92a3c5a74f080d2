"""Pixels as arrays of packed RGB, and work on them that all cores share.

Pillow keeps 4 bytes for each RGB pixel and resizes in one thread. Most screenshots grow or shrink by a few rows only
(1080 rows become 1088), which blends neighbouring rows: numpy does that in a third of the time, and the encoder of PNG
takes its result without another copy (scripts/bench/step.py).
"""

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agent.core.geometry import Size

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    #: Rows, columns, and red, green and blue of 8 bits.
    Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
else:
    Pixels = Any

T = TypeVar("T")

#: Pixels of the largest foreign picture that is opened.
_LARGEST = 50_000_000
#: More threads than this were not measured.
_MOST_THREADS = 4
#: Bytes that are worth a thread of their own: a quarter of a 1080p screen.
_WORTH = 1_500_000
#: Rows that are blended at a time, so that the intermediate values stay in the processor's cache.
_BLOCK = 64
#: Weights are counted in 1/128, so that a product fits 16 bits; no pixel is off by more than one of 255 grey levels.
_WEIGHT_BITS = 7


def packed(picture: "Image | Pixels") -> Pixels:
    """Return the pixels of an image of any mode, without a copy if they are packed already."""
    import numpy as np

    if isinstance(picture, np.ndarray):
        return picture
    return np.asarray(picture if picture.mode == "RGB" else picture.convert("RGB"))


def as_image(picture: "Image | Pixels") -> "Image":
    """Return pixels as an RGB image."""
    import numpy as np
    from PIL import Image

    if isinstance(picture, np.ndarray):
        return Image.fromarray(picture)
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def open_foreign(data: bytes, formats: Sequence[str]) -> "Image":
    """Open an image file that somebody else made, as RGB: turned as its metadata says, on white if transparent.

    Raises OSError: it is none of these formats, is broken, or has more than 50 million pixels.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data), formats=list(formats)) as opened:
            if opened.width * opened.height > _LARGEST:
                raise OSError(f"a picture of {opened.width}x{opened.height} is too large")
            turned = ImageOps.exif_transpose(opened)
            if not turned.has_transparency_data:
                return turned.convert("RGB")
            clear = turned.convert("RGBA")
            white = Image.new("RGBA", clear.size, "white")
            return Image.alpha_composite(white, clear).convert("RGB")
    except Exception as error:  # a broken file makes the library raise anything
        raise OSError(str(error) or repr(error)) from error


def resize(image: "Image", to: Size) -> Pixels:
    """Return the pixels of the image at the size at which it is sent.

    Sizes usually change by under 2 %, where linear interpolation takes half the time of LANCZOS. A real reduction uses
    HAMMING, which keeps small text about as sharp as BICUBIC at the cost of linear interpolation (Pillow's handbook,
    "Filters"): 48 ms from 4K to 2 Mpx, whereas LANCZOS takes 106 ms.
    """
    from PIL.Image import Resampling

    if image.size == (to.width, to.height):
        return packed(image)
    reduced = image.width * image.height > 1.1 * to.area
    if reduced or image.width != to.width or image.height < 2:
        return packed(image.resize((to.width, to.height), Resampling.HAMMING if reduced else Resampling.BILINEAR))
    return _with_rows(packed(image), to.height)


def in_stripes(work: Callable[[int, int], T], rows: int, row_bytes: int) -> list[T]:
    """Return the results of `work(first, last)` for stripes of rows, in order, computed at the same time."""
    count = max(1, min(_threads(), rows * row_bytes // _WORTH))
    bounds = [rows * number // count for number in range(count + 1)]
    own, *others = pairwise(bounds)
    helped = [_helpers().submit(work, *each) for each in others]
    return [work(*own), *(one.result() for one in helped)]


@cache
def _threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return the threads that work beside the calling one."""
    return ThreadPoolExecutor(max(1, _threads() - 1), "pixels")


def _with_rows(pixels: Pixels, height: int) -> Pixels:
    """Return pixels with another number of rows, by linear interpolation (as Pillow's BILINEAR when it enlarges)."""
    import numpy as np

    before, width = pixels.shape[0], pixels.shape[1] * 3
    flat, result = pixels.reshape(before, width), np.empty((height, width), np.uint8)
    centres = np.clip((np.arange(height) + 0.5) * before / height - 0.5, 0, before - 1)
    above = np.minimum(centres.astype(np.intp), before - 2)
    weights = np.round((centres - above) * (1 << _WEIGHT_BITS)).astype(np.int16)[:, None]
    # Within a run, a result row blends the next two rows.
    runs = [0, *(np.flatnonzero(np.diff(above) != 1) + 1).tolist(), height]

    def blend(first: int, last: int) -> None:
        near, change = np.empty((_BLOCK + 1, width), np.int16), np.empty((_BLOCK, width), np.int16)
        starts = [start for begin, end in pairwise(runs) for start in range(max(begin, first), min(end, last), _BLOCK)]
        for start, end in pairwise([*starts, last]):
            count, top = end - start, above[start]
            upper, lower, blended = near[:count], near[1 : count + 1], change[:count]
            near[: count + 1] = flat[top : top + count + 1]
            np.subtract(lower, upper, out=blended)
            blended *= weights[start:end]
            blended += 1 << (_WEIGHT_BITS - 1)
            blended >>= _WEIGHT_BITS
            blended += upper
            result[start:end] = blended

    in_stripes(blend, height, width)
    return result.reshape(height, pixels.shape[1], 3)
