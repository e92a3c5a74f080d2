"""Helpers for building rules."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from agent.literal.goals import Goal
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.vocabulary.numbers import NUMBER
from foundation.configs import load_config

#: The named groups of a rule's match, "" for a group that did not match.
Groups: TypeAlias = Mapping[str, str]
#: Builds the goals of a part that matches a rule; None to try the next rule.
Builder: TypeAlias = Callable[[Part, Groups], list[Goal] | None]

#: Words with which an unquoted text may be a description ("the date", "John a letter", "two lines") or be followed by a
#: place or manner ("hello at the end", "hello in German"). Plain words to type have none of them.
_DESCRIBES = re.compile(
    r"\b(?:the|this|that|these|those|my|your|his|her|its|our|their|some|any|each|an?|what|which|who|whose|how|something"
    r"|anything|down|again|current|latest|last|next|previous|random|same|in|into|inside|on|onto|at|to|by|from|for|with"
    r"|beside|under|above|below|after|before|over|behind|between|instead|of|about|like|as)\b"
    r"|\w['’]s\b|^(?:\d+|two|three|four|five|six|seven|eight|nine|ten|several|many) [a-z]",
    re.IGNORECASE,
)
#: Verbs that are followed by literal text.
_WRITING = re.compile(r"(?:write|type|enter)\b|.+: ?", re.IGNORECASE)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf" (?:(?P<word>once|twice|thrice)|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)}) ?(?:times|x))$", re.IGNORECASE
)
_MOST_TIMES = 20


def text_to_type(part: Part, text: str, verb: str) -> str:
    """Return the text to type: a quotation, or the plain words after write, type or enter.

    Raises NotUnderstoodError for anything else, which may be a description of the text or no text at all.
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
    """Return whether unquoted words may describe a text or a place instead of being the text."""
    return _DESCRIBES.search(shown) is not None


def times(text: str) -> tuple[str, int]:
    """Split "three times" off the end of a text, and return the text and the count."""
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    number = (match["number"] or "1").lower()
    counted = _NUMBERS.index(number) + 1 if number in _NUMBERS else int(number)
    count = {"once": 1, "twice": 2, "thrice": 3}.get((match["word"] or "").lower(), counted)
    return text[: match.start()], max(1, min(count, _MOST_TIMES))


def builders(*functions: Builder) -> dict[str, Builder]:
    """Return the builders by their names in `configs/grammar.toml`."""
    return {function.__name__.removeprefix("_"): function for function in functions}


@cache
def fragment(name: str) -> str:
    """Return a named fragment of the rules' regular expressions."""
    text = NUMBER if name == "number" else str(load_config("grammar.toml")["fragments"][name])
    return expanded(text)


def expanded(text: str) -> str:
    """Replace "<<name>>" in a regular expression by the fragments."""
    return re.sub(r"<<(\w+)>>", lambda found: fragment(found[1]), text)
