"""What several builders need: texts to type, and how often."""

import re

from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.table import fragment

#: Verbs that are followed by literal text.
_WRITING = re.compile(r"(?:write|type|enter)\b|.+: ?", re.IGNORECASE)
_TIMES = ("once", "twice", "thrice")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNT = re.compile(
    rf" (?:(?P<word>{'|'.join(_TIMES)})|(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)}) ?(?:times|x))$", re.IGNORECASE
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
    return re.search(fragment("describes"), shown, re.IGNORECASE) is not None


def times(text: str) -> tuple[str, int]:
    """Split "three times" off the end of a text, and return the text and the count."""
    match = _COUNT.search(text)
    if match is None:
        return text, 1
    word = (match["word"] or match["number"]).lower()
    words = next((words for words in (_TIMES, _NUMBERS) if word in words), None)
    return text[: match.start()], max(1, min(words.index(word) + 1 if words else int(word), _MOST_TIMES))
