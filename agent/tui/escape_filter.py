"""The last filter before the terminal: no text that a widget draws can control it, hide or link.

Widgets escape foreign text with `foundation.foreign_text`. If one forgets that, or a library reads text as markup,
this filter replaces each such character by a placeholder, so that lines keep their width.
"""

import unicodedata

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from foundation.foreign_text import printable

#: By this character and marks after it, kitty's graphics protocol places a picture among characters.
_PLACEHOLDER = "\U0010eeee"


class Gate(LineFilter):
    """Removes links and invisible characters from drawn text; libraries' control sequences stay."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 -- Textual's
        if all(_is_clean(segment) for segment in segments):
            return segments
        return [segment if _is_clean(segment) else _cleaned(segment) for segment in segments]


def _is_clean(segment: Segment) -> bool:
    text, style, control = segment
    if control:
        return True
    if style is not None and style.link:
        return False
    return (text.isprintable() and (text.isascii() or printable(text) == text)) or _is_picture(text)


def _is_picture(text: str) -> bool:
    return text.startswith(_PLACEHOLDER) and all(
        char in (_PLACEHOLDER, "\n") or unicodedata.category(char) == "Mn" for char in text
    )


def _cleaned(segment: Segment) -> Segment:
    text, style, _ = segment
    kept = text if _is_picture(text) else "".join(
        char if printable(char) == char else "�" * cell_len(char) for char in text
    )  # fmt: skip
    return Segment(kept, style.update_link(None) if style is not None and style.link else style)
