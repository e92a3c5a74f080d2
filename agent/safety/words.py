"""Words as they stand on buttons and in dialogs, in several languages: lists that a person can read and add to."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from agent.safety.text import readings
from foundation.configs import load_config

#: Languages in which words are not divided by spaces: kana, ideographs.
_UNDIVIDED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
#: Letters that are not a plain letter and a mark to Unicode, but are read and written as one.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
#: What German writes where it has no umlauts.
_WRITTEN_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
#: What marks the letter of a caption by which keys press it, as some toolkits tell it: "De_lete".
_MNEMONIC = re.compile(r"[_&](?=\w)")
#: Of a text, so much is searched.
_LONGEST = 4000


def plain(text: str) -> str:
    """Text without case, accents and marks, as it is compared."""
    folded = unicodedata.normalize("NFKD", text.casefold().translate(_PLAIN))
    return "".join(char for char in folded if not unicodedata.combining(char))


class WordList:
    """Words and phrases that mean the same, in all languages together.

    In a phrase a space stands for any gap or none ("log out" is also logout and log-out), and a star at its end for
    any ending; a slash stands between words of which any may stand there ("empty trash/bin"). Accents and umlauts count
    as the letters without them, because that is how captions are often read.

    Args:
        phrases: what is looked for.
        harmless: phrases that are taken out of a text before it is searched: "sort order" is no order.
    """

    def __init__(self, phrases: Iterable[str], harmless: Iterable[str] = ()) -> None:
        self._wanted = _any_of(phrases)
        self._harmless = _any_of(harmless)

    def found(self, text: str) -> bool:
        """Whether one of the phrases is in any reading of a text."""
        return any(self._wanted.search(self._harmless.sub(" \0 ", one)) for one in _readings(text))


def word_lists(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, WordList]:
    """The lists of a file, by name: each has a list a language, and `not` for the harmless phrases."""
    return {
        name: WordList(
            (phrase for language, phrases in table.items() if language != "not" for phrase in phrases),
            table.get("not", ()),
        )
        for name, table in tables.items()
    }


@cache
def shipped_words(name: str) -> WordList:
    """One of the shipped lists, for what is to be known whatever the rules are, such as what selects everything."""
    return word_lists({name: load_config("policies/words.toml")["words"][name]})[name]


def _readings(text: str) -> Iterator[str]:
    seen = {plain(one) for one in readings(text[:_LONGEST])}
    yield from seen | {_MNEMONIC.sub("", one) for one in seen}


def _any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    written = {form for phrase in phrases for form in (plain(phrase), plain(phrase.casefold().translate(_WRITTEN_OUT)))}
    undivided = [re.escape(one) for one in sorted(written) if _UNDIVIDED.search(one)]
    divided = [_spaced(one) for one in sorted(written) if not _UNDIVIDED.search(one)]
    parts = [rf"(?<![^\W_])(?:{'|'.join(divided)})(?![^\W_])"] if divided else []
    return re.compile("|".join([*parts, *undivided]) or r"(?!)")


def _spaced(phrase: str) -> str:
    ending = r"\w*" if phrase.endswith("*") else ""
    words = phrase.removesuffix("*").split()
    return r"[\W_]{0,3}".join(f"(?:{'|'.join(map(_written, word.split('/')))})" for word in words) + ending


def _written(word: str) -> str:
    return "".join(char if char.isalnum() else r"\W?" for char in word)
