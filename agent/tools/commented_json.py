"""Reads JSON as settings files have it: with comments, trailing commas and a byte order mark."""

import json
import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,]|[^\s{}\[\]:,"/]+|/', re.DOTALL)


def read_json(text: str) -> Any:
    """Parse JSON with comments and trailing commas; an empty text is an empty object. Raises ValueError."""
    pieces = [sign for _, sign in tokens(text.removeprefix("\ufeff"))]
    kept = [
        one for one, after in zip(pieces, [*pieces[1:], ""], strict=False) if not (one == "," and after in ("}", "]"))
    ]
    return json.loads(" ".join(kept)) if kept else {}


def tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of such a text with their offsets, without comments."""
    for match in _TOKEN.finditer(text):
        if not match[0].startswith(("//", "/*")):
            yield match.start(), match[0]
