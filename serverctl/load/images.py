"""Image files as vLLM accepts them: data: URLs, and synthetic screenshots."""

import base64
import hashlib
import io
import random
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


def screenshot(key: str, width: int, height: int) -> "Image":
    """A screenshot in RGB. The same key and size in pixels give the same picture, other keys other pictures."""
    from PIL import ImageDraw

    dice = random.Random(f"{key}/{width}x{height}")  # noqa: S311  # pictures, not secrets
    image = _ground(dice, width, height)
    draw = ImageDraw.Draw(image)
    for _ in range(5):  # windows with a picture
        wide, high = dice.randint(width // 3, width * 2 // 3), dice.randint(height // 3, height * 2 // 3)
        left, top = dice.randint(0, width - wide), dice.randint(0, height - high)
        body = dice.choice(((250, 250, 250), (32, 33, 36)))
        draw.rectangle((left, top, left + wide, top + high), fill=body, outline=(120, 120, 120))
        side = min(160, wide // 3, high // 3)
        image.paste(_ground(dice, side, side), (left + wide - side, top + high - side))
    # Different keys must never make the same picture.
    for number, byte in enumerate(hashlib.blake2b(key.encode(), digest_size=16).digest()):
        image.putpixel((number, 0), (byte, 255 - byte, 128))
    return image


def _ground(dice: random.Random, width: int, height: int) -> "Image":
    import numpy as np
    from PIL import Image
    from PIL.Image import Resampling

    numbers = np.random.default_rng(dice.getrandbits(64))
    few = Image.fromarray(numbers.integers(0, 256, (6, 9, 3), dtype=np.uint8))
    soft = few.resize((width, height), Resampling.BICUBIC)
    grain = numbers.integers(-3, 4, (height, width, 1), dtype=np.int16)
    return Image.fromarray(np.clip(np.asarray(soft, np.int16) + grain, 0, 255).astype(np.uint8))
