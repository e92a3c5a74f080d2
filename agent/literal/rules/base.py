"""What rules are made of."""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from agent.literal.goals import Goal
from agent.literal.sentences import Part

#: What the named groups of a rule matched, "" for those that are not there.
Groups: TypeAlias = Mapping[str, str]
#: Makes goals of a part that its rule fits; None where it turns out not to fit after all.
Builder: TypeAlias = Callable[[Part, Groups], list[Goal] | None]
Rule: TypeAlias = tuple[str, Builder]

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf" (?:(?P<word>once|twice|thrice)|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)}) ?(?:times|x))$", re.IGNORECASE
)
_MOST_TIMES = 20


def times(text: str) -> tuple[str, int]:
    """A text without "three times" at its end, and how often that is."""
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    number = (match["number"] or "1").lower()
    counted = _NUMBERS.index(number) + 1 if number in _NUMBERS else int(number)
    count = {"once": 1, "twice": 2, "thrice": 3}.get((match["word"] or "").lower(), counted)
    return text[: match.start()], max(1, min(count, _MOST_TIMES))
