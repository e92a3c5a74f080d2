"""Two runs step by step: which steps are the same, and where they part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from agent.core.actions import describe, map_points
from agent.core.geometry import DesktopPoint
from agent.tui.view import Row

#: Points that differ by less than about this are the same place, in desktop units: half of a small button.
_SAME_PLACE = 24
#: Steps that are laid side by side by their likeness; longer runs one by one, which costs no time.
_MOST_ALIGNED = 600


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows of two runs, equally many, those that belong together at the same place."""

    left: list[Row]
    right: list[Row]
    differing: list[int]  # the places of those that are not the same

    @property
    def words(self) -> str:
        """What there is to see, on one line."""
        if not self.differing:
            return "Every step is the same." if self.left else "Neither has a step."
        first, count = self.differing[0], len(self.differing)
        alike = ("They differ from the first step on", "The first step is the same")
        same = alike[first] if first < 2 else f"The first {first} steps are the same"
        return f"{same}; {count} {'differs' if count == 1 else 'differ'}. n goes to the next."


def compare(left: Sequence[Row], right: Sequence[Row]) -> Compared:
    """Lay the steps of two runs side by side; what one of them lacks is an empty row there."""
    lefts, rights = ([row for row in rows if row.number is not None] for rows in (left, right))
    keys = [_key(row) for row in lefts], [_key(row) for row in rights]
    found = Compared([], [], [])
    for kind, start, end, other_start, other_end in _blocks(*keys):
        for at in range(max(end - start, other_end - other_start)):
            pair = (
                lefts[start + at] if start + at < end else None,
                rights[other_start + at] if other_start + at < other_end else None,
            )
            if kind != "equal":
                found.differing.append(len(found.left))
            found.left.append(_shown(pair[0], kind != "equal"))
            found.right.append(_shown(pair[1], kind != "equal"))
    return found


def _blocks(left: list[str], right: list[str]) -> list[tuple[str, int, int, int, int]]:
    if max(len(left), len(right)) <= _MOST_ALIGNED:
        return list(SequenceMatcher(None, left, right, autojunk=False).get_opcodes())
    both = min(len(left), len(right))
    blocks = [("equal" if left[at] == right[at] else "replace", at, at + 1, at, at + 1) for at in range(both)]
    return [*blocks, ("replace", both, len(left), both, len(right))]


def _key(row: Row) -> str:
    """What makes two steps the same: what is done, and roughly where; and whether it was done at all."""
    carried = row.mark in ("done", "dry")
    if row.target is None:
        return f"{carried} {row.words}"
    return f"{carried} {describe(map_points(row.target, _rough))}"


def _rough(point: DesktopPoint) -> DesktopPoint:
    return DesktopPoint(round(point.x / _SAME_PLACE) * _SAME_PLACE, round(point.y / _SAME_PLACE) * _SAME_PLACE)


def _shown(row: Row | None, differs: bool) -> Row:
    if row is None:
        return Row(None, "note", "no such step here")
    return replace(row, words=f"≠ {row.words}") if differs else row
