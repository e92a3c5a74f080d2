"""Words become labels: pieces of text as a person sees them, and the search for one of them.

Labels are runs of words with ordinary spaces between them; words in the next column are another label. Labels that
stand under each other in the middle or flush left are also joined, because icon captions break over lines.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.screen.ocr import Box, Word

#: A gap of more than this times the text height separates labels (a space is about 0.3 to 0.5 of it).
_GAP = 0.95


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
    """A place where a wanted text was found.

    Args:
        box: around the found words.
        label: the label they stand in.
        quality: 1.0 when the label is exactly the wanted text; lower for parts of longer labels and misread letters.
    """

    box: Box
    label: Label
    quality: float


def plain(text: str) -> str:
    """Lower case, no accents, no punctuation around words, single spaces; symbols alone stay."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    words = [re.sub(r"^[^\w+\-=/*%]+|[^\w+\-=/*%]+$", "", word) for word in letters.split()]
    joined = " ".join(word for word in words if word)
    return joined or " ".join(letters.split())


def labels_of(words: Iterable[Word]) -> list[Label]:
    """The labels that the words form, single lines first, then joined ones."""
    lines = [_label(_without_icons(run)) for run in _runs([word for word in words if _is_text(word)])]
    captions = _captions(lines)
    parts = {line.box for caption in captions for line in lines if _within(line.box, caption.box)}
    return [replace(line, part=line.box in parts) for line in lines] + captions


def _within(inner: Box, outer: Box) -> bool:
    return Box.around((inner, outer)) == outer


def _is_text(word: Word) -> bool:
    """Whether a word is text rather than an icon misread as text."""
    if any(char.isalnum() for char in word.text):
        return word.confidence >= 40 or len(word.text) > 3
    return word.confidence >= 70


def _runs(words: Sequence[Word]) -> list[list[Word]]:
    """Words chained to their right-hand neighbours on the same line."""
    ordered = sorted(words, key=lambda word: word.box.left)
    following: dict[int, int] = {}
    for index, word in enumerate(ordered):
        for other in range(index + 1, len(ordered)):
            if ordered[other].box.left - word.box.right > 40:
                break  # everything further right is further away still
            if other not in following.values() and _continues(word, ordered[other]):
                following[index] = other
                break
    heads = set(range(len(ordered))) - set(following.values())
    runs: list[list[Word]] = []
    for head in sorted(heads):
        run = [head]
        while run[-1] in following:
            run.append(following[run[-1]])
        runs.append([ordered[index] for index in run])
    return runs


def _continues(word: Word, other: Word) -> bool:
    """Whether `other` is the next word of the same label: same line, similar size, an ordinary space between."""
    low, high = sorted((max(word.box.height, 1), max(other.box.height, 1)))
    if high > 2.4 * low:  # letters without ascenders are lower, but an icon is out of all proportion
        return False
    gap = other.box.left - word.box.right
    if not -2 <= gap <= max(_GAP * min(_em(word), _em(other)), 7):
        return False
    same_base = abs(word.box.bottom - other.box.bottom) <= 0.3 * high
    return same_base or abs(word.box.center[1] - other.box.center[1]) <= 0.25 * high


def _em(word: Word) -> float:
    """The text height that a word's box suggests; words of low letters alone ("a", "on") are three quarters of it."""
    tall = any(not char.isalpha() or char.isupper() or char in "bdfhijklt" for char in word.text)
    return word.box.height * (1.0 if tall else 1.35)


def _label(words: Sequence[Word]) -> Label:
    return Label(" ".join(word.text for word in words), Box.around(word.box for word in words), tuple(words))


def _captions(labels: Sequence[Label]) -> list[Label]:
    """Labels of two lines: one under the other, centred or flush left, closer than a line apart."""
    joined: list[Label] = []
    for upper in labels:
        for lower in labels:
            gap = lower.box.top - upper.box.bottom
            height = min(upper.box.height, lower.box.height)
            if not -2 <= gap <= height * 0.9:
                continue
            flush = abs(upper.box.left - lower.box.left) <= 4
            centred = abs(upper.box.center[0] - lower.box.center[0]) <= 6
            if flush or centred:
                joined.append(_label((*upper.words, *lower.words)))
    return joined


def find(labels: Iterable[Label], wanted: str, *, least: float = 0.6) -> list[Match]:
    """Where a text stands on the screen, best first.

    A `*` in the wanted text stands for any word or part of one ("*-dark").
    """
    wild = "*" in wanted and any(char.isalnum() for char in wanted)
    target = wanted.casefold().strip() if wild else plain(wanted)
    if not target:
        return []
    compare = _match_wild if wild else _match
    found = [match for label in labels if (match := compare(label, target)) is not None]
    matches = [match for match in found if match.quality >= least]
    best: list[Match] = []
    for match in sorted(matches, key=lambda item: -item.quality):
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
        likeness = _likeness(part, wanted)
        if likeness >= 0.84:
            words = label.words[start : start + len(wanted)]
            # The shorter the label around it, the likelier this is the thing itself and not a sentence about it.
            share = len(target) / max(len(text), 1)
            around = _only_noise(label.words[:start]) and _only_noise(label.words[start + len(wanted) :])
            return Match(_label(words).box, label, likeness * (0.98 if around else 0.62 + 0.33 * min(1.0, share)))
    return _misread(label, text, target)


def _misread(label: Label, text: str, target: str) -> Match | None:
    """A whole label that differs by a letter or by lost spaces."""
    from rapidfuzz import fuzz

    if len(target) < 4:
        return None
    ratio = fuzz.ratio(text.replace(" ", ""), target.replace(" ", "")) / 100
    return Match(label.box, label, ratio * 0.95) if ratio >= 0.86 else None


def _likeness(have: Sequence[str], wanted: Sequence[str]) -> float:
    from rapidfuzz import fuzz

    scores = [
        1.0 if got == want else (fuzz.ratio(got, want) / 100 if len(want) >= 4 else 0.0)
        for got, want in zip(have, wanted, strict=True)
    ]
    return min(scores, default=0.0)


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


def _without_icons(run: Sequence[Word]) -> Sequence[Word]:
    """The words without icons before them; all of them when nothing else is left."""
    start = 0
    while start < len(run) and _is_icon(run[start]):
        start += 1
    return run[start:] or run


def _only_noise(words: Sequence[Word]) -> bool:
    """Whether the words are what tesseract makes of icons."""
    return all(_is_icon(word) or word.confidence < 50 for word in words)
