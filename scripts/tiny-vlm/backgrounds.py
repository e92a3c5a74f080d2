"""Backgrounds that look like desktops: drawn, or parts of real screenshots."""

from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont

WORDS = [
    "File", "Edit", "View", "Search", "Terminal", "Help", "Open", "Save", "Cancel", "Apply", "Settings", "Display",
    "Sound", "Network", "Power", "Appearance", "Fonts", "Keyboard", "Mouse", "the", "quick", "brown", "fox",
    "jumps", "over", "a", "lazy", "dog", "report", "2026", "invoice", "total", "1,204.50", "inbox", "draft", "sent",
    "hello", "world", "desktop", "window", "manager", "panel", "battery", "87%", "volume", "wifi", "update",
    "install", "remove", "close", "minimise", "notes", "music", "video",
]  # fmt: skip
FONTS: list[Font] = []


def fonts() -> list[Font]:
    if not FONTS:
        folder = Path("/usr/share/fonts/truetype/dejavu")
        for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf", "DejaVuSerif.ttf"):
            for size in (9, 11, 13, 16, 22):
                try:
                    FONTS.append(ImageFont.truetype(str(folder / name), size))
                except OSError:
                    FONTS.append(ImageFont.load_default())
    return FONTS


def near(rng: Random, colour: tuple[int, int, int], by: int) -> tuple[int, int, int]:
    """A colour not far from this one."""
    red, green, blue = (max(0, min(255, value + rng.randrange(-by, by + 1))) for value in colour)
    return red, green, blue


def pastel(rng: Random) -> tuple[int, int, int]:
    """A colour of interfaces: grey mostly, sometimes tinted, seldom vivid."""
    kind = rng.random()
    if kind < 0.5:
        v = rng.randrange(256)
        return near(rng, (v, v, v), 8)
    if kind < 0.85:
        v = rng.randrange(40, 216)
        return near(rng, (v, v, v), 40)
    return rng.randrange(256), rng.randrange(256), rng.randrange(256)


def texts(rng: Random, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], most: int) -> None:
    left, top, right, bottom = box
    font = rng.choice(fonts())
    colour = pastel(rng)
    y, step = top, int(getattr(font, "size", 9)) + rng.randrange(2, 10)
    for _ in range(most):
        if y + step > bottom:
            break
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 7)))
        draw.text((left, y), words[: max(1, (right - left) // 6)], font=font, fill=colour)
        y += step


def background(rng: Random, width: int, height: int, shots: list[Image.Image]) -> Image.Image:
    """A made-up desktop, or part of a real screenshot."""
    if shots and rng.random() < 0.35:
        shot = rng.choice(shots)
        scale = rng.uniform(0.5, 1.0)
        w, h = min(shot.width, int(width / scale)), min(shot.height, int(height / scale))
        x, y = rng.randrange(shot.width - w + 1), rng.randrange(shot.height - h + 1)
        return shot.crop((x, y, x + w, y + h)).resize((width, height), Image.Resampling.BILINEAR)
    a, b = np.array(pastel(rng), np.float32), np.array(pastel(rng), np.float32)
    if rng.random() < 0.4:
        b = a
    ramp = np.linspace(0, 1, height, dtype=np.float32)[:, None] * rng.uniform(-1, 1)
    ramp = ramp + np.linspace(0, 1, width, dtype=np.float32)[None] * rng.uniform(-1, 1)
    ramp = (ramp - ramp.min()) / (np.ptp(ramp) + 1e-6)
    field = a + (b - a) * ramp[..., None]
    if rng.random() < 0.2:
        field = field + np.random.default_rng(rng.randrange(2**32)).normal(0, rng.uniform(2, 14), (height, width, 1))
    image = Image.fromarray(field.clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(rng.randrange(0, 6)):  # windows
        w, h = rng.randrange(60, max(61, int(width * 0.8))), rng.randrange(40, max(41, int(height * 0.8)))
        x, y = rng.randrange(-30, width - 40), rng.randrange(-20, height - 30)
        draw.rectangle((x, y, x + w, y + h), fill=pastel(rng), outline=pastel(rng))
        bar = rng.randrange(14, 28)
        draw.rectangle((x, y, x + w, y + bar), fill=pastel(rng))
        draw.text((x + 6, y + 2), rng.choice(WORDS), font=rng.choice(fonts()[:3]), fill=pastel(rng))
        texts(rng, draw, (x + 8, y + bar + 6, x + w, min(y + h, height)), rng.randrange(0, 10))
        for _ in range(rng.randrange(0, 4)):  # buttons
            bx, by = x + rng.randrange(w), y + bar + rng.randrange(max(1, h - bar))
            draw.rounded_rectangle((bx, by, bx + rng.randrange(40, 110), by + rng.randrange(14, 28)), 4, pastel(rng))
    if rng.random() < 0.5:
        draw.rectangle((0, 0, width, rng.randrange(18, 32)), fill=pastel(rng))
        texts(rng, draw, (6, 3, width, 30), 1)
    for _ in range(rng.randrange(0, 3)):
        texts(rng, draw, (rng.randrange(width), rng.randrange(height), width, height), 3)
    for _ in range(rng.randrange(0, 4)):
        draw.line([rng.randrange(width), rng.randrange(height), rng.randrange(width), rng.randrange(height)],
                  fill=pastel(rng), width=rng.randrange(1, 4))  # fmt: skip
    return image
