"""Screenshots as they are sent: their size, and their encoding as PNG, JPEG or WebP.

PNG has its own encoder here, because it is the default of every published client and the largest cost of a step. Pillow
needs 56 ms for 1920x1088, because it chooses a filter for every row and compresses with zlib. One fixed filter and
ISA-L's deflate (the `isal` package), in as many threads as there are cores, need 2 ms for a smaller file
(scripts/bench/step.py).
"""

import base64
import ctypes
import hashlib
import io
import struct
import sys
import threading
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent.core.geometry import Size
from agent.screen.pixels import Pixels, as_image, in_stripes, packed

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    from foundation.images import ImageRule


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
