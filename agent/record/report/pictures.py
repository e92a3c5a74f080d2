"""The screenshots of a report: each once, small enough that the whole file stays within its budget.

A screenshot of a bundle is a PNG of about 600 kB. At 1080p and on one core, decoding takes 17 ms, encoding 6 ms as JPEG
and 22 ms as WebP. So JPEG is tried first, and the smaller WebP if the JPEG is too large.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.screen.encode import EncodedImage, ImageFormat, encode

if TYPE_CHECKING:
    from PIL.Image import Image

#: Bytes of all pictures, before base64 makes them 4/3 as large: 50 steps stay under 15 MB as a file. Longer runs may
#: have a larger report, because unreadable pictures are of no use.
_BUDGET, _BUDGET_MOST, _BUDGET_STEPS = 10_000_000, 36_000_000, 50
_THUMB = (192, 120)
#: Above this many pictures, thumbnails are smaller: the film strip is only skimmed.
_MANY, _THUMB_MANY = 400, (128, 80)
#: Bytes of a thumbnail, on average.
_THUMB_BYTES = 4_000
#: Files beyond this are no screenshots of ours.
_MOST_FILE, _MOST_PIXELS = 64 << 20, 50_000_000


#: Ways to encode, the best first: the widest side kept, the format, the quality.
_LEVELS: tuple[tuple[int, ImageFormat, int], ...] = (
    (2560, "jpeg", 78), (2560, "webp", 60), (1920, "webp", 45), (1280, "webp", 45),
    (960, "webp", 40), (640, "webp", 35), (480, "webp", 25), (320, "webp", 10),
)  # fmt: skip
#: From this level on, a picture counts as reduced.
_REDUCED = 2


@dataclass(frozen=True, slots=True)
class Picture:
    """One screenshot as the report shows it."""

    image: EncodedImage
    thumb: EncodedImage
    size: tuple[int, int]  # of the screenshot itself
    reduced: bool  # whether it was made smaller to keep the file small

    def to_json(self) -> dict[str, Any]:
        """The picture as the page takes it, with data: URLs."""
        urls = {"url": self.image.data_url, "thumb": self.thumb.data_url}
        return urls | {"size": self.size, "reduced": self.reduced}


class Pictures:
    """The pictures of the screenshots of all steps (None: a step without one), in the order they were first seen."""

    def __init__(self, files: Sequence[Path | None]) -> None:
        names = [None if file is None else _digest(file) for file in files]
        sources = {name: file for name, file in zip(names, files, strict=True) if name is not None and file is not None}
        encoded = zip(sources, _within_budget(list(sources.values())), strict=True)
        shown = {name: picture for name, picture in encoded if picture is not None}
        places: dict[str | None, int] = {name: place for place, name in enumerate(shown)}
        self.all = list(shown.values())
        #: For every step the number of its picture, or None where there is none to show.
        self.of_step = [places.get(name) for name in names]

    @property
    def reduced(self) -> int:
        """How many were made smaller to keep the file small."""
        return sum(picture.reduced for picture in self.all)


def _digest(file: Path) -> str | None:
    """Return a hash of the file, so that equal screenshots are stored once; None if it is too large or unreadable."""
    try:
        if file.stat().st_size > _MOST_FILE:
            return None
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return None


def _within_budget(files: list[Path]) -> list[Picture | None]:
    """Return the pictures, each within an equal share of the budget."""
    thumb = _THUMB if len(files) <= _MANY else _THUMB_MANY
    budget = min(_BUDGET_MOST, max(_BUDGET, _BUDGET * len(files) // _BUDGET_STEPS // 3))
    share = budget // max(1, len(files)) - _THUMB_BYTES
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8), thread_name_prefix="report") as pool:
        return list(pool.map(lambda file: _picture(file, thumb, share), files))


def _picture(file: Path, thumb: tuple[int, int], limit: int) -> Picture | None:
    """Return the screenshot at the first level that stays within the limit; the last one in any case."""
    image = load(file)
    if image is None:
        return None
    for level, (side, image_format, quality) in enumerate(_LEVELS):
        encoded, is_reduced = encode(_shrunk(image, side, side), image_format, quality), level >= _REDUCED
        if len(encoded.data) <= limit:
            break
    return Picture(encoded, encode(_shrunk(image, *thumb), "jpeg", 60), image.size, is_reduced)


def load(file: Path) -> "Image | None":
    """Return a screenshot's pixels; None if the file is no picture, or has too many pixels."""
    from PIL import Image

    try:
        with Image.open(file) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                return None
            return opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _shrunk(image: "Image", width: int, height: int) -> "Image":
    """Shrink the image to fit into this size: first by a whole factor, which is quick, and then smoothly."""
    from PIL import Image

    factor = min(width / image.width, height / image.height)
    if factor >= 1:
        return image
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=1.5)
