"""Drawn desktops with coloured shapes on them, and how one asks for a shape."""

import math
from dataclasses import dataclass
from random import Random

from backgrounds import background, near
from PIL import Image, ImageDraw

COLOURS = {
    "red": (222, 30, 32), "green": (28, 160, 52), "blue": (30, 80, 224), "yellow": (242, 214, 30),
    "orange": (242, 128, 18), "purple": (138, 46, 182), "cyan": (26, 204, 214), "pink": (244, 108, 182),
}  # fmt: skip
SHAPES = ["square", "circle", "triangle", "diamond", "star", "cross", "ring", "bullseye"]
NAMES = list(COLOURS)
ASKS = [
    "click the {c} {s}", "Click the {c} {s}.", "the {c} {s}", "click on the {c} {s}", "Click on the {c} {s}",
    "find the {c} {s}", "{c} {s}", "Locate the {c} {s}.", "select the {c} {s}", "press the {c} {s}",
    "Where is the {c} {s}?", "tap the {c} {s}",
]  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """What was drawn: its centre and half its side, in pixels."""

    colour: str
    shape: str
    x: float
    y: float
    r: float


def draw_shape(rng: Random, draw: ImageDraw.ImageDraw, what: Shape) -> None:
    shape, cx, cy, r = what.shape, what.x, what.y, what.r
    c = near(rng, COLOURS[what.colour], 16)
    outline = rng.choice([None, None, (20, 20, 20), (250, 250, 250)])
    box = (cx - r, cy - r, cx + r, cy + r)
    if shape == "square":
        draw.rectangle(box, fill=c, outline=outline)
    elif shape == "circle":
        draw.ellipse(box, fill=c, outline=outline)
    elif shape == "triangle":
        draw.polygon([(cx, cy - r), (cx + r, cy + r), (cx - r, cy + r)], fill=c, outline=outline)
    elif shape == "diamond":
        draw.polygon([(cx, cy - r), (cx + r, cy), (cx, cy + r), (cx - r, cy)], fill=c, outline=outline)
    elif shape == "star":
        points: list[tuple[float, float]] = []
        for k in range(10):
            q, angle = (r if k % 2 == 0 else r * 0.42), math.pi * k / 5 - math.pi / 2
            points.append((cx + q * math.cos(angle), cy + q * math.sin(angle)))
        draw.polygon(points, fill=c, outline=outline)
    elif shape == "cross":
        t = r * 0.36
        draw.rectangle((cx - r, cy - t, cx + r, cy + t), fill=c)
        draw.rectangle((cx - t, cy - r, cx + t, cy + r), fill=c)
    elif shape == "ring":
        draw.ellipse(box, outline=c, width=max(3, int(r * 0.34)))
    else:  # bullseye: rings of the colour and of white, the colour in the middle
        for k, part in enumerate((1.0, 0.75, 0.5, 0.25)):
            draw.ellipse((cx - r * part, cy - r * part, cx + r * part, cy + r * part),
                         fill=c if k % 2 == 0 else (248, 248, 248))  # fmt: skip
        draw.ellipse((cx - r * 0.25, cy - r * 0.25, cx + r * 0.25, cy + r * 0.25), fill=c)


def scene(
    rng: Random, width: int, height: int, shots: list[Image.Image], least: int = 2, most: int = 8, alike: float = 0.0
) -> tuple[Image.Image, list[Shape]]:
    """An image and the shapes in it, no two alike.

    Without `alike` each colour occurs once; with it, so large a part of the shapes has another one's colour, or its
    shape in another colour: then the model cannot go by the colour alone.
    """
    image = background(rng, width, height, shots)
    draw = ImageDraw.Draw(image)
    scale = min(1.6, max(1.0, math.sqrt(width * height) / 500))
    shapes: list[Shape] = []
    used: set[tuple[str, str]] = set()
    for _ in range(rng.randrange(least, most + 1)):
        if shapes and rng.random() < alike:
            like = rng.choice(shapes)
            colour, shape = (like.colour, rng.choice(SHAPES)) if rng.random() < 0.5 else (rng.choice(NAMES), like.shape)
        else:
            free = [name for name in NAMES if alike or all(name != other.colour for other in shapes)]
            colour, shape = rng.choice(free or NAMES), rng.choice(SHAPES)
        if (colour, shape) in used or (not alike and any(colour == other.colour for other in shapes)):
            continue
        for _ in range(12):
            r = rng.uniform(11, 34) * scale
            x, y = rng.uniform(r + 1, width - r - 1), rng.uniform(r + 1, height - r - 1)
            if all(max(abs(x - o.x), abs(y - o.y)) > r + o.r + 3 for o in shapes):
                shapes.append(Shape(colour, shape, x, y, r))
                draw_shape(rng, draw, shapes[-1])
                used.add((colour, shape))
                break
    return image, shapes


def random_size(rng: Random, low: int, high: int, cell: int) -> tuple[int, int]:
    """A size whose sides are multiples of `cell` and whose area is about low..high cells."""
    while True:
        cells = math.exp(rng.uniform(math.log(low), math.log(high)))
        aspect = math.exp(rng.uniform(math.log(0.6), math.log(2.0)))
        w, h = round(math.sqrt(cells * aspect)), round(math.sqrt(cells / aspect))
        if w >= 6 and h >= 6 and w * h >= 64:
            return w * cell, h * cell
