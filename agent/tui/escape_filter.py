"""The last gate before the terminal: whatever a widget draws, no text in it steers, hides or links.

Widgets spell foreign text out with `foundation.foreign_text`; where one forgets that, or a library takes a text for
markup, what would steer is taken out here. Lines keep their width, so what is cut out is not spelled out.
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
    """Takes out of drawn lines what is not simply seen, and links; a library's own control sequences stay."""

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
