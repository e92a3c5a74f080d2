"""A picture as sixels, one line of the terminal at a time.

Each line of cells is a sixel image of its own. So a line that something else was written over (a message, a question,
another screen) is drawn again by itself, as a line of text is; one image for all lines is lost where any of them is.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

    Indices: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

_BAND = 6  # lines of pixels that one row of sixels holds
_BASE = 63  # the character of a sixel without a pixel
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)


@dataclass(frozen=True)
class Sixels:
    """A picture that fills so many columns and rows of cells of so many pixels.

    Args:
        image: is stretched to the place.
        colours: registers that the terminal has for it.
    """

    image: "Image"
    columns: int
    rows: int
    cell: tuple[int, int]
    colours: int = 256
    _lines: dict[tuple[int, int, int], str] = field(default_factory=dict)

    @cached_property
    def _palette_and_indices(self) -> "tuple[list[tuple[int, ...]], Indices]":
        import numpy as np
        from PIL import Image

        size = (self.columns * self.cell[0], self.rows * self.cell[1])
        fitted = self.image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        quick = Image.Quantize.FASTOCTREE if self.colours > 64 else Image.Quantize.MEDIANCUT
        indexed = fitted.quantize(self.colours, method=quick, dither=Image.Dither.NONE)
        flat = indexed.getpalette() or []
        palette = [tuple(round(value * 100 / 255) for value in flat[at : at + 3]) for at in range(0, len(flat), 3)]
        return palette, np.asarray(indexed, dtype=np.uint8)

    def line(self, row: int, left: int, right: int) -> str:
        """What draws the columns from `left` to before `right` of one row, at the cursor, which stays where it is."""
        known = self._lines.get((row, left, right))
        if known is None:
            palette, indices = self._palette_and_indices
            width, height = self.cell
            part = indices[row * height : (row + 1) * height, left * width : right * width]
            known = self._lines[row, left, right] = f"\x1b7{_encoded(part, palette)}\x1b8"
        return known


def _encoded(part: "Indices", palette: list[tuple[int, ...]]) -> str:
    """Pixels as one sixel image; where it has none, what is on the terminal stays (its last band may reach further)."""
    import numpy as np

    height, width = part.shape
    used = np.unique(part).tolist()
    pieces = [f'\x1bP0;1;0q"1;1;{width};{height}'.encode()]
    pieces += [f"#{index};2;{red};{green};{blue}".encode() for index in used for red, green, blue in (palette[index],)]
    for top in range(0, height, _BAND):
        band = part[top : top + _BAND]
        weights = (1 << np.arange(len(band), dtype=np.uint8))[:, None]
        for index in np.unique(band).tolist():
            bits = ((band == index) * weights).sum(axis=0, dtype=np.uint8) + _BASE
            pieces.append(b"#%d%b$" % (index, _RUN.sub(_repeated, bits.astype(np.uint8).tobytes())))
        pieces.append(b"-")
    return b"".join([*pieces[:-1], b"\x1b\\"]).decode("ascii")


def _repeated(run: "re.Match[bytes]") -> bytes:
    return b"!%d%b" % (len(run[0]), run[1])
