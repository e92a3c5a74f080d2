"""Finds the parts of an image that contain text or drawings, so that OCR can skip the rest.

A wallpaper, an empty page and a plain panel have no sharp vertical edges, whereas letters consist of them.
"""

from typing import TYPE_CHECKING, Any

from agent.screen.ocr import Box

if TYPE_CHECKING:
    import numpy as np

    Mask = np.ndarray[Any, np.dtype[np.bool_]]
    Grey = np.ndarray[Any, np.dtype[np.uint8]]


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
