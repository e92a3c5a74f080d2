"""Screenshots as they are sent: their size, and their encoding as PNG, JPEG or WebP, in several threads.

Pillow keeps 4 bytes for each RGB pixel and resizes in one thread. Most screenshots grow or shrink by a few rows only
(1080 rows become 1088), which blends neighbouring rows: numpy does that in a third of the time, and the encoder of PNG
takes its result without another copy (scripts/bench/step.py).

PNG has its own encoder here, because it is the default of every published client and the largest cost of a step. Pillow
needs 56 ms for 1920x1088, because it chooses a filter for every row and compresses with zlib. One fixed filter and
ISA-L's deflate (the `isal` package), in up to four threads, need 2 ms for a smaller file.
"""

import base64
import ctypes
import hashlib
import io
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from agent.core.geometry import Size

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from foundation.images import ImageRule

    #: Rows, columns, and red, green and blue of 8 bits.
    Pixels: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
else:
    Pixels = Any

T = TypeVar("T")

#: Pixels of the largest foreign picture that is opened.
_LARGEST = 50_000_000
#: Maximum number of threads; more were not measured.
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
    # Within a run, `above` grows by one from row to row.
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


ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]

_PNG_FILTER_UP = 2
#: Level 1 of ISA-L is as fast as level 0 and 15 % smaller on screenshots.
_ISAL_LEVEL = 1
#: Deflate, window of 32 KiB, no dictionary (RFC 1950).
_ZLIB_HEADER = b"\x78\x01"


@dataclass(frozen=True)
class EncodedImage:
    """An encoded image: exactly the bytes that the model receives."""

    data: bytes  # the encoded file
    format: ImageFormat
    size: Size  # in pixels

    @cached_property
    def digest(self) -> str:
        """A hash of the bytes (128 bits), by which servers that cache images identify them.

        SHA-256 has instructions of its own on today's processors: 2 ms for a photograph, whereas BLAKE2 takes 6 ms.
        """
        return hashlib.sha256(self.data).hexdigest()[:32]

    @cached_property
    def data_url(self) -> str:
        """The image as a data: URL."""
        return f"data:image/{self.format};base64,{base64.b64encode(self.data).decode('ascii')}"


def encode(picture: "Image | Pixels", image_format: ImageFormat, quality: int = 85) -> EncodedImage:
    """Encode an RGB image, or its pixels. `quality` is for WebP, and for JPEG, whose colour is not subsampled to keep
    red text sharp.
    """
    if image_format == "png":
        pixels = packed(picture)
        return EncodedImage(_png(pixels), "png", Size(pixels.shape[1], pixels.shape[0]))
    image = as_image(picture)
    buffer = io.BytesIO()
    if image_format == "jpeg":
        image.save(buffer, format="JPEG", quality=quality, subsampling=0)
    else:
        image.save(buffer, format="WEBP", quality=quality, method=0)
    return EncodedImage(buffer.getvalue(), image_format, Size(image.width, image.height))


def _png(pixels: "Pixels") -> bytes:
    """Return a PNG of 8-bit RGB rows, each stored as its difference from the row above (filter "Up").

    Stripes of rows are compressed at the same time, each in a chunk of its own; their streams join to one.
    """
    import numpy as np
    from isal import isal_zlib

    height, width = pixels.shape[0], pixels.shape[1] * 3
    flat = pixels.reshape(height, width)
    # Allocating megabytes costs more than the work on them (page faults), so there are few copies and `rows` is reused.
    rows = _rows(height, width + 1)

    def chunk(first: int, last: int) -> bytes:
        stripe = rows[first:last]
        stripe[:, 0] = _PNG_FILTER_UP
        if first == 0:
            stripe[0, 1:] = flat[0]
            np.subtract(flat[1:last], flat[: last - 1], out=stripe[1:, 1:])
        else:
            np.subtract(flat[first:last], flat[first - 1 : last - 1], out=stripe[:, 1:])
        deflate = isal_zlib.compressobj(_ISAL_LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS)
        body = deflate.compress(stripe) + deflate.flush(
            isal_zlib.Z_FINISH if last == height else isal_zlib.Z_FULL_FLUSH
        )
        return _chunk(b"IDAT", _ZLIB_HEADER + body if first == 0 else body)

    chunks = in_stripes(chunk, height, width)
    header = struct.pack(">IIBBBBB", pixels.shape[1], height, 8, 2, 0, 0, 0)
    checksum = struct.pack(">I", isal_zlib.adler32(rows))
    parts = [_chunk(b"IHDR", header), *chunks, _chunk(b"IDAT", checksum), _chunk(b"IEND", b"")]
    return b"".join((b"\x89PNG\r\n\x1a\n", *parts))


_buffers = threading.local()


def _rows(height: int, width: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Return this thread's buffer for filtered rows."""
    import numpy as np

    rows: np.ndarray[Any, np.dtype[np.uint8]] | None = getattr(_buffers, "rows", None)
    if rows is None or rows.shape != (height, width):
        rows = np.empty((height, width), np.uint8)
        _buffers.rows = rows
    return rows


def _chunk(kind: bytes, body: bytes) -> bytes:
    from isal import isal_zlib

    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", isal_zlib.crc32(body, isal_zlib.crc32(kind)))


def fit(rule: "ImageRule", size: Size) -> Size:
    """Return the size at which an image of `size` is sent. Raises UsageError for a shape that no processor accepts."""
    return Size(*rule.fit(size.width, size.height))


# Parameters of mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
#: Enough for a few 4K images. The process may keep about this much freed memory.
_KEPT_BYTES = 256 * 1024 * 1024
#: The largest value glibc takes for the mmap threshold (DEFAULT_MMAP_THRESHOLD_MAX on 64-bit systems).
_MMAP_BYTES = 32 * 1024 * 1024


@cache
def keep_freed_memory() -> bool:
    """Make glibc keep freed memory. Return False without glibc.

    Every step allocates and frees a few images of 6 to 8 MB. By default, glibc returns such pages to the kernel at
    once. Getting them back costs a page fault per 4 KB: 10 ms of a 1080p step (scripts/bench/step.py).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)) and bool(mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES))
