"""Looks for a named thing on a page: the thing itself, the places that may hold it, and the way back."""

import itertools
from collections.abc import Sequence

from agent.literal.conversation import Move
from agent.literal.knowledge import Thing, reach, thing
from agent.literal.ocr import Box
from agent.literal.reader import Page
from agent.literal.text import Match, plain

#: Two clicks within this many grid units (of 999) are on the same spot.
_SAME_SPOT = 9
#: A title bar is about this many pixels high: text there names the window, and is the last place to click.
_TITLE_BAR = 44
#: A text field beside its label begins within this many text heights.
_FIELD_REACH = 30
_GRID = 999


def same_spot(move: Move, place: Sequence[int]) -> bool:
    """Whether a move pointed at that place (model grid)."""
    point = move.call.get("coordinate")
    if not isinstance(point, list) or len(point) != 2:
        return False
    return bool(abs(point[0] - place[0]) <= _SAME_SPOT and abs(point[1] - place[1]) <= _SAME_SPOT)


class Seeker:
    """One search.

    Args:
        page: what can be read.
        region: the window or page in front, if known.
        moves: what was tried for the goal.
        target: the thing, in the person's words.
        on: whether it is to be switched on or off (for things with two names).
        places: where the person said it is.
    """

    def __init__(
        self,
        page: Page,
        region: Box | None,
        moves: Sequence[Move],
        target: str,
        *,
        on: bool = True,
        places: tuple[str, ...] = (),
    ) -> None:
        self._page = page
        self._region = region
        self._moves = moves
        self.target = target
        known = thing(target, on=on)
        self.thing = Thing(known.labels, (*places, *known.places), known.lives_in, known.shows)

    def visible(self) -> list[Match]:
        """Where the thing stands, best first."""
        found: list[Match] = []
        for order, label in enumerate(self.thing.labels):
            # A name from the table must be the whole label: "Dark" is not meant where "Darkroom" stands.
            least = 0.72 if order == 0 else 0.94
            found.extend(match for match in self._page.find(label, least=least) if not self._known(match, found))
            if found and order == 0:
                break
        return sorted(found, key=self._rank, reverse=True)

    def best_untried(self) -> Match | None:
        """The best place of the thing that was not clicked for it yet."""
        tried = [move for move in self._moves if move.intent in ("act", "focus")]
        return next((match for match in self.visible() if not self._tried(match, tried)), None)

    def sees(self, words: Sequence[str]) -> bool:
        """Whether one of the words stands as a label in the window in front, or anywhere if none is known."""
        matches = [match for word in words for match in self._page.find(word, least=0.94)]
        return any(self._region is None or self._in_front(match) for match in matches)

    def next_place(self) -> tuple[Match, str] | None:
        """The next place that may hold the thing, and how to open it: clicked, and double-clicked if that failed."""
        visits = [move for move in self._moves if move.intent == "place"]
        for place in [*self.thing.places, *self._related()]:
            for match in sorted(self._page.find(place, least=0.94), key=self._rank, reverse=True):
                tries = [move for move in visits if same_spot(move, self._grid(match))]
                if not tries:
                    return match, "click"
                if len(tries) == 1 and tries[0] is self._moves[-1] and tries[0].no_effect:
                    return match, "double_click"
        return None

    def way_back(self) -> Match | None:
        """A button that leads out of a place, after one was visited; each once."""
        if not any(move.intent == "place" for move in self._moves):
            return None
        gone = [move for move in self._moves if move.intent == "back"]
        for word in reach("back"):
            for match in self._page.find(word, least=0.94):
                if not self._tried(match, gone):
                    return match
        return None

    def field_of(self, match: Match) -> Box:
        """The text field that a label names: to its right if there is one, else the label itself (a placeholder)."""
        import numpy as np

        image, box = self._page.image, match.box
        middle = round(box.center[1])
        end = min(image.width, box.right + _FIELD_REACH * box.height)
        if end - box.right < 3 * box.height:
            return box
        strip = np.asarray(image.convert("L").crop((box.right + 2, middle, end, middle + 1)), dtype=np.int16)[0]
        edges = np.nonzero(np.abs(np.diff(strip)) > 12)[0]
        for first, second in itertools.pairwise(edges.tolist()):
            if second - first >= 4 * box.height and first <= 12 * box.height:
                left = box.right + 2 + first
                return Box(left, box.top, left + second - first, box.bottom)
        return box

    def _related(self) -> list[str]:
        """Short labels in front that share a word with the thing: "Keyboard" for "keyboard shortcuts"."""
        words = {word for word in plain(self.target).split() if len(word) >= 4}
        return [
            label.text
            for label in self._page.labels
            if len(label.words) <= 3
            and words & set(label.plain.split())
            and (self._region is None or self._region.overlaps(label.box))
        ]

    def _rank(self, match: Match) -> float:
        """Quality, and a preference for what is in front and not a window's title."""
        rank = match.quality
        if self._region is None:
            return rank
        if not self._in_front(match):
            return rank - 0.15
        return rank - (0.1 if match.box.top < self._region.top + _TITLE_BAR else 0.0)

    def _in_front(self, match: Match) -> bool:
        return self._region is None or self._region.contains(*match.box.center)

    def _known(self, match: Match, found: list[Match]) -> bool:
        return any(match.box.overlaps(other.box) for other in found)

    def _tried(self, match: Match, moves: Sequence[Move]) -> bool:
        place = self._grid(match)
        if any(same_spot(move, place) for move in moves):
            return True
        # A control beside the label was clicked instead of the label: same line, not far away.
        return any(
            isinstance(point := move.call.get("coordinate"), list)
            and len(point) == 2
            and abs(point[1] - place[1]) <= 6
            and abs(point[0] - place[0]) <= 400
            for move in moves
        )

    def _grid(self, match: Match) -> list[int]:
        x, y = match.box.center
        image = self._page.image
        return [round(x * _GRID / image.width), round(y * _GRID / image.height)]
