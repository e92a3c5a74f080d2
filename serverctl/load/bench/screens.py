"""Synthetic screenshots: windows, text, icons and a photographic background, with about the entropy of real ones.

A plain rectangle would flatter a server, because it compresses to nothing. Decoding, resizing and hashing these costs
what a real screenshot costs.
"""

import hashlib
import random
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_LETTERS = "etaoinshrdlucmfwygpbvkxqjz"
_DARK, _LIGHT = (32, 33, 36), (250, 250, 250)


def screenshot(key: str, width: int, height: int) -> "Image":
    """A screenshot in RGB. The same key and size in pixels give the same picture, another key another one."""
    from PIL import ImageDraw

    dice = random.Random(f"{key}/{width}x{height}")  # noqa: S311  # pictures, not secrets
    image = _ground(dice, width, height)
    draw = ImageDraw.Draw(image)
    for _ in range(5):
        window_width = dice.randint(width // 3, width * 2 // 3)
        window_height = dice.randint(height // 3, height * 2 // 3)
        left, top = dice.randint(0, width - window_width), dice.randint(0, height - window_height)
        _window(image, draw, dice, (left, top, left + window_width, top + window_height))
    draw.rectangle((0, height - 40, width, height), fill=_DARK)
    for left in range(12, width - 40, 52):
        _icon(draw, dice, left, height - 36, 32)
    # Different keys must never make the same picture.
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    for number, byte in enumerate(digest):
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


def _window(image: "Image", draw: "ImageDraw", dice: random.Random, box: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = box
    body, ink = (_LIGHT, (25, 25, 25)) if dice.random() < 0.6 else (_DARK, (220, 220, 220))
    draw.rectangle(box, fill=body, outline=(120, 120, 120))
    draw.rectangle((left, top, right, top + 28), fill=(70, 90, 120))
    draw.text((left + 10, top + 6), _line(dice, 24), font=_font(14), fill=_LIGHT)
    for y in range(top + 40, bottom - 30, 44):
        _icon(draw, dice, left + 10, y, 24)
    size = dice.choice((12, 13, 15, 18))
    columns = max(4, (right - left - 60) // (size // 2 + 1))
    for y in range(top + 38, bottom - size, size + 6):
        draw.text((left + 52, y), _line(dice, dice.randint(columns // 3, columns)), font=_font(size), fill=ink)
    side = min(160, (right - left) // 3, (bottom - top) // 3)
    if side > 0:
        image.paste(_ground(dice, side, side), (right - side - 12, bottom - side - 12))


def _icon(draw: "ImageDraw", dice: random.Random, left: int, top: int, side: int) -> None:
    colour = (dice.randrange(256), dice.randrange(256), dice.randrange(256))
    draw.rounded_rectangle((left, top, left + side, top + side), radius=side // 5, fill=colour)
    inner = (left + side // 4, top + side // 4, left + side * 3 // 4, top + side * 3 // 4)
    draw.ellipse(inner, outline=_LIGHT, width=2)


def _line(dice: random.Random, length: int) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append("".join(dice.choices(_LETTERS, k=dice.randint(2, 9))))
    return " ".join(words)[:length]


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)  # Pillow's own: the same on every machine
