"""The screenshots of a report: each once, small enough that the whole file stays within its budget.

A screenshot of a bundle is a PNG of about 600 kB. JPEG is what makes a report quick (decoding 17 ms, encoding 6 ms for
1080p on one core; WebP takes 22 ms), WebP what makes it small, so JPEG is tried first and WebP where it does not fit.
"""

import base64
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

#: Bytes of all pictures, before base64 makes them 4/3 as large: 50 steps stay under 15 MB as a file. Longer runs may
#: have a larger report, because pictures on which nothing can be read help nobody.
_BUDGET, _BUDGET_MOST, _BUDGET_STEPS = 10_000_000, 36_000_000, 50
_THUMB = (192, 120)
#: Above this many pictures a film strip is only scrolled past: smaller thumbnails.
_MANY, _THUMB_MANY = 400, (128, 80)
#: ... and the level that most of their screenshots will have, tried first to save time.
_MANY_LEVEL = 4
#: Files beyond this are no screenshots of ours.
_MOST_FILE, _MOST_PIXELS = 64 << 20, 50_000_000


@dataclass(frozen=True, slots=True)
class _Level:
    """One way to encode: the widest side kept, the format, the quality."""

    side: int
    format: str
    quality: int


#: What a lower quality leaves of a picture's bytes at the least, at the same size: WebP at 45 after JPEG at 78.
_LEAST_SHARE = 0.2
_LEVELS = (
    _Level(2560, "JPEG", 78), _Level(2560, "WEBP", 60), _Level(1920, "WEBP", 45), _Level(1280, "WEBP", 45),
    _Level(960, "WEBP", 40), _Level(640, "WEBP", 35), _Level(480, "WEBP", 25), _Level(320, "WEBP", 10),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of the report.

    Args:
        url: the picture as a data: URL.
        thumb: a small one.
        size: the screenshot's own width and height.
        reduced: whether it was made smaller than the report would like, to keep the file small.
    """

    url: str
    thumb: str
    size: tuple[int, int]
    reduced: bool


@dataclass(frozen=True, slots=True)
class _Encoded:
    source: Path
    data: bytes
    thumb: bytes
    size: tuple[int, int]
    level: int


class Pictures:
    """The pictures of some screenshots, in the order they were first seen.

    Args:
        files: the screenshots, one per step; None for steps without one.
    """

    def __init__(self, files: Sequence[Path | None]) -> None:
        names = [None if file is None else _digest(file) for file in files]
        sources: dict[str, Path] = {}
        for name, file in zip(names, files, strict=True):
            if name is not None and file is not None:
                sources.setdefault(name, file)
        thumb = _THUMB if len(sources) <= _MANY else _THUMB_MANY
        budget = min(_BUDGET_MOST, max(_BUDGET, _BUDGET * len(sources) // _BUDGET_STEPS // 3))
        encoded = _within(budget, list(sources.values()), thumb)
        self.all: list[Picture] = []
        places: dict[str, int] = {}
        for name, picture in zip(sources, encoded, strict=True):
            if picture is not None:
                places[name] = len(self.all)
                self.all.append(_finished(picture))
        #: For every step the number of its picture, or None where there is none to show.
        self.of_step = [None if name is None else places.get(name) for name in names]

    @property
    def reduced(self) -> int:
        """How many were made smaller to keep the file small."""
        return sum(picture.reduced for picture in self.all)


def _digest(file: Path) -> str | None:
    """A name for the file's content, so that what did not change is stored once; None for what cannot be read."""
    try:
        if file.stat().st_size > _MOST_FILE:
            return None
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return None


def _within(budget: int, files: list[Path], thumb: tuple[int, int]) -> list[_Encoded | None]:
    """The files encoded, their bytes within the budget."""
    start = 0 if len(files) <= _MANY else _MANY_LEVEL
    encoded = _spread(lambda file: _encode_file(file, start, None, thumb), files)
    found = [picture for picture in encoded if picture is not None]
    budget -= sum(len(picture.thumb) for picture in found)
    limit = _fair_share([len(picture.data) for picture in found], budget)
    if limit is None:
        return encoded

    def shrink(picture: _Encoded | None) -> _Encoded | None:
        if picture is None or len(picture.data) <= limit:
            return picture
        return _encode_file(picture.source, _first_level(picture, limit), limit, thumb)

    return _spread(shrink, encoded)


def _fair_share(sizes: Iterable[int], budget: int) -> int | None:
    """The size no picture may exceed so that all fit: what the small ones leave is shared by the large ones."""
    ordered = sorted(sizes)
    left = budget
    for position, size in enumerate(ordered):
        share = left // (len(ordered) - position)
        if size > share:
            return max(share, 0)
        left -= size
    return None


def _spread(work: Callable[[Any], _Encoded | None], items: Sequence[Any]) -> list[_Encoded | None]:
    """The work on every item, on all cores: decoding and encoding let other threads run."""
    workers = max(1, min(os.cpu_count() or 1, 8))
    if workers == 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers, thread_name_prefix="report") as pool:
        return list(pool.map(work, items))


def _encode_file(file: Path, level: int, limit: int | None, thumb: tuple[int, int]) -> _Encoded | None:
    """The screenshot at the first level from `level` on that stays within the limit; the last one in any case."""
    image = load(file)
    if image is None:
        return None
    small = _encoded(_shrunk(image, *thumb), "JPEG", 60)
    data = b""
    for number in range(level, len(_LEVELS)):
        level = number
        chosen = _LEVELS[number]
        data = _encoded(_shrunk(image, chosen.side, chosen.side), chosen.format, chosen.quality)
        if limit is None or len(data) <= limit:
            break
    return _Encoded(file, data, small, image.size, level)


def _first_level(picture: _Encoded, limit: int) -> int:
    """The first level worth a try: bytes shrink about with the pixels, so what is far too large is not tried."""
    side = max(picture.size)
    had = min(side, _LEVELS[picture.level].side)
    for number in range(picture.level + 1, len(_LEVELS)):
        kept = min(side, _LEVELS[number].side) / had
        if len(picture.data) * kept * kept * _LEAST_SHARE <= limit:
            return number
    return len(_LEVELS) - 1


def load(file: Path) -> "Image | None":
    """A screenshot's pixels; None for what is no picture, or one of absurd size."""
    from PIL import Image

    try:
        with Image.open(file) as opened:
            if opened.width * opened.height > _MOST_PIXELS:
                return None
            return opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def _shrunk(image: "Image", width: int, height: int) -> "Image":
    """The image no larger than that; reduced by a whole factor first, which is quick, and then smoothly."""
    from PIL import Image

    factor = min(width / image.width, height / image.height)
    if factor >= 1:
        return image
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=1.5)


def _encoded(image: "Image", image_format: str, quality: int) -> bytes:
    buffer = io.BytesIO()
    if image_format == "JPEG":
        image.save(buffer, "JPEG", quality=quality, subsampling=0)  # red text on grey stays sharp
    else:
        image.save(buffer, "WEBP", quality=quality, method=0)
    return buffer.getvalue()


def _finished(picture: _Encoded) -> Picture:
    reduced = picture.level > 1
    return Picture(_url(picture.data), _url(picture.thumb), picture.size, reduced)


def _url(data: bytes) -> str:
    kind = "jpeg" if data.startswith(b"\xff\xd8") else "webp"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
