"""What rules are made of."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from agent.literal.goals import Goal
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.vocabulary.numbers import NUMBER
from foundation.configs import load_config

#: What the named groups of a rule matched, "" for those that are not there.
Groups: TypeAlias = Mapping[str, str]
#: Makes goals of a part that its rule fits; None where it turns out not to fit after all.
Builder: TypeAlias = Callable[[Part, Groups], list[Goal] | None]

#: What a person may mean by a text without quotation marks besides the text itself: a description of it ("the date",
#: "today's date", "a letter about cats"), or a place ("at the end of the page").
_DESCRIBES = re.compile(
    r"(?:(?:the|this|that|these|those|my|your|his|her|its|our|their|some|any|each|what|something|anything)\b"
    r"|an?(?= \S)|\w+['’]s\b)",
    re.IGNORECASE,
)
_PLACES = re.compile(
    r"\b(?:in|into|inside|on|onto|at|to|by|from|for|with|beside|under|above|below|after|before|over|behind|between"
    r"|next to|instead of) (?:the|this|that|these|my|an?|it|its|there)\b",
    re.IGNORECASE,
)
#: What says plainly that text follows.
_WRITING = re.compile(r"(?:write|type|enter)\b|.+: ?", re.IGNORECASE)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf" (?:(?P<word>once|twice|thrice)|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)}) ?(?:times|x))$", re.IGNORECASE
)
_MOST_TIMES = 20


def text_to_type(part: Part, text: str, verb: str) -> str:
    """The text that a part says to type: a quotation, or the plain words after write, type or enter.

    Raises NotUnderstoodError for anything else, which may be a description of the text, or no text at all.
    """
    if (quotation := part.quotation(text)) is not None:
        return quotation.replace("\\n", "\n").replace("\\t", "\t")
    shown = part.shown(text)
    if "\x00" in text:
        raise NotUnderstoodError(f"I do not understand “{shown}”: what to type is in quotes, and more follows.")
    if not _WRITING.match(verb) or is_described(shown):
        raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
    return shown


def is_described(shown: str) -> bool:
    """Whether words without quotation marks may describe a text or a place rather than be the text."""
    return _DESCRIBES.match(shown) is not None or _PLACES.search(shown) is not None


def times(text: str) -> tuple[str, int]:
    """A text without "three times" at its end, and how often that is."""
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    number = (match["number"] or "1").lower()
    counted = _NUMBERS.index(number) + 1 if number in _NUMBERS else int(number)
    count = {"once": 1, "twice": 2, "thrice": 3}.get((match["word"] or "").lower(), counted)
    return text[: match.start()], max(1, min(count, _MOST_TIMES))


def builders(*functions: Builder) -> dict[str, Builder]:
    """The builders by the names that `configs/grammar.toml` has for them."""
    return {function.__name__.removeprefix("_"): function for function in functions}


@cache
def fragment(name: str) -> str:
    """A part of the rules' expressions that has a name."""
    text = NUMBER if name == "number" else str(load_config("grammar.toml")["fragments"][name])
    return expanded(text)


def expanded(text: str) -> str:
    """An expression with its fragments."""
    return re.sub(r"<<(\w+)>>", lambda found: fragment(found[1]), text)
