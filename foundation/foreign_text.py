"""Escapes untrusted text from models, pages, window titles, file names, logs and tools.

Such text can control a terminal (escape sequences, C1), reverse the reading direction (bidirectional controls), hide
(zero width, tags) or imitate our own lines (line ends). Such characters are escaped in ASCII; `foundation.printing`
applies this to everything that is printed.
"""

import json
import re
import unicodedata
from typing import Any

#: Invisible characters for which str.isprintable() is true: the letters and marks in Unicode's
#: Default_Ignorable_Code_Point (DerivedCoreProperties, 16.0).
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_ODD = re.compile(r"[^\x20-\x7e]+")
#: Variation selector 16: selects the emoji form of the character before it, and is invisible itself.
_EMOJI_FORM = "\ufe0f"


def printable(text: str) -> str:
    """Return the text on one line, with everything invisible, also line ends and tabs, escaped as in `\\x1b`."""
    return text if text.isascii() and text.isprintable() else _ODD.sub(_spelled, text)


def harmless(text: str) -> str:
    """As `printable`, but lines and tabs are kept."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return re.sub(r"[^\x20-\x7e\n\t]+", _spelled, text)


def on_one_line(text: str) -> str:
    """As `printable`, but each run of white space becomes one space."""
    return printable(" ".join(text.split()))


def json_text(value: Any, indent: int | None = None) -> str:
    """Serialize a value as JSON that keeps readable characters of all languages and escapes the rest.

    A lone surrogate becomes a question mark.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "replace").decode("utf-8")
    return _ODD.sub(lambda odd: "".join(map(_escaped, odd[0])), text)


def _escaped(char: str) -> str:
    # Line ends come from JSON's indentation.
    return char if char == "\n" or printable(char) == char else json.dumps(char)[1:-1]


def spell(char: str) -> str:
    """Escape a character in ASCII, as in a Python string."""
    return char.encode("unicode_escape").decode("ascii")


def _spelled(odd: re.Match[str]) -> str:
    return "".join(map(_shown, odd[0].replace(_EMOJI_FORM, "")))


def _shown(char: str) -> str:
    if unicodedata.category(char) == "Zs":  # a space of another width
        return " "
    return char if char.isprintable() and not _BLANK.match(char) else spell(char)
