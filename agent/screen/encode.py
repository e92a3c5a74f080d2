"""Screenshots as they are sent: their size, and their encoding as PNG, JPEG or WebP.

PNG has its own encoder here, because it is the default of every published client and the largest cost of a step. Pillow
needs 56 ms for 1920x1088, because it chooses a filter for every row and compresses with zlib. One fixed filter and
ISA-L's deflate (the `isal` package) need 3 ms for a file of about the same size (scripts/bench/step.py).
"""

import base64
import ctypes
import hashlib
import io
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent.core.geometry import Size

if TYPE_CHECKING:
    from PIL.Image import Image

    from foundation.images import ImageRule


ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]

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
        """A hash of the bytes (128 bits), by which servers that cache images identify them.

        SHA-256 has instructions of its own on today's processors: 2 ms for a photograph, where BLAKE2 takes 6.
        """
        return hashlib.sha256(self.data).hexdigest()[:32]

    @cached_property
    def data_url(self) -> str:
        """The image as a data: URL."""
        return f"data:image/{self.format};base64,{base64.b64encode(self.data).decode('ascii')}"


def encode(picture: "Image", image_format: ImageFormat, quality: int = 85) -> EncodedImage:
    """Encode an image in RGB. `quality` is for WebP and JPEG, whose colour is not subsampled: red text stays sharp."""
    image = picture if picture.mode == "RGB" else picture.convert("RGB")
    buffer = io.BytesIO()
    if image_format == "png":
        buffer.write(_png(image))
    elif image_format == "jpeg":
        image.save(buffer, format="JPEG", quality=quality, subsampling=0)
    else:
        image.save(buffer, format="WEBP", quality=quality, method=0)
    return EncodedImage(buffer.getvalue(), image_format, Size(image.width, image.height))


def _png(image: "Image") -> bytes:
    """Return a PNG of 8-bit RGB rows, each stored as its difference from the row above (filter "Up")."""
    import numpy as np
    from isal import isal_zlib

    flat = np.asarray(image).reshape(image.height, image.width * 3)
    rows = np.empty((image.height, image.width * 3 + 1), np.uint8)
    rows[:, 0] = _PNG_FILTER_UP
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", isal_zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    body = isal_zlib.compress(rows, _ISAL_LEVEL)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def resize(image: "Image", to: Size) -> "Image":
    """Return the image at the size at which it is sent.

    Sizes usually change by under 2 %, where linear interpolation takes half the time of LANCZOS. A real reduction uses
    HAMMING, which keeps small text about as sharp as BICUBIC at the cost of linear interpolation (Pillow's handbook,
    "Filters"): 48 ms from 4K to 2 Mpx, where LANCZOS takes 106 ms.
    """
    from PIL.Image import Resampling

    reduced = image.width * image.height > 1.1 * to.area
    return image.resize((to.width, to.height), Resampling.HAMMING if reduced else Resampling.BILINEAR)


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
def keep_freed_memory() -> None:
    """Make glibc keep freed memory.

    Every step allocates and frees a few images of 6 to 8 MB. By default, glibc returns such pages to the kernel at
    once. Getting them back costs a page fault per 4 KB: 10 ms of a 1080p step (scripts/bench/step.py).
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
