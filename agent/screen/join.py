"""Merges the accessibility tree with the words from OCR into one list of elements.

Both are untrusted text. If the words on an element clearly contradict its name, a user would go by the words: the
element's name is not trusted, and the words become a separate element.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

from agent.core.geometry import DesktopPoint, Region, Viewport, around
from agent.core.roles import role_group
from agent.screen.ocr import Word, lines_of
from agent.screen.outline import WORDS_ROLE, Element, Outline

#: Agreement from which two texts count as the same apart from misread letters, and below which two words differ.
_SAME, _OTHER = 0.6, 0.55
#: Confidence and number of letters that words need to contradict a name, so that a sign or a badge does not.
_SURE, _SAYING = 85, 3
_CALLED_BY_WORDS = role_group("called by their words")
#: An element with more words in its box is a container.
_MOST_WORDS = 60
#: Letters that words inside an element need to count as a label.
_LEAST = 2
#: Most lines of a caption.
_CAPTION_LINES = 4
#: Longest label, in characters.
_LONGEST = 200
#: How far a window's title bar extends above its content, in desktop pixels.
_TITLE = 40


@dataclass(frozen=True, slots=True)
class _Read:
    word: Word
    box: Region  # in desktop pixels
    middle: DesktopPoint


def join(tree: Outline, words: Iterable[Word], viewport: Viewport) -> Outline:
    """Merge an outline from the tree with the words of a captured monitor, whose boxes are in captured pixels.

    Elements whose text matches the words on them get the source "both". The lines of all other words follow as labels
    in reading order. Lines that form a caption then follow once more, joined into one label.
    """
    lines = sorted(
        lines_of(word for word in words if word.is_text), key=lambda line: (line[0].box.top, line[0].box.left)
    )
    read = [_in_desktop(word, viewport) for line in lines for word in line]  # in reading order
    matched_words: set[int] = set()
    elements = []
    for element in tree.elements:
        own = [index for index, one in enumerate(read) if element.box.contains(one.middle)]
        on_it = " ".join(read[index].word.text for index in own)
        if not 0 < len(own) <= _MOST_WORDS:
            elements.append(element)
        elif any(agreement(text, on_it) >= _SAME for text in (element.name, element.value or "") if text):
            matched_words.update(own)
            elements.append(replace(element, source="both"))
        else:
            trusted = element.trusted and not _contradicts(element, [read[index] for index in own])
            elements.append(replace(element, trusted=trusted))
    left = [one for index, one in enumerate(read) if index not in matched_words]
    return replace(tree, elements=(*elements, *_labels(left, elements, tree)))


def agreement(one: str, other: str) -> float:
    """Return how similar the letters and digits of two texts are, from 0 to 1. A truncated text matches the whole."""
    cut = one.rstrip().endswith(("…", "...")) or other.rstrip().endswith(("…", "..."))
    first, second = _letters(one), _letters(other)
    if cut and min(len(first), len(second)) >= _SAYING:
        shorter = min(len(first), len(second))
        first, second = first[:shorter], second[:shorter]
    if not first or not second:
        return 1.0 if one.strip() == other.strip() else 0.0
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _letters(text: str) -> str:
    """Return only letters and digits, without accents, which tesseract loses most often."""
    return "".join(char for char in unicodedata.normalize("NFKD", text).casefold() if char.isalnum())


def _contradicts(element: Element, on_it: Sequence[_Read]) -> bool:
    """Whether the words on an element clearly contradict its name. A word wider than the element is not on it."""
    name = _letters(element.name)
    if element.role not in _CALLED_BY_WORDS or len(name) < _SAYING:
        return False
    fitting = (one for one in on_it if one.box.width <= element.box.width)
    sure = [one.word.text for one in fitting if one.word.confidence >= _SURE]
    written = _letters(" ".join(sure))
    if len(written) < _SAYING or name in written or written in name:
        return False
    return not any(agreement(one, other) >= _OTHER for one in sure for other in element.name.split())


def _in_desktop(word: Word, viewport: Viewport) -> _Read:
    """Map a word's box to the desktop. Not clamped, because it is not a click target."""
    scale_x, scale_y = viewport.scale
    left, right = (viewport.region.left + x / scale_x for x in (word.box.left, word.box.right))
    top, bottom = (viewport.region.top + y / scale_y for y in (word.box.top, word.box.bottom))
    box = Region(round(left), round(top), max(1, round(right - left)), max(1, round(bottom - top)))
    return _Read(word, box, DesktopPoint((left + right) / 2, (top + bottom) / 2))


def _labels(left: Sequence[_Read], elements: Sequence[Element], tree: Outline) -> list[Element]:
    """Return the words that no element covers as elements in reading order: lines, then captions of several lines."""
    words: Mapping[Word, _Read] = {one.word: one for one in left}
    lines = [_Line.of([words[word] for word in line]) for line in lines_of(one.word for one in left)]
    lines.sort(key=lambda line: (line.box.top, line.box.left))
    labels: list[Element] = []
    following = max((element.id for element in elements), default=0) + 1
    for text, box in [*lines, *_captions(lines)]:
        middle = box.middle
        holders = [element for element in elements if element.box.contains(middle)]
        holder = min(holders, key=lambda element: element.box.width * element.box.height, default=None)
        if holder is not None and sum(map(str.isalnum, text)) < _LEAST:
            continue  # the tree would contain a button of one letter: this is an icon
        window = next((one for one in tree.windows if one.box.contains(middle)), None)
        window = window or next((one for one in tree.windows if _framed(one.box).contains(middle)), None)
        labels.append(
            Element(
                following + len(labels), WORDS_ROLE, text[:_LONGEST], box, window=window.title if window else "",
                source="words", app=window.app if window else "", parent=holder.id if holder else None,
            )
        )  # fmt: skip
    return labels


class _Line(NamedTuple):
    text: str
    box: Region

    @classmethod
    def of(cls, words: Sequence[_Read]) -> "_Line":
        return cls(" ".join(one.word.text for one in words), around([one.box for one in words]))


def _captions(lines: Sequence[_Line]) -> list[_Line]:
    """Join lines that are stacked like an icon's caption. More lines are a page of text."""
    runs: list[list[_Line]] = []
    for line in lines:
        run = next((run for run in runs if _goes_on(run[-1].box, line.box)), None)
        if run is None:
            runs.append([line])
        else:
            run.append(line)
    return [
        _Line(" ".join(line.text for line in run), around([line.box for line in run]))
        for run in runs
        if 2 <= len(run) <= _CAPTION_LINES
    ]


def _goes_on(upper: Region, lower: Region) -> bool:
    """Whether a line continues a caption: less than a line apart, flush left or centred."""
    gap = lower.top - upper.bottom
    if not -2 <= gap <= 0.9 * min(upper.height, lower.height):
        return False
    aside = lower.left - upper.left
    return abs(aside) <= 4 or abs(aside + (lower.width - upper.width) / 2) <= 6


def _framed(box: Region) -> Region:
    return Region(box.left, box.top - _TITLE, box.width, box.height + _TITLE)
