"""Synthetic screenshots: text and pictures on a soft background, with about the entropy of real ones.

A plain rectangle would flatter a server, because it compresses to nothing. Decoding, resizing and hashing these costs
what a real screenshot costs.
"""

import hashlib
import random
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

_LETTERS = "etaoinshrdlucmfwygpbvkxqjz     "


def screenshot(key: str, width: int, height: int) -> "Image":
    """A screenshot in RGB. The same key and size in pixels give the same picture, other keys other pictures."""
    from PIL import ImageDraw

    dice = random.Random(f"{key}/{width}x{height}")  # noqa: S311  # pictures, not secrets
    image = _ground(dice, width, height)
    draw = ImageDraw.Draw(image)
    for _ in range(5):  # windows: lines of text beside a picture
        wide, high = dice.randint(width // 3, width * 2 // 3), dice.randint(height // 3, height * 2 // 3)
        left, top = dice.randint(0, width - wide), dice.randint(0, height - high)
        body, ink = dice.choice((((250, 250, 250), (25, 25, 25)), ((32, 33, 36), (220, 220, 220))))
        draw.rectangle((left, top, left + wide, top + high), fill=body, outline=(120, 120, 120))
        size = dice.choice((12, 13, 15, 18))
        for y in range(top, top + high - size, size + 6):
            line = "".join(dice.choices(_LETTERS, k=dice.randint(2, max(4, wide // (size // 2 + 1)))))
            draw.text((left, y), line, font=_font(size), fill=ink)
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


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)  # Pillow's own: the same on every machine
