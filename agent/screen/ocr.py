"""Reads words in images with tesseract.

It uses sparse text mode (page segmentation 11) on an image enlarged twice. That way, tesseract 5.3 found every wanted
word on the settings screens of XFCE and GNOME, light and dark, with a confidence of 91 to 97, in 0.35 to 0.8 s.
tesserocr's wheels are built without OpenMP, so it reads with one thread, which on two cores is two to four times faster
than several threads.
"""

import os
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.core.languages import languages_of
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from PIL.Image import Image


_SCALE = 2.0
_LEAST_CONFIDENCE = 25
#: Smallest gap between separate pieces of text, as a multiple of the text height (a space is about 0.3 to 0.5 of it).
_GAP = 0.95


class Box(NamedTuple):
    """A rectangle in pixels of the screenshot, as Pillow's crop takes it. Right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def around(cls, boxes: "Iterable[Box]") -> "Box":
        """Return the bounding box of at least one box."""
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        return cls(min(lefts), min(tops), max(rights), max(bottoms))

    @property
    def width(self) -> int:
        """The width."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """The height."""
        return self.bottom - self.top

    @property
    def center(self) -> tuple[float, float]:
        """The middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def moved(self, right: int, down: int) -> "Box":
        """Return the box shifted by some pixels."""
        return Box(self.left + right, self.top + down, self.right + right, self.bottom + down)

    def contains(self, x: float, y: float) -> bool:
        """Whether a point lies inside."""
        return self.left <= x < self.right and self.top <= y < self.bottom

    def overlaps(self, other: "Box") -> bool:
        """Whether the boxes share any pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True)
class Word:
    """A recognized word, with tesseract's confidence (0 to 100)."""

    text: str
    box: Box
    confidence: float

    @property
    def letters(self) -> int:
        """How many letters and digits it has."""
        return sum(map(str.isalnum, self.text))

    @property
    def is_text(self) -> bool:
        """Whether it is sure enough to be no icon or border."""
        return self.letters > 0 and self.confidence >= (40 if self.letters > 3 else 60)


def data_folder(who: str) -> str:
    """Return the folder of tesseract's language data. Raises EnvironmentLacksError, which names `who` needs it."""
    folders: list[str] = [os.environ.get("TESSDATA_PREFIX", ""), *load_config("reading.toml")["folders"]]
    if program := shutil.which("tesseract"):
        folders.append(str(Path(program).resolve().parent.parent / "share/tessdata"))
    for folder in folders:
        if folder and (Path(folder) / "eng.traineddata").is_file():
            return folder
    raise EnvironmentLacksError(
        f"{who} needs tesseract's language data, which is not installed.",
        "Install it: apt-get install tesseract-ocr-eng (or name its folder in TESSDATA_PREFIX).",
    )


class Ocr:
    """Tesseract, loaded once (60 ms) and used by one caller at a time. Raises as `data_folder` does."""

    def __init__(self, who: str, languages: Sequence[str] = ("eng",)) -> None:
        self._folder = data_folder(who)
        self._languages = "+".join(languages)
        self._lock = threading.Lock()
        self._api: Any = None

    def words(self, image: "Image", scale: float = _SCALE, *, is_line: bool = False) -> list[Word]:
        """Return the words in a screenshot or a part of it, with boxes in its pixels.

        `is_line`: the image contains one line or one character.
        """
        from PIL.Image import Resampling
        from tesserocr import OEM, PSM, RIL, LeptLogLevel, PyTessBaseAPI, iterate_level, set_leptonica_log_level

        grey = image.convert("L")
        grey = grey.resize((max(1, round(grey.width * scale)), max(1, round(grey.height * scale))), Resampling.LANCZOS)
        words: list[Word] = []
        with self._lock:
            if self._api is None:
                set_leptonica_log_level(LeptLogLevel.NONE)  # it complains about small images on standard error
                self._api = PyTessBaseAPI(path=self._folder, lang=self._languages, oem=OEM.LSTM_ONLY)
            api = self._api
            api.SetPageSegMode(PSM.SINGLE_LINE if is_line else PSM.SPARSE_TEXT)
            api.SetImage(grey)
            api.SetSourceResolution(192)
            api.Recognize()
            iterator = api.GetIterator()
            for item in iterate_level(iterator, RIL.WORD) if iterator is not None else ():
                try:
                    text = item.GetUTF8Text(RIL.WORD).strip()
                except RuntimeError:  # nothing was recognized
                    continue
                confidence = item.Confidence(RIL.WORD)
                place = item.BoundingBox(RIL.WORD)
                if text and place is not None and confidence >= _LEAST_CONFIDENCE:
                    words.append(Word(text, Box(*(round(edge / scale) for edge in place)), confidence))
            api.Clear()
        return words


