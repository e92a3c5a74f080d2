"""Ordinary phrasing as literal sentences: the table of `configs/sentences.toml`."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from agent.literal.lexicon import config

_EXPANDED = {
    r"\bi'?m\b": "i am", r"\bi'?d (?=like|love|"
                         r"prefer)": "i would ", r"\bit'?s (?=\w+)": "it is ", r"\bthat'?s\b": "that is",
    r"\bcan'?t\b|\bcan "
    r"not\b": "cannot", r"\bdon'?t\b": "do not", r"\bi'?ve\b": "i have", r"\beverything's\b": "everything is",
    r"\b(text|screen|mouse|font|volume|sound|pointer|cursor)'s (?=too|so|way|much|a|far)": r"\1 is ",
}  # fmt: skip
_PIECE = re.compile(r"\((?P<one>[^()]*)\)|\[(?P<maybe>[^\[\]]*)\]|\{(?P<name>\w+)\}|(?P<word>\S+)")


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a sentence of ordinary phrasing comes to."""

    means: str  # a literal sentence; "" where it may mean several things
    complaint: bool  # it only tells what is wrong: nothing to do where an instruction follows
    about: str  # what "it" is after it


def find_phrase(text: str) -> Phrase | None:
    """What a part of an instruction means; None where it is no phrase of the table."""
    spelled = text.replace("’", "'").casefold()
    for short, full in _EXPANDED.items():
        spelled = re.sub(short, full, spelled)
    spelled = " " + " ".join(spelled.split())
    for pattern, entry in _table():
        if match := pattern.fullmatch(spelled):
            groups = match.groupdict(default="")
            if "how" in groups:
                groups["opposite"] = config()["opposites"].get(groups["how"], "")
                if "{opposite}" in entry["means"] and not groups["opposite"]:
                    continue
            means = entry["means"].format(**groups)
            return Phrase(means, bool(entry.get("complaint")), entry.get("about", "").format(**groups))
    return None


@cache
def _table() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    return [(re.compile(_expression(says)), entry) for entry in config()["phrases"] for says in entry["says"]]


def _expression(says: str) -> str:
    """A phrase of the table as an expression; every piece brings the space before it."""
    pieces: list[str] = []
    for piece in _PIECE.finditer(says):
        if piece["name"]:
            pieces.append(rf" (?P<{piece['name']}>[^ ].{{0,60}}?)")
        elif piece["word"]:
            pieces.append(" " + re.escape(piece["word"]))
        else:
            inside = "|".join(re.escape(choice) for choice in (piece["one"] or piece["maybe"]).split("|"))
            pieces.append(f" (?:{inside})" if piece["one"] else f"(?: (?:{inside}))?")
    return "".join(pieces)
