"""The words in a part of a screenshot, for terminals that draw it too coarsely for its letters to be read."""

import os
import threading
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from agent.safety.text import one_line
from agent.screen.ocr import Box, Word, lines_of
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image

    from agent.screen.words import WordReader

#: Less sure readings are edges and icons rather than words; single characters must be surer (tesseract's 0 to 100).
_SURE, _SURE_SINGLE = 55, 80
#: Lines at most, and characters of each: a page full of text is no label.
_MOST_LINES, _MOST_CHARS = 60, 120
_reading = threading.Lock()  # a picture that nobody waits for any more may still be read when the next one comes


@dataclass(frozen=True, slots=True)
class Line:
    """Words that stand on one line, and where, in pixels of the picture."""

    words: tuple[Word, ...]

    @property
    def box(self) -> Box:
        """All of it."""
        return Box.around(word.box for word in self.words)

    @property
    def text(self) -> str:
        """What it says."""
        return one_line(" ".join(word.text for word in self.words), _MOST_CHARS)

    def away(self, x: float, y: float) -> float:
        """How far from a point it is, in pixels; lines beside it are nearer than those above and below."""
        box = self.box
        return max(box.left - x, x - box.right, 0.0) + 2 * max(box.top - y, y - box.bottom, 0.0)


def read_lines(image: "Image") -> tuple[Line, ...]:
    """The lines of text in a picture, from above; none where there is nobody to read. Takes a while: for a thread."""
    key = blake2b(image.tobytes(), digest_size=16, salt=f"{image.width}x{image.height}".encode()[:16]).digest()
    return _read(key, _Held(image))


class _Held:
    """Keeps an image out of the cache's key."""

    def __init__(self, image: "Image") -> None:
        self.image = image

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=64)
def _read(_: bytes, held: _Held) -> tuple[Line, ...]:
    reader = _reader()
    with _reading:
        words = [] if reader is None else [word for word in reader.read(held.image) if _is_text(word)]
    lines = sorted((Line(line) for line in lines_of(words)), key=lambda line: (line.box.top, line.box.left))
    return tuple(lines[:_MOST_LINES])


@cache
def _reader() -> "WordReader | None":
    """What reads, as the agent itself does: also what is selected; None where tesseract has no language data here."""
    from agent.screen.languages import reading_languages
    from agent.screen.words import WordReader

    try:
        return WordReader("Reading the words of a picture", reading_languages(os.environ)[0])
    except EnvironmentLacksError:
        return None


def _is_text(word: Word) -> bool:
    letters = sum(char.isalnum() for char in word.text)
    return letters > 0 and word.confidence >= (_SURE if letters > 1 else _SURE_SINGLE)