def lines_of(words: Iterable[Word]) -> list[tuple[Word, ...]]:
    """Group words into lines: neighbours on the same line with ordinary spaces between them."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda one: one.box.left):
        before = next((line for line in lines if _continues(line[-1], word)), None)
        if before is None:
            lines.append([word])
        else:
            before.append(word)
    return [tuple(line) for line in lines]


def _continues(word: Word, other: Word) -> bool:
    """Whether `other` is the next word of the line: similar size and height, and an ordinary space between."""
    gap = other.box.left - word.box.right
    if not -2 <= gap <= max(_GAP * min(_em(word), _em(other)), 7):
        return False
    low, high = sorted((max(word.box.height, 1), max(other.box.height, 1)))
    if high > 2.4 * low:  # letters without ascenders are lower, but this ratio means an icon
        return False
    same_base = abs(word.box.bottom - other.box.bottom) <= 0.3 * high
    return same_base or abs(word.box.center[1] - other.box.center[1]) <= 0.25 * high


def _em(word: Word) -> float:
    """Estimate the text height from a word's box. Words of low letters alone ("a", "on") have three quarters of it."""
    tall = any(not char.isalpha() or char.isupper() or char in "bdfhijklt" for char in word.text)
    return word.box.height * (1.0 if tall else 1.35)


def relief(image: "Image", reduction: int = 4, *, stretch: bool = False) -> "Image":
    """Return each pixel's difference from the median around it: dark text on white, whatever the original colours.

    The median is over 9 x 9 pixels of the image reduced by `reduction`. `stretch` scales the largest difference to
    black.
    """
    from PIL import ImageChops, ImageFilter, ImageOps
    from PIL.Image import Resampling

    grey = image.convert("L")
    small = grey.resize((max(1, grey.width // reduction), max(1, grey.height // reduction)), Resampling.BOX)
    ground = small.filter(ImageFilter.MedianFilter(9)).resize(grey.size, Resampling.BILINEAR)
    difference = ImageChops.difference(grey, ground)
    return ImageOps.invert(ImageOps.autocontrast(difference) if stretch else difference)


ENGLISH = "eng"


def reading_languages(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Return tesseract's languages for the applications of an environment, and a remark for the user, or "".

    The desktop's own language comes first: that way, tesseract 5.5 read all of 30 German captions; with English first
    it read 22 of them, with English alone 17. The time is the same.
    """
    language = next((tag for tag in languages_of(environ) if "@" not in tag), "")
    known: Mapping[str, str] = load_config("reading.toml")["languages"]
    wanted = known.get(language) or known.get(language.partition("_")[0]) or ("" if language else ENGLISH)
    if not wanted:
        return (ENGLISH,), f"Words on the screen are read as English: tesseract has nothing for {language[:20]!r}."
    if wanted == ENGLISH:
        return (ENGLISH,), ""
    try:
        folder = Path(data_folder("Reading the words of the screen"))
    except EnvironmentLacksError:  # reported when reading starts
        return (ENGLISH,), ""
    if (folder / f"{wanted}.traineddata").is_file():
        return (wanted, ENGLISH), ""
    package = wanted.replace("_", "-")
    return (ENGLISH,), (
        f"Words on the screen are read as English, with mistakes in accents and umlauts: tesseract's data for this "
        f"desktop's language is missing (apt-get install tesseract-ocr-{package})."
    )
