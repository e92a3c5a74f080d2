"""The grammar's words from `configs/sentences.toml`, compiled for matching."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from foundation.configs import config_names, load_config

#: Words of the grammar. A name that contains one must be hidden before the sentence is parsed.
_RISKY = re.compile(
    r"(?i)\b(?:and|then|if|when|while|until|without|not|don't|never|all|every|any|in|on|to|or|of|from|with|before)\b"
)

_FIRST_TO_LAST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
#: Ordinal word to position, counted from 1, or from the end: -1 is the last.
ORDINALS = {word: at for at, word in enumerate(_FIRST_TO_LAST, 1)} | {
    **{"last": -1, "final": -1, "second last": -2, "second to last": -2, "penultimate": -2},
}


def config() -> Mapping[str, Any]:
    """Return the table of `configs/sentences.toml`."""
    return load_config("sentences.toml")


def plain(text: str) -> str:
    """Return a text in lower case, without accents and punctuation around words; a text of symbols alone is kept."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = [re.sub(r"^[^\w+\-=/*%]+|[^\w+\-=/*%]+$", "", word) for word in letters.split()]
    joined = " ".join(word for word in words if word)
    return joined or " ".join(letters.split())


def either(words: Iterable[str]) -> str:
    """Return a regular expression for any of the words, the longest first; apostrophes may be curly or missing."""
    escaped = (
        re.escape(word).replace("'", "['’]?") for word in sorted(set(words), key=lambda word: (-len(word), word))
    )
    return f"(?:{'|'.join(escaped)})"


@cache
def verbs() -> str:
    """Return a regular expression for a verb that begins a part of an instruction."""
    return either(verb_list())


@cache
def verb_list() -> tuple[str, ...]:
    """Return the verbs that begin a part of an instruction."""
    extra = ("double click", "right click", "middle click", "get rid of", "work out", "figure out",
             "take the tick", "remove the tick", "put a tick")  # fmt: skip
    return (*config()["verbs"].split(), *extra)


@cache
def later_verb() -> re.Pattern[str]:
    """Return a regular expression for a verb that is often a word of a name, with the word after it."""
    return re.compile(rf"(?:{'|'.join(config()['later_verbs'].split())}) (?!of )\S")


@cache
def beginnings() -> re.Pattern[str]:
    """Return a regular expression for the first word of an instruction, also of a negative one ("don't")."""
    return re.compile(rf"(?i)(?:{verbs()}|do not|don['’]?t|never)(?![\w’'-])")


def is_risky(name: str) -> bool:
    """Return whether a name contains words of the grammar."""
    return _RISKY.search(name) is not None


@cache
def label_verbs() -> str:
    """Return a regular expression for the verbs that are followed by a label."""
    extra = ["double click", "right click", "middle click", "turn on", "turn off", "switch on", "switch off"]
    return either([*config()["label_verbs"].split(), *extra])


@cache
def names() -> re.Pattern[str]:
    """Return a regular expression for known names that contain words of the grammar."""
    known = set(config()["names"])
    for entry in load_config("places/things.toml").values():
        known.update(entry["names"], entry.get("opposites", ()))
    for desktop in config_names("places"):
        if desktop != "things":
            known.update(_labels(load_config(f"places/{desktop}.toml")))
    risky = (name for name in known if " " in name and _RISKY.search(name))
    return re.compile(rf"(?i)(?<!\w){either(risky)}(?!\w)")


def _labels(table: Mapping[str, Any]) -> Iterable[str]:
    for page in table["pages"].values():
        yield from (page["app"], *page.get("path", ()))
    for entry in table["things"].values():
        labels = (entry.get("control", ""), entry.get("under", ""), *entry.get("path", ()))
        yield from (label.rstrip(":") for label in labels if label)


@cache
def applications() -> frozenset[str]:
    """Return words that always mean an application."""
    kinds = load_config("applications.toml")["kinds"].values()
    return frozenset([*config()["applications"]["words"], *(word for kind in kinds for word in kind["words"])])


@cache
def programs_of_kind(word: str) -> tuple[str, ...]:
    """Return the application names of a kind ("text editor") as windows report them, reduced by `letters_of`."""
    kinds = load_config("applications.toml")["kinds"].values()
    files = [name for kind in kinds if word in kind["words"] for name in kind["desktop_files"]]
    own = [name for kind in kinds if word in kind["words"] for names in kind.get("own", {}).values() for name in names]
    letters = (letters_of(name.rpartition(".")[2]) for name in (*own, *files))
    return tuple(dict.fromkeys(name for name in letters if name != "settings"))  # other programs end in it too


def letters_of(name: str) -> str:
    """Return the letters of an application's name; desktop files and windows differ in punctuation and numbers."""
    return re.sub(r"[\W\d_]+", "", name).casefold()


@cache
def shortcuts() -> Mapping[str, str]:
    """Map what people say to key combinations."""
    return {words: keys for keys, phrases in config()["shortcuts"].items() for words in phrases}


@cache
def programs() -> frozenset[str]:
    """Return names of applications and settings dialogs in lower case. No word of such a name is a control's kind."""
    tables = (load_config(f"places/{desktop}.toml") for desktop in config_names("places") if desktop != "things")
    return applications() | {page["app"].casefold() for table in tables for page in table["pages"].values()}


#: Verbs that double their last letter before -ing.
_DOUBLED = ("set", "put", "run", "tap", "hit", "get", "stop", "shut", "wrap", "dim")


def gerund(verb: str) -> str:
    """Return the -ing form of a verb."""
    first, space, rest = verb.partition(" ")
    if first in _DOUBLED:
        return f"{first}{first[-1]}ing{space}{rest}"
    return f"{first.removesuffix('e')}ing{space}{rest}"


def ordinal_word(position: int) -> str:
    """Return the usual word for a position: "second", "12th"."""
    return next((word for word, at in ORDINALS.items() if at == position), f"{position}th")
