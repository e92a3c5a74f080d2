"""Which of the things that rules go by are told here, and what to say when that ends in the middle of a run.

What was never told is said when a run begins, and its rules match nothing. What was told and is not any more must not
be taken for "nothing is there": rules that would need it ask (`Situation.lost`).
"""

from agent.safety.situation import Sense

_LOST: dict[Sense, str] = {
    "windows": "It is not known any more which window gets an action (the connection to the display was lost): from "
    "now on, everything that rules about windows would have judged is asked about.",
    "words": "What is written on the screen cannot be read any more: from now on, everything that rules about words "
    "would have judged is asked about.",
    "elements": "Nothing tells any more what an action hits (the accessibility tree does not answer): from now on, "
    "everything that rules about elements would have judged is asked about.",
}
_AGAIN: dict[Sense, str] = {
    "windows": "It is known again which window gets an action.",
    "words": "What is written on the screen can be read again.",
    "elements": "It is told again what an action hits.",
}


class Senses:
    """What worked, and what works."""

    def __init__(self) -> None:
        self._works: dict[Sense, bool] = {}  # without those that never did
        self._news: list[str] = []

    @property
    def lost(self) -> frozenset[Sense]:
        """What worked once, and does not any more."""
        return frozenset(sense for sense, works in self._works.items() if not works)

    def worked(self, sense: Sense) -> None:
        """It answered."""
        if self._works.get(sense) is False:
            self._news.append(_AGAIN[sense])
        self._works[sense] = True

    def failed(self, sense: Sense) -> None:
        """It did not."""
        if self._works.get(sense):
            self._works[sense] = False
            self._news.append(_LOST[sense])

    def news(self) -> list[str]:
        """What changed since the last time, as sentences for the person."""
        told, self._news = self._news, []
        return told
