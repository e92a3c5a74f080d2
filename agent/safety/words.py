"""Lists of words on buttons and in dialogs, in several languages, that users can read and extend."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache

from agent.safety.text import readings
from foundation.configs import load_config

#: Scripts that do not separate words with spaces: kana, ideographs.
_UNDIVIDED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
#: Letters that Unicode does not decompose, but that are often read and written as plain letters.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"})
#: How German spells umlauts without special characters.
_WRITTEN_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
#: Separators between the words that a star matches. Other signs join something else ("Read & write"), but a comma
#: beside a number does not ("Fri, 14 June").
_GAP = r"(?:[^\w&+/,;|<>→]|_|,(?=\s*\d)|(?<=\d),)+"
#: The mnemonic marker that some toolkits leave in a caption: "De_lete".
_MNEMONIC = re.compile(r"[_&](?=\w)")
#: Names of a machine's parts and axes, and steps of a value: P-101, X+, +10.
_PART_OR_STEP = re.compile(r"(?i)(?<!\d)[a-z]\W*\d|^\W*[a-z]\s*[+−-]|[+−-]\s*[a-z]\W*$|^\W*[+−-]\s*\d")
#: Longest text to search, in characters; the rest is ignored.
_LONGEST = 4000
#: Longest text that counts as a caption, in characters.
_LONGEST_CAPTION = 90
#: Most words that a star matches.
_MOST_WORDS = 4
#: What a star matches in scripts without spaces: everything up to a particle that begins another part.
_UNDIVIDED_STAR = "[^をにてでへと并和且後后再]*"
#: The phrase that stands for numbers, signs and single letters.
_NUMBERS_AND_SIGNS = "#"
#: Numbers, with a unit or as a size: 7, 30s, 1280x1024.
_NUMBER = re.compile(r"\d+[^\W\d]{0,3}\d*")
#: Prices and IP addresses are not harmless numbers: a button with a price may buy, one with an address may allow
#: access.
_NO_MERE_NUMBER = re.compile(r"(?i)\$\s?\.?\d|\d\s?(?:\$|zł|円|元|kr|eur|usd|gbp|chf|pln)|\d(?:\.\d+){3}")
#: Allowed signs beside numbers and letters: those of calculators, players and lists, but no pictures.
_SIGNS = re.compile(r"[\w\s!-/:-@\[-`{-~×÷−√±°…·•«»‹›←→↑↓⋮☰]+")
#: Letters drawn apart, or one per line: only people read them as a word.
_APART = re.compile(
    r"(?<![^\W\d_])(?:[^\W\d_\u3040-\u30ff\u3400-\u9fff]\s){3,}[^\W\d_\u3040-\u30ff\u3400-\u9fff](?!\w)"
)
_WORDS = re.compile(r"[^\W\d_]{3,}")
#: Separators between the parts of a caption; a time of day; and a possible price, which makes every part risky.
_BETWEEN_PARTS = re.compile(r"\s*[,:;()|…]\s*|\s+[-–—]\s+")
_TIME = re.compile(r"(?i)(?<![\w.,])\d{1,2}(?:[:.]\d\d)?\s?(?:am|pm|h|uhr|min)(?!\w)")
_MONEY = re.compile(r"(?i)[€$£¥₹]|\b(?:eur|euro|usd|gbp|chf)\b|\d{3}|\d[.,]\d\d(?!\d)")
#: Fewest words to judge a language by, and smallest share of known words in a listed language. Of 13 questions in
#: other languages, 11 had less; of 14 dialogs in listed languages, none.
_FEW, _KNOWN = 2, 0.2
#: The shortcut that a menu shows beside an item, and the single key that a page shows in brackets: "Mute (m)".
_CHORD = re.compile(
    r"\s+\([^\W\d_]\)$|(?:\s+|^)\(?(?:(?:ctrl|strg|alt|shift|super|umschalt|maj|mayus|meta)\s?\+\s?)+[^\s()]+\)?$|\s+\(?f\d{1,2}\)?$"
)


@lru_cache(maxsize=1024)  # every rule compares the same few texts
def plain(text: str) -> str:
    """Return the text without case, accents and marks, for comparisons."""
    folded = unicodedata.normalize("NFKD", text.casefold().translate(_PLAIN))
    return "".join(char for char in folded if not unicodedata.combining(char))


def parts_of(caption: str) -> list[str]:
    """Return the parts of a caption, without times: "Today, 4 pm (Tuesday)" is "Today" and "Tuesday"."""
    if _MONEY.search(caption):
        return [caption]
    parts = (_TIME.sub(" ", part).strip(" !.") for part in _BETWEEN_PARTS.split(caption.replace("&", " and ")))
    return [part for part in parts if part]


def is_drawn_apart(text: str) -> bool:
    """Whether a caption has words whose letters are drawn apart, or below each other."""
    return _APART.search(text) is not None


def _joined(text: str) -> str:
    """Join the letters that are drawn apart; wider gaps stay between words."""
    return _APART.sub(lambda found: re.sub(r"\s", "", found[0]), text)


class WordList:
    """Words and phrases with the same meaning, in all languages together. The phrase "#" stands for numbers and signs.

    In a phrase, a space matches any gap or none ("log out" also matches logout and log-out). A star at the end matches
    any ending, and a slash separates alternatives ("empty trash/bin"). Accents and umlauts match the plain letters,
    because OCR often loses them. `harmless` phrases are removed from a text first: "sort order" is no order.
    """

    def __init__(self, phrases: Iterable[str], harmless: Iterable[str] = ()) -> None:
        written = tuple(phrases)
        self._whole = tuple(one for one in written if one != _NUMBERS_AND_SIGNS)
        self._has_signs = _NUMBERS_AND_SIGNS in written
        self._left_out = tuple(harmless)

    def covers(self, text: str) -> bool:
        """Whether a caption consists of one of the phrases.

        Here a star alone matches any words: "show *" covers "Show all files".
        """
        captions = [one for one in _called(text) if 0 < len(one) <= _LONGEST_CAPTION]
        return any(self._names.fullmatch(one) or (self._has_signs and _is_number_or_sign(one)) for one in captions)

    # Compiled on first use: each list is used in only some of these ways, and long lists compile slowly.

    @cached_property
    def _wanted(self) -> re.Pattern[str]:
        return _any_of(self._whole)

    @cached_property
    def _harmless(self) -> re.Pattern[str]:
        return _any_of(self._left_out)

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return _exactly(self._whole)

    def found(self, text: str) -> bool:
        """Whether one of the phrases occurs in any reading of a text."""
        return any(self._wanted.search(self._harmless.sub(" \0 ", one)) for one in _readings(text))


def word_lists(tables: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, WordList]:
    """Return the lists of a file by name. Each has one list per language, and `not` for harmless phrases."""
    return {
        name: WordList(
            (phrase for language, phrases in table.items() if language != "not" for phrase in phrases),
            table.get("not", ()),
        )
        for name, table in tables.items()
    }


@cache
def shipped_words(name: str) -> WordList:
    """Return a shipped list that the code needs under any policy, such as the words that select everything."""
    return word_lists({name: load_config("policies/words.toml")["words"][name]})[name]


@cache
def harmless_buttons() -> WordList:
    """Return the shipped list of buttons that only show, search or go back, and submit nothing."""
    tables = load_config("policies/harmless.toml")["words"]
    return word_lists({"harmless": tables["harmless buttons"]})["harmless"]


def is_strange(text: str) -> bool:
    """Whether a text has hardly a word that any shipped list knows: it is in a language that no rule can judge."""
    words = [] if _UNDIVIDED.search(text) else _WORDS.findall(plain(text))
    return len(words) >= _FEW and sum(word in _vocabulary() for word in words) < _KNOWN * len(words)


@cache
def _vocabulary() -> frozenset[str]:
    lists = [each for file in ("harmless", "words") for each in load_config(f"policies/{file}.toml")["words"].values()]
    phrases = [phrase for each in lists for one in each.values() for phrase in one]
    return frozenset(_WORDS.findall(plain(" ".join([*phrases, *load_config("policies/sentence.toml")["common"]]))))


def _readings(text: str) -> Iterator[str]:
    seen = {plain(_joined(one)) for one in readings(text[:_LONGEST])}
    yield from seen | {_MNEMONIC.sub("", one) for one in seen}


def _called(text: str) -> set[str]:
    """Return a caption with and without the shortcut that menus show beside it."""
    seen = _MNEMONIC.sub("", unicodedata.normalize("NFC", readings(text[:_LONGEST])[1].casefold()))
    return {seen.strip(), _CHORD.sub("", seen).strip()}


def _is_number_or_sign(caption: str) -> bool:
    """Whether a caption consists of numbers, signs and single letters, as on calculators, pagers and players."""
    small = all(_NUMBER.fullmatch(one) or (len(one) == 1 and one.isascii()) for one in re.findall(r"\w+", caption))
    more = _NO_MERE_NUMBER.search(caption) or _PART_OR_STEP.search(caption)
    return small and not more and _SIGNS.fullmatch(caption) is not None


def _exactly(phrases: Iterable[str]) -> re.Pattern[str]:
    # With and without accents, as OCR may drop them. Dropping them always could equate two different words.
    written = {
        form
        for phrase in phrases
        for form in (
            unicodedata.normalize("NFC", phrase.casefold()),
            plain(phrase),
            plain(phrase.casefold().translate(_WRITTEN_OUT)),
        )
    }
    parts = [
        re.escape(one).replace(r"\*", _UNDIVIDED_STAR) if _UNDIVIDED.search(one) else _exact(one)
        for one in sorted(written)
        if one
    ]
    return re.compile(rf"[\W_]*(?:{'|'.join(parts) or '(?!)'})[\W_]*")


def _any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    written = {form for phrase in phrases for form in (plain(phrase), plain(phrase.casefold().translate(_WRITTEN_OUT)))}
    undivided = [re.escape(one) for one in sorted(written) if _UNDIVIDED.search(one)]
    divided = [_spaced(one) for one in sorted(written) if not _UNDIVIDED.search(one)]
    parts = [rf"(?<![^\W_])(?:{'|'.join(divided)})(?![^\W_])"] if divided else []
    return re.compile("|".join([*parts, *undivided]) or r"(?!)")


def _spaced(phrase: str) -> str:
    """Return a pattern for a phrase inside a longer text."""
    ending = r"\w*" if phrase.endswith("*") else ""
    words = phrase.removesuffix("*").split()
    return (r"[\W_]{0,3}" + _between()).join(map(_either, words)) + ending


def _exact(phrase: str) -> str:
    """Return a pattern for a phrase that is the whole caption. A star alone matches a few words, but no
    conjunctions.
    """
    joining = "|".join(load_config("policies/sentence.toml")["joining"])
    word = rf"(?!(?:{joining})(?!\w))[^\W_]+"
    any_words = rf"{word}(?:{_GAP}{word}){{0,{_MOST_WORDS - 1}}}"
    exact = r"[\W_]{0,3}".join(any_words if one == "*" else _either(one) for one in phrase.split())
    # A gap separates a word from those that a star matches, or "show *" would cover "showdown".
    return exact.replace(rf"[\W_]{{0,3}}{any_words}", _GAP + any_words).replace(
        rf"{any_words}[\W_]{{0,3}}", any_words + _GAP
    )


def _either(word: str) -> str:
    alternatives = re.sub(r"[^\w/]|_", r"\\W?", word).replace("/", "|")
    return f"(?:{alternatives})"


@cache
def _between() -> str:
    return rf"(?:(?:{'|'.join(map(plain, load_config('policies/sentence.toml')['between']))})[\W_]{{1,3}})?"
