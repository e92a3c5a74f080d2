"""The one gate for foreign text: of models, pages, window titles, file names, logs and tools.

Such text can steer a terminal (escape sequences, C1), reverse the reading direction (bidirectional controls), hide
(zero width, tags) or look like lines of ours (line ends). Here it is spelled out in ASCII, so that a person sees it.
Everything printed goes through `foundation.printing`, which applies this.
"""

import json
import re
import unicodedata
from typing import Any

#: Characters that Python calls printable and that show nothing: of Unicode's Default_Ignorable_Code_Point
#: (DerivedCoreProperties, 16.0) those that are letters or marks.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_ODD = re.compile(r"[^\x20-\x7e]+")
#: No script sets more marks on one letter; a heap of them is drawn over the lines above and below it.
_MOST_MARKS = 8
#: Asks for the coloured form of the sign before it, and shows nothing itself.
_EMOJI_FORM = "\ufe0f"


def printable(text: str) -> str:
    """The text on one line; everything invisible, with line ends and tabs, is spelled out as in `\\x1b`."""
    return text if text.isascii() and text.isprintable() else _ODD.sub(_spelled, text)


def harmless(text: str) -> str:
    """As `printable`, but lines and tabs are kept."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return re.sub(r"[^\x20-\x7e\n\t]+", _spelled, text)


def on_one_line(text: str) -> str:
    """As `printable`, but each white space becomes one blank."""
    return printable(" ".join(text.split()))


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON that keeps readable characters of all languages and escapes the rest.

    A lone surrogate becomes a question mark.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "replace").decode("utf-8")
    return _ODD.sub(lambda odd: "".join(map(_escaped, odd[0])), text)


def _escaped(char: str) -> str:
    return char if char == "\n" or printable(char) == char else json.dumps(char)[1:-1]  # line ends are those of JSON


def spell(char: str) -> str:
    """A character in ASCII, as Python writes it in a string."""
    return char.encode("unicode_escape").decode("ascii")


def _spelled(odd: re.Match[str]) -> str:
    shown: list[str] = []
    marks, before = 0, ""
    for char in odd[0]:
        kind = unicodedata.category(char)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if char == _EMOJI_FORM and before == "So":
            continue
        if kind == "Zs":  # a blank of another width
            shown.append(" ")
        elif char.isprintable() and not _BLANK.match(char) and marks <= _MOST_MARKS:
            shown.append(char)
        else:
            shown.append(spell(char))
        before = kind
    return "".join(shown)
