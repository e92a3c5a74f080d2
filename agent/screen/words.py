"""Reads the words on a screen, and on each later screen only the parts that changed.

New parts are read in crops that contain ink: inside windows by blocks of text, outside of them (panels, desktop icons)
by single lines, so that a photograph as wallpaper costs little. A wallpaper, an empty page and a plain panel have no
ink, that is no sharp vertical edges, whereas letters consist of them.

Each block is read once as it is. Ink without a confident word is read again line by line, then by each pixel's
difference from its surroundings, and what is left is searched for the background of a selection. This finds more words
than two full passes, in half the time; measured on the screens of `tests/literal` and of XFCE at 1920x1080, see
docs/facts.md.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.screen.ocr import Box, Ocr, Word, lines_of, relief

if TYPE_CHECKING:
    import numpy as np

    Mask = np.ndarray[Any, np.dtype[np.bool_]]
    Grey = np.ndarray[Any, np.dtype[np.uint8]]
    from PIL.Image import Image

#: Side of an ink cell in pixels.
CELL = 4
#: Neighbouring pixels that differ by more form an edge. The letters of a disabled menu item differ by 60 or more.
_EDGE = 24
#: A vertical edge of at least this many pixels is the side of a window or a field, not a letter.
_LINE = 32


def ink_of(grey: "Grey") -> "Mask":
    """Return which cells of a greyscale image contain something like letters. The last cells may be cut off."""
    import numpy as np

    edges = np.zeros((-(-grey.shape[0] // CELL) * CELL, -(-grey.shape[1] // CELL) * CELL), np.bool_)
    height, width = grey.shape
    left, right = grey[:, :-1], grey[:, 1:]
    np.greater(np.maximum(left, right) - np.minimum(left, right), _EDGE, out=edges[:height, 1:width])
    _without_lines(edges)
    rows, columns = edges.shape[0] // CELL, edges.shape[1] // CELL
    ink: Mask = edges.reshape(rows, CELL, columns, CELL).sum(axis=(1, 3), dtype=np.uint8) >= 2
    return ink


def _without_lines(edges: "Mask") -> None:
    import numpy as np

    if len(edges) < _LINE:
        return
    run = edges.copy()
    run[1:-1] |= edges[:-2] & edges[2:]
    step = 1
    while step < _LINE:  # afterwards, True where a run of `_LINE` pixels begins
        run = run[: len(run) - step] & run[step:]
        step *= 2
    if not run.any():
        return
    lines = np.zeros_like(edges)
    lines[: len(run)] = run
    while step > 1:
        step //= 2
        lines[step:] |= lines[:-step].copy()
    edges &= ~lines


def patches(ink: "Mask", aside: int, below: int) -> list[Box]:
    """Return the boxes of ink, in cells, with gaps of over `2 * aside` cells across or `2 * below` down between."""
    spread = ink.copy()
    for by in range(1, aside + 1):
        spread[:, by:] |= ink[:, :-by]
        spread[:, :-by] |= ink[:, by:]
    wide = spread.copy()
    for by in range(1, below + 1):
        wide[by:] |= spread[:-by]
        wide[:-by] |= spread[by:]
    return [_tight(ink, box) for box in blobs(wide)]


def _tight(ink: "Mask", box: Box) -> Box:
    part = ink[box.top : box.bottom, box.left : box.right]
    rows, columns = part.nonzero()
    left, top = box.left + int(columns.min()), box.top + int(rows.min())
    return Box(left, top, box.left + int(columns.max()) + 1, box.top + int(rows.max()) + 1)


#: More runs than this mean a photograph, not a user interface.
_MOST_RUNS = 400_000


def blobs(mask: "np.ndarray[Any, np.dtype[np.bool_]]") -> list[Box]:
    """Return the bounding boxes of 8-connected areas of True pixels, by runs and union-find."""
    import numpy as np

    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    edges = np.diff(padded, axis=1)
    start_rows, starts = np.nonzero(edges == 1)
    _, ends = np.nonzero(edges == -1)
    count = len(starts)
    if count == 0 or count > _MOST_RUNS:
        return []
    parent = list(range(count))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    rows, lefts, rights = start_rows.tolist(), starts.tolist(), ends.tolist()
    first_of_row = np.searchsorted(start_rows, np.arange(mask.shape[0] + 1)).tolist()
    for row in range(1, mask.shape[0]):
        above, above_end = first_of_row[row - 1], first_of_row[row]
        for index in range(first_of_row[row], first_of_row[row + 1]):
            while above < above_end and rights[above] < lefts[index]:
                above += 1
            other = above
            while other < above_end and lefts[other] <= rights[index]:
                parent[root(other)] = root(index)
                other += 1
    patches: dict[int, list[Box]] = {}
    for index, (left, row, right) in enumerate(zip(lefts, rows, rights, strict=True)):
        patches.setdefault(root(index), []).append(Box(left, row, right, row + 1))
    return [Box.around(runs) for runs in patches.values()]


#: Two screens are compared in squares with sides of this many pixels.
_SQUARE = 16
#: Earlier screens to keep, so that areas uncovered by a closed menu or dialog need not be read again.
_KEPT = 6
#: Factor by which text is enlarged for tesseract, and the screen width above which it is not (4K, HiDPI: large enough).
_ENLARGE, _LARGE_WIDTH = 2.0, 2600
#: Confidence from which a word need not be read again.
_SURE = 80
#: Margin around ink that is read with it, in pixels.
_MARGIN = 8
#: Largest height of a single line of text, including its margin, in pixels.
_LINE_HEIGHT = 44
#: Higher blocks, in pixels, are split if possible, so that two threads can share them.
_BLOCK_HEIGHT = 240
#: How far windows extend beyond their content, with shadow and title bar, in pixels at scale 1.
_FRAME, _TITLE = 8, 40
#: Step by which shades of grey (0 to 255) are grouped, smallest difference of a selection from its surroundings, and
#: how many of the most common shades to check.
_SHADE, _APART, _MOST_SHADES = 8, 40, 5
#: Smallest width and height of a selection, in pixels, and smallest ratio of width to height. Anything smaller is part
#: of an icon.
_PLATE, _PLATE_SHAPE = (20, 12), 1.6
#: Most lines to read outside of windows; more means a photograph.
_MOST_LINES = 150


@dataclass(frozen=True, slots=True)
class _Look:
    grey: "Grey"
    windows: tuple[Box, ...]
    words: tuple[Word, ...]


class WordReader:
    """Reads one screen after the other, in one thread. Tesseract is loaded on first use.

    `who` needs the words, for the error message. Raises EnvironmentLacksError: tesseract's language data is missing.
    """

    def __init__(self, who: str, languages: Sequence[str] = ("eng",)) -> None:
        self._readers = [Ocr(who, languages), Ocr(who, languages)]
        self._looks: list[_Look] = []  # newest last
        self.pixels_read = 0  # in the last call, for tests and measurements

    def read(self, image: "Image", windows: Iterable[Box] | None = None) -> tuple[Word, ...]:
        """Return the words of a screen, with boxes in its pixels.

        `windows` are the windows' boxes in the same pixels; None if they are unknown.
        """
        import numpy as np

        grey: Grey = np.asarray(image.convert("L"))
        screen = Box(0, 0, image.width, image.height)
        around = tuple(_framed(box) for box in windows) if windows is not None else (screen,)
        self._looks = [look for look in self._looks if look.grey.shape == grey.shape]
        self.pixels_read = 0
        words = self._reread(grey, around) if self._looks else self._read(grey, around, screen)
        self._looks = [*self._looks[-_KEPT + 1 :], _Look(grey, around, words)]
        return words

    def _reread(self, grey: "Grey", around: tuple[Box, ...]) -> tuple[Word, ...]:
        last = self._looks[-1]
        words = list(last.words)
        for region in _changed(grey, last):
            kept = [word for word in words if not word.box.overlaps(region)]
            known = self._known(grey, region)
            words = [*kept, *(self._read(grey, around, region) if known is None else known)]
        return tuple(words)

    def _known(self, grey: "Grey", region: Box) -> tuple[Word, ...] | None:
        import numpy as np

        for look in reversed(self._looks[:-1]):
            if np.array_equal(_part(grey, region), _part(look.grey, region)):
                return tuple(word for word in look.words if word.box.overlaps(region))
        return None

    def _read(self, grey: "Grey", around: tuple[Box, ...], region: Box) -> tuple[Word, ...]:
        part = _part(grey, region)
        windows = (box.moved(-region.left, -region.top) for box in around)
        crops = _crops(ink_of(part), windows, part.shape)
        self.pixels_read += sum(crop.box.width * crop.box.height for crop in crops)
        scale = 1.0 if grey.shape[1] > _LARGE_WIDTH else _ENLARGE

        def read(reader: Ocr, crop: _Crop) -> list[Word]:
            words = _read_crop(reader, _part(part, crop.box), scale, is_line=crop.is_line)
            return _moved(words, crop.box.left, crop.box.top)

        return tuple(_moved(merge(_in_two(self._readers, crops, read)), region.left, region.top))


def merge(words: Iterable[Word]) -> list[Word]:
    """Keep only the best of several readings of the same place."""
    kept: list[Word] = []
    for word in sorted(words, key=lambda item: -_worth(item)):
        if not any(_same_place(word.box, other.box) for other in kept):
            kept.append(word)
    return kept


def _worth(word: Word) -> float:
    """Rank confident and long words first: an icon beside a label must not displace the label."""
    return word.confidence + min(word.letters, 12) * 2


def _same_place(one: Box, other: Box) -> bool:
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    if width <= 0 or height <= 0:
        return False
    smaller = min(one.width * one.height, other.width * other.height)
    return width * height > 0.4 * max(smaller, 1)


def _framed(window: Box) -> Box:
    return Box(window.left - _FRAME, window.top - _TITLE, window.right + _FRAME, window.bottom + _FRAME)


def _part(grey: "Grey", box: Box) -> "Grey":
    return grey[box.top : box.bottom, box.left : box.right]


def _moved(words: Iterable[Word], right: int, down: int) -> list[Word]:
    return [replace(word, box=word.box.moved(right, down)) for word in words]


# What changed


def _changed(grey: "Grey", last: _Look) -> list[Box]:
    lines = [Box.around(word.box for word in line) for line in lines_of(last.words)]
    regions = [_grown(box, _SQUARE, grey.shape) for box in blobs(_squares(grey != last.grey))]
    regions = _apart(regions)
    while True:
        extended = [Box.around([region, *(line for line in lines if line.overlaps(region))]) for region in regions]
        extended = _apart([_clipped(box, grey.shape) for box in extended])
        if extended == regions:
            return regions
        regions = extended


def _squares(pixels: "Mask") -> "Mask":
    import numpy as np

    rows, columns = (-(-side // _SQUARE) for side in pixels.shape)
    padded = np.zeros((rows * _SQUARE, columns * _SQUARE), np.bool_)
    padded[: pixels.shape[0], : pixels.shape[1]] = pixels
    return np.logical_or.reduce(padded.reshape(rows, _SQUARE, columns, _SQUARE), axis=(1, 3))  # type: ignore[no-any-return]


def _grown(box: Box, unit: int, shape: tuple[int, ...]) -> Box:
    left, top, right, bottom = (side * unit for side in box)
    return _clipped(Box(left - _MARGIN, top - _MARGIN, right + _MARGIN, bottom + _MARGIN), shape)


def _clipped(box: Box, shape: tuple[int, ...]) -> Box:
    return Box(max(0, box.left), max(0, box.top), min(shape[1], box.right), min(shape[0], box.bottom))


def _apart(boxes: Iterable[Box]) -> list[Box]:
    """Merge overlapping boxes until none overlap."""
    apart: list[Box] = []
    for box in boxes:
        merged = box
        while touched := [other for other in apart if other.overlaps(merged)]:
            apart = [other for other in apart if other not in touched]
            merged = Box.around([merged, *touched])
        apart.append(merged)
    return apart


# What is read, and how


@dataclass(frozen=True, slots=True)
class _Crop:
    box: Box
    is_line: bool  # a single line rather than a block


def _crops(ink: "Mask", windows: Iterable[Box], shape: tuple[int, ...]) -> list[_Crop]:
    inside = ink & False
    for window in windows:
        box = _clipped(Box(*(side // CELL for side in window)), ink.shape)
        inside[box.top : box.bottom, box.left : box.right] = True
    blocks = _apart(_boxes(ink & inside, 3, 1, shape))
    pieces = [piece for block in blocks for piece in _pieces(ink, block)]
    lines = [box for box in _boxes(ink & ~inside, 4, 0, shape) if _may_be_line(box)]
    return [*(_Crop(box, False) for box in pieces), *(_Crop(box, True) for box in lines[:_MOST_LINES])]


def _pieces(ink: "Mask", block: Box) -> list[Box]:
    if block.height <= _BLOCK_HEIGHT:
        return [block]
    part = ink[block.top // CELL : block.bottom // CELL, block.left // CELL : block.right // CELL]
    empty = [row for row, inked in enumerate(part) if not inked.any()]
    middle = len(part) / 2
    row = min(empty, key=lambda row: abs(row - middle), default=0)
    cut = block.top // CELL * CELL + row * CELL + CELL // 2
    if min(cut - block.top, block.bottom - cut) < _LINE_HEIGHT:
        return [block]
    upper, lower = block._replace(bottom=cut), block._replace(top=cut)
    return [*_pieces(ink, upper), *_pieces(ink, lower)]


def _boxes(ink: "Mask", aside: int, below: int, shape: tuple[int, ...]) -> list[Box]:
    return [_grown(box, CELL, shape) for box in patches(ink, aside, below)]


def _may_be_line(box: Box) -> bool:
    return box.height <= _LINE_HEIGHT and box.width >= 20 + _MARGIN


def _in_two(readers: Sequence[Ocr], crops: Sequence[_Crop], read: Callable[[Ocr, _Crop], list[Word]]) -> list[Word]:
    """Read all crops, largest first, in as many threads as there are readers."""
    waiting = sorted(crops, key=lambda crop: crop.box.width * crop.box.height)  # largest last

    def work(reader: Ocr) -> list[Word]:
        words: list[Word] = []
        while True:
            try:
                crop = waiting.pop()
            except IndexError:
                return words
            words += read(reader, crop)

    if len(waiting) < 2:
        return work(readers[0])
    with ThreadPoolExecutor(len(readers)) as pool:
        return [word for words in pool.map(work, readers) for word in words]


def _read_crop(reader: Ocr, grey: "Grey", scale: float, *, is_line: bool) -> list[Word]:
    from PIL import Image

    image = Image.fromarray(grey)
    words = reader.words(image, scale, is_line=is_line)
    ink = ink_of(grey)
    if not is_line:
        for box in _rest(ink, words):
            read = reader.words(image.crop(box), scale, is_line=box.height <= _LINE_HEIGHT)
            words += _moved(read, box.left, box.top)
    if rest := _rest(ink, words):
        plain = relief(image)
        for box in rest:
            words += _moved(reader.words(plain.crop(box), scale), box.left, box.top)
    for box in _rest(ink, words):
        for plate in _plates(_part(grey, box)):
            place = plate.moved(box.left, box.top)
            read = _moved(reader.words(image.crop(place), scale, is_line=True), place.left, place.top)
            words += [word for word in read if word.confidence >= _SURE and word.letters > 1]
    return words


def _plates(grey: "Grey") -> list[Box]:
    """Return the areas of selections in a crop: areas of another shade, as high as a line, with ink in the gaps.

    If such an area lies in a field with a border or beside an icon, tesseract reads all of it as one line and finds
    nothing.
    """
    import numpy as np

    levels = np.bincount((grey // _SHADE).ravel())
    common = [int(level) for level in np.argsort(levels)[::-1][:_MOST_SHADES] if levels[level] >= 0.02 * grey.size]
    found: list[Box] = []
    for level in common[1:]:
        if abs(level - common[0]) * _SHADE < _APART:
            continue
        area = np.abs(grey.astype(np.int16) - level * _SHADE - _SHADE // 2) <= _SHADE
        found += [
            box
            for box in blobs(area)
            if box.width >= max(_PLATE[0], _PLATE_SHAPE * box.height)
            and _PLATE[1] <= box.height <= _LINE_HEIGHT
            and area[box.top : box.bottom, box.left : box.right].mean() >= 0.5
            and ink_of(_part(grey, box)).mean() >= 0.1
        ]
    return found


def _rest(ink: "Mask", words: Iterable[Word]) -> list[Box]:
    shape = (ink.shape[0] * CELL, ink.shape[1] * CELL)
    return [box for box in _boxes(_unread(ink, words), 4, 0, shape) if _may_be_line(box) or box.height > _LINE_HEIGHT]


def _unread(ink: "Mask", words: Iterable[Word]) -> "Mask":
    left = ink.copy()
    for word in words:
        if word.confidence >= _SURE and 2 * word.letters >= len(word.text):
            box = word.box
            left[max(0, box.top - 3) // CELL : (box.bottom + 3) // CELL + 1,
                 max(0, box.left - 3) // CELL : (box.right + 3) // CELL + 1] = False  # fmt: skip
    return left
