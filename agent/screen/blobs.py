"""Connected patches of pixels: the shapes of characters, check boxes and switches."""

from typing import TYPE_CHECKING, Any

from agent.screen.ocr import Box

if TYPE_CHECKING:
    import numpy as np

#: More runs than this is a photograph, not a user interface.
_MOST_RUNS = 400_000


def blobs(mask: "np.ndarray[Any, np.dtype[np.bool_]]") -> list[Box]:
    """The bounding boxes of the 8-connected patches of True pixels, by runs and union-find."""
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
