"""Image files as vLLM accepts them: data: URLs, and files resized to the model's pixel grid."""

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

#: File signatures of the formats that vLLM's image reader (Pillow) knows; WebP's has a length in it.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}


def media_type(data: bytes) -> str | None:
    """The media type of an image file by its first bytes; None unless it is PNG, JPEG, WebP, GIF or BMP."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((f"image/{name}" for signature, name in _SIGNATURES.items() if data.startswith(signature)), None)


def data_url(data: bytes) -> str:
    """An image file as a data: URL. Raises ValueError if it is no image file."""
    kind = media_type(data)
    if kind is None:
        raise ValueError("it is no PNG, JPEG, WebP, GIF or BMP file")
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def png(image: "Image") -> bytes:
    """A PNG, compressed lightly: on loopback time matters more than size."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


def fitted(data: bytes, fit: Callable[[int, int], tuple[int, int]]) -> bytes:
    """Resize an image file to the size that `fit` returns for its own; the same bytes if nothing changes.

    Raises:
        ValueError: Pillow cannot read it.
        UsageError: `fit` refuses its size.
    """
    from PIL import Image, ImageOps
    from PIL.Image import Resampling

    try:
        with Image.open(io.BytesIO(data)) as opened:
            upright = ImageOps.exif_transpose(opened)  # a new file carries no orientation: it is applied here
            size = fit(upright.width, upright.height)
            if size == opened.size == upright.size and media_type(data) is not None:
                return data
            # HAMMING keeps small text about as sharp as BICUBIC at BILINEAR's cost (Pillow's handbook, "Filters").
            return png(_flat(upright).resize(size, Resampling.HAMMING))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow's for broken files and bombs
        raise ValueError(f"it cannot be read as an image ({error})") from error


def _flat(image: "Image") -> "Image":
    """RGB; transparent pixels become white, as in vLLM's own reader."""
    from PIL import Image

    if not image.has_transparency_data:
        return image.convert("RGB")
    layered = image.convert("RGBA")
    ground = Image.new("RGBA", layered.size, "white")
    return Image.alpha_composite(ground, layered).convert("RGB")
