"""Words become labels: pieces of text as a person sees them, and the search for one of them.

Labels are runs of words with ordinary spaces between them; words in the next column are another label. Labels that
stand under each other in the middle or flush left are also joined, because icon captions break over lines.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.screen.ocr import Box, Word, lines_of


@dataclass(frozen=True, slots=True)
class Label:
    """A piece of text on the screen."""

    text: str
    box: Box
    words: tuple[Word, ...]
    part: bool = False  # one line of a caption that goes on above or below

    @property
    def plain(self) -> str:
        """The text as it is compared."""
        return plain(self.text)


@dataclass(frozen=True, slots=True)
class Match:
    """A place where a wanted text was found."""

    box: Box  # around the found words
    label: Label  # in which they stand
    quality: float  # 1.0 when the label is exactly the wanted text; lower for parts of longer ones and misread letters


def plain(text: str) -> str:
    """Lower case, no accents, no punctuation around words, single spaces; symbols alone stay."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = [re.sub(r"^[^\w+\-=/*%]+|[^\w+\-=/*%]+$", "", word) for word in letters.split()]
    joined = " ".join(word for word in words if word)
    return joined or " ".join(letters.split())


def labels_of(words: Iterable[Word]) -> list[Label]:
    """The labels that the words form, single lines first, then joined ones."""
    lines = [_label(_without_icons(run)) for run in lines_of(word for word in words if _is_text(word))]
    captions = _captions(lines)
    parts = {line.box for caption in captions for line in lines if Box.around((line.box, caption.box)) == caption.box}
    return [replace(line, part=line.box in parts) for line in lines] + captions


def _is_text(word: Word) -> bool:
    """Whether a word is text rather than an icon misread as text."""
    if any(char.isalnum() for char in word.text):
        return word.confidence >= 40 or len(word.text) > 3
    return word.confidence >= 70


def _label(words: Sequence[Word]) -> Label:
    return Label(" ".join(word.text for word in words), Box.around(word.box for word in words), tuple(words))


def _captions(labels: Sequence[Label]) -> list[Label]:
    """Labels of two lines: one under the other, centred or flush left, closer than a line apart."""
    return [
        _label((*upper.words, *lower.words))
        for upper, lower in itertools.product(labels, repeat=2)
        if -2 <= lower.box.top - upper.box.bottom <= 0.9 * min(upper.box.height, lower.box.height)
        and (abs(upper.box.left - lower.box.left) <= 4 or abs(upper.box.center[0] - lower.box.center[0]) <= 6)
    ]


def find(labels: Iterable[Label], wanted: str, *, least: float = 0.6) -> list[Match]:
    """Where a text stands on the screen, best first.

    A `*` in the wanted text stands for any word or part of one ("*-dark").
    """
    wild = "*" in wanted and any(char.isalnum() for char in wanted)
    target = wanted.casefold().strip() if wild else plain(wanted)
    if not target:
        return []
    compare = _match_wild if wild else _match
    found = [match for label in labels if (match := compare(label, target)) is not None and match.quality >= least]
    best: list[Match] = []
    for match in sorted(found, key=lambda item: -item.quality):
        if not any(match.box.overlaps(other.box) for other in best):
            best.append(match)
    return best


def _match_wild(label: Label, target: str) -> Match | None:
    pattern = re.compile(".*".join(re.escape(part) for part in target.split("*")))
    return Match(label.box, label, 0.95) if pattern.fullmatch(label.plain) else None


def _match(label: Label, target: str) -> Match | None:
    text = label.plain
    if text == target:
        return Match(label.box, label, 1.0)
    wanted = target.split()
    have = [plain(word.text) for word in label.words]
    for start in range(len(have) - len(wanted) + 1):
        part = have[start : start + len(wanted)]
        pairs = zip(part, wanted, strict=True)
        likeness = min(float(got == want) if len(want) < 4 else _alike(got, want) for got, want in pairs)
        if likeness >= 0.84:
            words = label.words[start : start + len(wanted)]
            # The shorter the label around it, the likelier this is the thing itself and not a sentence about it.
            share = len(target) / max(len(text), 1)
            around = _only_noise(label.words[:start]) and _only_noise(label.words[start + len(wanted) :])
            return Match(_label(words).box, label, likeness * (0.98 if around else 0.62 + 0.33 * min(1.0, share)))
    return _misread(label, text, target)


def _misread(label: Label, text: str, target: str) -> Match | None:
    """A whole label that differs by a letter or by lost spaces."""
    likeness = _alike(text.replace(" ", ""), target.replace(" ", "")) if len(target) >= 4 else 0.0
    return Match(label.box, label, likeness * 0.95) if likeness >= 0.86 else None


def _alike(got: str, wanted: str) -> float:
    """How much of a text was read right, 0 to 1."""
    from rapidfuzz import fuzz

    return fuzz.ratio(got, wanted) / 100


#: Words of one or two letters that are words.
_SHORT_WORDS = frozenset(
    "a i of on to in at by no ok go up my is it as or an do if we am pm os cd tv id ip pc us".split()  # noqa: SIM905
)


def _is_icon(word: Word) -> bool:
    """Whether a word is probably an icon that was read as letters: one or two characters that are no word."""
    text = plain(word.text)
    if len(text) > 2 or word.text.isdigit() or text in _SHORT_WORDS:
        return False
    return len(word.text) <= 3


def _without_icons(line: Sequence[Word]) -> Sequence[Word]:
    """The words without icons before them; all of them when nothing else is left."""
    return list(itertools.dropwhile(_is_icon, line)) or line


def _only_noise(words: Sequence[Word]) -> bool:
    """Whether the words are what tesseract makes of icons."""
    return all(_is_icon(word) or word.confidence < 50 for word in words)
