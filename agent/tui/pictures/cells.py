"""A picture as characters: each cell has two colours, and a character that says which of its parts has which.

For every cell the two colours are looked for that are farthest from each other, its parts go to the nearer one, and
each side becomes the mean of its parts: so an edge stays an edge, which a mean over the cell would wash out.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent.tui.pictures.ways import Cells

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: What colours a terminal has: 24 bit or 256, the 16 that every theme defines anew, or none.
Depth: TypeAlias = Literal["full", "sixteen", "none"]
Rgb: TypeAlias = tuple[int, int, int]

#: Parts of a cell: across, down.
PARTS: dict[Cells, tuple[int, int]] = {"halves": (1, 2), "quadrants": (2, 2), "sextants": (2, 3), "octants": (2, 4)}

#: The four of the 16 colours that every theme keeps apart (black, the two greys, white), as Rich knows them: colours of
#: exactly these values become those of the terminal.
GREYS: tuple[Rgb, ...] = ((0, 0, 0), (85, 85, 85), (170, 170, 170), (255, 255, 255))

#: Octants that were characters before there were octants (Unicode 16): quarters by rows, and single corners.
_OLD_OCTANTS = {
    0x03: 0x1FB82, 0x3F: 0x1FB85, 0xC0: 0x2582, 0xFC: 0x2586, 0x14: 0x1FBE6, 0x28: 0x1FBE7,
    0x01: 0x1CEA8, 0x02: 0x1CEAB, 0x40: 0x1CEA3, 0x80: 0x1CEA0,
}  # fmt: skip
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"


@dataclass(frozen=True, slots=True)
class Cell:
    """One character of a picture; its colours are None where the terminal has none."""

    char: str
    front: Rgb | None
    back: Rgb | None


@cache
def characters(cells: Cells) -> str:
    """The character for every pattern: bit 0 is the part at the left top, then to the right, then down."""
    if cells == "halves":
        return " ▀▄█"
    if cells == "quadrants":
        return _QUADRANTS
    if cells == "sextants":
        known = {0: " ", 21: "▌", 42: "▐", 63: "█"}
        new = iter(range(0x1FB00, 0x1FB3C))
        return "".join(known.get(pattern) or chr(next(new)) for pattern in range(64))
    old = {pattern: chr(code) for pattern, code in _OLD_OCTANTS.items()}
    for quadrants, char in enumerate(_QUADRANTS):
        upper, lower = quadrants & 3, quadrants >> 2
        old[upper * 0b101 | lower * 0b1010000] = char
    new = iter(range(0x1CD00, 0x1CDE6))
    return "".join(old.get(pattern) or chr(next(new)) for pattern in range(256))


def drawn(image: "Image", columns: int, rows: int, cells: Cells, depth: Depth = "full") -> list[list[Cell]]:
    """The picture in so many cells, row by row."""
    import numpy as np
    from PIL import Image, ImageOps

    across, down = PARTS[cells]
    small = image.convert("RGB").resize((columns * across, rows * down), Image.Resampling.BOX, reducing_gap=2.0)
    if depth != "full":
        small = ImageOps.autocontrast(small.convert("L"), cutoff=1).convert("RGB")
    pixels = np.asarray(small, dtype=np.float32)
    parts = pixels.reshape(rows, down, columns, across, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1, 3)
    if depth == "none":
        bright = parts[..., 0] > 127
        back, front = np.zeros((len(parts), 3)), np.full((len(parts), 3), 255.0)
    else:
        bright, back, front = _two_colours(parts)
    if depth == "sixteen":
        back, front = _nearest_grey(back), _nearest_grey(front)
    patterns = (bright * (1 << np.arange(across * down))).sum(axis=1)
    chars = characters(cells)
    colours = zip(front.astype(int).tolist(), back.astype(int).tolist(), strict=True)
    made = [
        Cell(chars[pattern], None, None) if depth == "none" else Cell(chars[pattern], tuple(one), tuple(other))
        for pattern, (one, other) in zip(patterns.tolist(), colours, strict=True)
    ]
    return [made[start : start + columns] for start in range(0, len(made), columns)]


def _two_colours(parts: "Array") -> "tuple[Array, Array, Array]":
    """Which parts of every cell belong to its brighter colour, the darker colour, and the brighter one."""
    import numpy as np

    count = parts.shape[1]
    firsts, seconds = np.triu_indices(count, 1)
    apart = ((parts[:, firsts] - parts[:, seconds]) ** 2).sum(axis=2)
    farthest = apart.argmax(axis=1)
    every = np.arange(len(parts))
    one, other = parts[every, firsts[farthest]], parts[every, seconds[farthest]]
    swap = one.sum(axis=1) > other.sum(axis=1)
    dark, light = np.where(swap[:, None], other, one), np.where(swap[:, None], one, other)
    to_light = ((parts - light[:, None]) ** 2).sum(axis=2) < ((parts - dark[:, None]) ** 2).sum(axis=2)
    means = []
    for side, colour in ((~to_light, dark), (to_light, light)):
        share = side.sum(axis=1, keepdims=True)
        means.append(np.where(share > 0, (parts * side[..., None]).sum(axis=1) / np.maximum(share, 1), colour))
    return to_light, means[0], means[1]


def _nearest_grey(colours: "Array") -> "Array":
    """The grey of the sixteen colours that is nearest to each (they are grey already)."""
    import numpy as np

    greys = np.array(GREYS, dtype=np.float32)
    nearest: Array = greys[np.abs(colours[:, :1] - greys[None, :, 0]).argmin(axis=1)]
    return nearest
