"""Screenshots as they are sent: their size, and their encoding as PNG, JPEG or WebP.

PNG has its own encoder here, because it is the default of every published client and the largest cost of a step. Pillow
needs 56 ms for 1920x1088, because it chooses a filter for every row and compresses with zlib. One fixed filter and
ISA-L's deflate (the `isal` package) need 7 ms for a smaller file (scripts/bench/step.py).
"""

import base64
import ctypes
import hashlib
import io
import struct
import sys
import threading
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from agent.core.geometry import Size

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from foundation.images import ImageRule


ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]
IMAGE_FORMATS: tuple[str, ...] = get_args(ImageFormat)

_PNG_FILTER_UP = 2
#: Level 1 of ISA-L is as fast as level 0 and 15 % smaller on screenshots.
_ISAL_LEVEL = 1


@dataclass(frozen=True)
class EncodedImage:
    """An encoded image: exactly the bytes that the model receives."""

    data: bytes  # the encoded file
    format: ImageFormat
    size: Size  # in pixels

    @cached_property
    def digest(self) -> str:
        """A hash of the bytes (blake2b, 128 bits), by which servers that cache images identify them."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def data_url(self) -> str:
        """The image as a data: URL."""
        return f"data:image/{self.format};base64,{base64.b64encode(self.data).decode('ascii')}"


def encode(image: "Image", image_format: ImageFormat, quality: int = 85) -> EncodedImage:
    """Encode an RGB image. `quality` is for WebP, and for JPEG, whose colour is not subsampled to keep red
    text sharp.
    """
    size = Size(image.width, image.height)
    if image_format == "png":
        return EncodedImage(_png(image), "png", size)
    buffer = io.BytesIO()
    if image_format == "jpeg":
        image.save(buffer, format="JPEG", quality=quality, subsampling=0)
    else:
        image.save(buffer, format="WEBP", quality=quality, method=0)
    return EncodedImage(buffer.getvalue(), image_format, size)


def _png(image: "Image") -> bytes:
    """Return a PNG of 8-bit RGB rows, each stored as its difference from the row above (filter "Up")."""
    import numpy as np
    from isal import isal_zlib

    # Allocating megabytes costs more than the work on them (page faults), so there are few copies and `rows` is reused.
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    pixels = np.asarray(rgb).reshape(image.height, image.width * 3)
    rows = _rows(image.height, image.width * 3 + 1)
    rows[:, 0] = _PNG_FILTER_UP
    rows[0, 1:] = pixels[0]
    np.subtract(pixels[1:], pixels[:-1], out=rows[1:, 1:])
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    body = isal_zlib.compress(rows, _ISAL_LEVEL)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


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
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))


def fit(rule: "ImageRule", size: Size) -> Size:
    """Return the size at which an image of `size` is sent. Raises UsageError for a shape that no processor accepts."""
    return Size(*rule.fit(size.width, size.height))


def resize(image: "Image", to: Size) -> "Image":
    """Return the image at the size at which it is sent; the same object if nothing changes.

    Sizes usually change by under 2 % (1080 rows become 1088), where BILINEAR takes half the time of LANCZOS. A real
    reduction uses HAMMING, which keeps small text about as sharp as BICUBIC at BILINEAR's cost (Pillow's handbook,
    "Filters"): 48 ms from 4K to 2 Mpx, where LANCZOS takes 106 ms.
    """
    from PIL.Image import Resampling

    if image.size == (to.width, to.height):
        return image
    reduced = image.width * image.height > 1.1 * to.area
    return image.resize((to.width, to.height), Resampling.HAMMING if reduced else Resampling.BILINEAR)


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
