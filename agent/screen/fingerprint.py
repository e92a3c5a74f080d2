"""Compares screens by small cells: cheap enough to poll, and blind to what blinks.

A strict pixel comparison never finds a desktop still (carets blink, clocks tick), and a coarse one misses a check box.
So a screen is kept as the grey values of cells, and two screens differ by the set of cells that changed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

#: Grey pixels are compared at a quarter of the size: a poll of a 1080p screen then costs about 4 ms.
_REDUCTION = 4
#: A cell is this many captured pixels wide and high: a caret or a check box is one or two cells.
CELL = 32
#: Grey levels (of 255) by which a reduced pixel must differ to count.
_NOISE = 6


@dataclass(frozen=True)
class Fingerprint:
    """The reduced grey image of one screen."""

    grey: "np.ndarray[Any, np.dtype[np.int16]]"

    @classmethod
    def of(cls, image: "Image") -> "Fingerprint":
        """The fingerprint of an RGB image."""
        import numpy as np

        return cls(np.asarray(image.reduce(_REDUCTION).convert("L"), dtype=np.int16))

    def changed_cells(self, other: "Fingerprint") -> frozenset[tuple[int, int]]:
        """The cells (row, column) that differ; all of them, as (-1, -1), when the sizes differ."""
        import numpy as np

        if self.grey.shape != other.grey.shape:
            return frozenset({(-1, -1)})
        rows, columns = np.nonzero(np.abs(self.grey - other.grey) > _NOISE)
        step = CELL // _REDUCTION
        return frozenset(zip((rows // step).tolist(), (columns // step).tolist(), strict=True))

    @cached_property
    def digest(self) -> str:
        """A short name of this screen, for the record."""
        import hashlib

        return hashlib.blake2b(self.grey.tobytes(), digest_size=8).hexdigest()
