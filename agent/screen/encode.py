"""Screenshots as bytes: PNG, JPEG or WebP.

PNG is written here because it is the default of every published client and the largest cost of a step: Pillow needs
56 ms for 1920x1088, choosing a filter for every row and compressing with zlib; one fixed filter and ISA-L's deflate
(the `isal` package) need 7 ms for a smaller file (scripts/bench/step.py).
"""

import base64
import hashlib
import io
import struct
import threading
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from agent.core.geometry import Size

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

ImageFormat: TypeAlias = Literal["png", "jpeg", "webp"]
IMAGE_FORMATS: tuple[str, ...] = get_args(ImageFormat)

_PNG_FILTER_UP = 2
#: Level 1 of ISA-L is as fast as level 0 and 15 % smaller on screenshots.
_ISAL_LEVEL = 1


@dataclass(frozen=True)
class EncodedImage:
    """One image as it is sent: exactly the bytes that the model sees."""

    data: bytes  # the encoded file
    format: ImageFormat
    size: Size  # in pixels

    @cached_property
    def digest(self) -> str:
        """A name for these bytes (blake2b, 128 bits): servers that keep images remember them by it."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    @cached_property
    def data_url(self) -> str:
        """The image as a data: URL."""
        return f"data:image/{self.format};base64,{base64.b64encode(self.data).decode('ascii')}"


def encode(image: "Image", image_format: ImageFormat, quality: int = 85) -> EncodedImage:
    """Encode an RGB image; `quality` counts for JPEG (colour not subsampled, so red text stays sharp) and WebP."""
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
    """A PNG of 8-bit RGB rows, each stored as its difference from the row above (filter "Up")."""
    import numpy as np
    from isal import isal_zlib

    # Fresh megabytes cost more here than the work done in them (page faults), so copies are few and rows are reused.
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
    """This thread's buffer for filtered rows."""
    import numpy as np

    rows: np.ndarray[Any, np.dtype[np.uint8]] | None = getattr(_buffers, "rows", None)
    if rows is None or rows.shape != (height, width):
        rows = np.empty((height, width), np.uint8)
        _buffers.rows = rows
    return rows


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(body, zlib.crc32(kind)))
