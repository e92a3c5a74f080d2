"""Looks for a named thing on a page: the thing itself, the places that may hold it, and the way back."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from agent.literal.conversation import Move, on_grid
from agent.literal.goal_state import GoalState
from agent.literal.goals import Target
from agent.literal.knowledge import Thing, known_thing, words_for
from agent.literal.labels import Match, plain
from agent.literal.widgets import Widget, text_fields, widgets_beside
from agent.screen.ocr import Box

#: A title bar is about this many pixels high: text there names the window, and is the last place to click.
_TITLE_BAR = 44
#: A text field beside its label begins within this many text heights.
_FIELD_REACH = 30
#: Labels of this quality stand for the thing alone, with no other words beside them.
_WHOLE_LABEL = 0.94
#: Places may have an icon read as a letter or two beside them.
_PLACE_LABEL = 0.86
#: Places with the same text that are tried, best first.
_MOST_MATCHES = 4
#: Standard deviation of grey values above which an area is a picture and not plain ground.
_BUSY = 12.0


@dataclass(frozen=True, slots=True)
class Spot:
    """Where to click for a thing: the place, what it is in words, and the label it belongs to."""

    box: Box
    words: str
    match: Match
    widget: Widget | None = None


class Search:
    """One search for a thing in the person's words.

    `on` is whether it is to be switched on or off: some things have two names.
    """

    def __init__(self, now: GoalState, target: Target, *, on: bool = True) -> None:
        self._page = now.page
        self._region = now.region()
        self._moves = now.moves
        self.target, near = target.name, target.under
        known, around = known_thing(target.name, on=on), known_thing(near) if near else Thing(())
        places = (*((near,) if near else ()), *known.places, *around.places)
        self.inside = target.inside
        self._whole = target.whole
        self.thing = Thing(known.labels, places, known.lives_in or around.lives_in, known.shows)
        before = {plain(name) for name in now.been} & {plain(place) for place in places}
        self._arrived = bool(before) or now.visited

    def visible(self) -> list[Match]:
        """Where the thing stands, best first."""
        found: list[Match] = self._page.find(self._whole, least=_PLACE_LABEL) if self._whole else []
        if found:
            return sorted(found, key=self._rank, reverse=True)
        for order, label in enumerate(self.thing.labels):
            # A name from the table must be the whole label: "Dark" is not meant where "Darkroom" stands, nor
            # "Default" where "Default Applications" does, before the place is reached where such names are used.
            least = 0.72 if order == 0 else _WHOLE_LABEL
            for match in self._page.find(label, least=least):
                strange = order > 0 and match.label.part and not self._arrived
                if not strange and not any(match.box.overlaps(other.box) for other in found):
                    found.append(match)
            if found and order == 0:
                break
        return sorted(found, key=self._rank, reverse=True)

    def next_spot(self, *, switches: bool = False) -> Spot | None:
        """The best spot of the thing that was not clicked for it yet; None when there is no other.

        Where it is to be switched, a control beside its label comes before the label.
        """
        tried = [move for move in self._moves if move.intent in ("act", "focus")]
        spots = [spot for match in self.visible()[:_MOST_MATCHES] for spot in self._spots(match, switches=switches)]
        if switches:  # a heading may have the very name; what has a control beside it is what can be switched
            spots.sort(key=lambda spot: spot.widget is None)
        return next((spot for spot in spots if not any(self._at(move, spot.box) for move in tried)), None)

    def clicked(self, move: Move) -> Spot | None:
        """The control beside the thing's label that a move clicked, as it looks now."""
        for match in self.visible()[:_MOST_MATCHES]:
            for spot in self._spots(match, switches=True):
                if spot.widget is not None and self._at(move, spot.box):
                    return spot
        return None

    def _spots(self, match: Match, *, switches: bool) -> list[Spot]:
        """Where to click for a label: its controls, the label itself, the picture it is the caption of."""
        name = f"“{match.label.text}”"
        widgets = widgets_beside(self._page.image, match.label.box) if switches else []
        spots = [Spot(widget.box, f"the {widget.kind} of {name}", match, widget) for widget in widgets]
        spots.append(Spot(match.box, name, match))
        picture = self._picture_above(match)
        if picture is not None:
            spots.append(Spot(picture, f"the picture above {name}", match))
        return spots

    def _picture_above(self, match: Match) -> Box | None:
        """The picture that a whole label is the caption of: something busy that is no text, right above it."""
        from PIL import ImageStat

        box = match.box
        height = max(box.height, 10)
        middle = round(box.center[0])
        above = Box(middle - 2 * height, box.top - 5 * height, middle + 2 * height, box.top - round(0.8 * height))
        if match.quality < _WHOLE_LABEL or above.top < 0 or above.left < 0:
            return None
        if any(above.overlaps(word.box) and word.confidence > 60 for word in self._page.words):
            return None
        crop = self._page.image.crop(above).convert("L")
        return above if ImageStat.Stat(crop).stddev[0] > _BUSY else None

    def lacks_its_window(self) -> bool:
        """Whether the person said where it is, and that is not visible."""
        return bool(self.inside) and not self._page.find(self.inside, least=_PLACE_LABEL)

    def empty_field(self) -> Box | None:
        """The first empty text field in front: where a search box has only a picture for a name."""
        fields = [] if self._region is None else text_fields(self._page.image, self._region)
        return fields[0] if fields else None

    def sees(self, words: Sequence[str]) -> bool:
        """Whether one of the words stands as a label in the window in front, or anywhere if none is known."""
        matches = [match for word in words for match in self._page.find(word, least=_WHOLE_LABEL)]
        return any(self._region is None or self._in_front(match) for match in matches)

    def next_place(self) -> tuple[Match, str] | None:
        """The next place that may hold the thing, and how to open it: clicked, and double-clicked if that failed."""
        visits = [move for move in self._moves if move.intent == "place"]
        for place in [*((self.inside,) if self.inside else ()), *self.thing.places]:
            for match in sorted(self._page.find(place, least=_PLACE_LABEL), key=self._rank, reverse=True):
                strange = place == self.inside and match.label.part  # "Settings" of "File Manager Settings"
                if strange or self._is_title(match) or not self._in_front(match):
                    continue
                tries = [move for move in visits if self._at(move, match.box)]
                if not tries:
                    return match, "click"
                if len(tries) == 1 and tries[0] is self._moves[-1] and tries[0].has("no_effect"):
                    return match, "double_click"
        return None

    def way_back(self) -> Match | None:
        """A button that leads out of a place, after one was visited; each once."""
        if not any(move.intent == "place" for move in self._moves):
            return None
        gone = [move for move in self._moves if move.intent == "back"]
        for word in words_for("back"):
            for match in self._page.find(word, least=_WHOLE_LABEL):
                if not any(self._at(move, match.box) for move in gone):
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

    def _rank(self, match: Match) -> float:
        """Quality, and a preference for what is in front and not a window's title."""
        # One line of a longer caption ("Window Manager" of "Window Manager Tweaks") is rarely what is meant.
        rank = match.quality - (0.08 if match.label.part else 0.0)
        if self._region is None:
            return rank
        if not self._in_front(match):
            return rank - 0.15
        return rank - (0.1 if self._is_title(match) else 0.0)

    def _is_title(self, match: Match) -> bool:
        """Whether it stands where a window's title does."""
        return self._region is not None and match.box.top < self._region.top + _TITLE_BAR

    def _in_front(self, match: Match) -> bool:
        return self._region is None or self._region.contains(*match.box.center)

    def _at(self, move: Move, box: Box) -> bool:
        return move.pointed_at(on_grid(box, self._page.image))
