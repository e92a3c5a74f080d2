"""Takes the outline of a screen on its own thread: the accessibility tree, joined with the words that OCR reads.

`Outliner` does so for a run, `Eye` between runs.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from contextlib import closing

from agent.core.geometry import Region, Viewport
from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.protocol.elements import Elements, OpenElements
from agent.desktop.protocol.windows import Connection, OpenWindows, shown
from agent.run.control import Worker
from agent.screen.capture import Frame
from agent.screen.join import join
from agent.screen.ocr import Box, Word
from agent.screen.outline import Numbers, Outline, ShownWindow
from agent.screen.words import WordReader
from foundation.errors import EnvironmentLacksError, MaiError

#: Names the feature in the error about a missing tesseract.
_WHO = "Reading the words of the screen"
#: Idle readers by their languages. In a program with many runs, each run then reads only what changed since the
#: previous run.
_spare_readers: dict[tuple[str, ...], WordReader] = {}


class Outliner:
    """Takes outlines of one desktop for one observer. Everything is opened and used on its own thread.

    `languages` are tesseract's names. `read_words`: OCR runs, too; it costs CPU time, not only latency. `keep_numbers`:
    an element keeps its number in the next outline, for models that name elements by number.
    """

    def __init__(
        self,
        open_elements: OpenElements,
        open_windows: OpenWindows,
        languages: Sequence[str] = ("eng",),
        *,
        read_words: bool = True,
        keep_numbers: bool = False,
    ) -> None:
        self._numbers = Numbers() if keep_numbers else None
        self._read = read_words
        self._open_elements = open_elements
        self._windows = Connection(open_windows)
        self._languages = tuple(languages)
        self._elements: Elements | None = None
        self._reader: WordReader | None = None
        self._lacks: list[str] = []
        self._worker = Worker("outline")
        self._worker.submit(self._open)

    def take(self, frame: Frame, *, words: bool = True) -> "Future[Outline]":
        """Begin the outline of a frame that the screen should still show. The future never fails.

        It can be cancelled until the outline before it is done. Without `words`, only the tree is read: a tenth of the
        time.
        """
        return self._worker.submit(self._told, frame, words)

    def close(self) -> None:
        """Close the connections on the outliner's thread. Does not wait."""
        self._worker.end(self._close)

    def _close(self) -> None:
        if self._elements is not None:
            self._elements.close()
        self._windows.close()
        if self._reader is not None:
            _spare_readers[self._languages] = self._reader

    def _open(self) -> None:
        try:
            if self._read:
                self._reader = _spare_readers.pop(self._languages, None) or WordReader(_WHO, self._languages)
        except EnvironmentLacksError as error:
            self._lacks.append(str(error))
        try:
            self._elements = self._open_elements()
        except MaiError as error:
            self._lacks.append(str(error))
        else:
            if self._elements is None and not self._read:
                self._lacks.append("There is no accessibility tree here.")

    def _told(self, frame: Frame, words: bool) -> Outline:
        try:
            return self._outline(frame, words)
        except Exception as error:  # accessibility trees fail in many ways; the screenshot works without them
            lacks = f"The outline of the screen could not be taken: {type(error).__name__}: {error}."
            return Outline(frame.viewport.region.size, (), (), lacks)

    def _outline(self, frame: Frame, words: bool) -> Outline:
        windows = self._shown()
        tree = self._tree(frame.viewport.region, windows or ())
        joined = join(tree, self._read_words(frame, windows) if words else (), frame.viewport)
        lacks = " ".join(filter(None, dict.fromkeys((tree.lacks, *self._lacks))))
        elements = joined.elements if self._numbers is None else self._numbers.renumbered(joined.elements)
        region = frame.viewport.region
        return Outline(joined.size, elements, joined.windows, lacks, (region.left, region.top))

    def _tree(self, screen: Region, windows: Sequence[ShownWindow]) -> Outline:
        if self._elements is None:
            return Outline(screen.size, (), tuple(windows))
        try:
            tree = self._elements.outline()
        except Exception as error:  # accessibility trees fail in many ways; words and screenshot work without them
            lacks = f"The elements of the screen could not be read: {type(error).__name__}: {error}."
            return Outline(screen.size, (), tuple(windows), lacks)
        return tree if tree.windows else Outline(tree.size, tree.elements, tuple(windows), tree.lacks)

    def _shown(self) -> list[ShownWindow] | None:
        """Return the visible windows, top-most first; None if they are unknown."""
        try:
            windows = self._windows.get()
            return None if windows is None else shown(windows)
        except EnvironmentLacksError:  # a lost display is reported by the capture
            self._windows.close()
            return None

    def _read_words(self, frame: Frame, windows: Sequence[ShownWindow] | None) -> Sequence[Word]:
        if self._reader is None:
            return ()
        inside = None if windows is None else [_captured(one.box, frame.viewport) for one in windows]
        return self._reader.read(frame.image, inside)


def _captured(box: Region, viewport: Viewport) -> Box:
    """Convert a box from desktop to captured pixels."""
    scale_x, scale_y = viewport.scale
    left, top = (box.left - viewport.region.left) * scale_x, (box.top - viewport.region.top) * scale_y
    return Box(round(left), round(top), round(left + box.width * scale_x), round(top + box.height * scale_y))


#: Seconds for an outline: the tree takes tenths of a second, reading a whole new screen some seconds on a busy machine.
_TIMEOUT = 60.0


class Eye:
    """Takes looks at a desktop, and keeps its connections open between them. Used from one thread.

    The desktop is closed with the eye. `ours`: our own windows may be on it. `words`: words are read beside the
    accessibility tree.
    """

    def __init__(self, desktop: Desktop, languages: tuple[str, ...], *, ours: bool = True, words: bool = True) -> None:
        self._desktop = GuardedDesktop(desktop, dry_run=True, ours=ours, languages=languages)
        #: Whether a window is our own, which no look shows.
        self.owns = self._desktop.reach.owns
        opening = (self._desktop.open_elements, self._desktop.open_windows, languages)
        self._outliner = Outliner(*opening, read_words=words, keep_numbers=True)

    def look(self) -> tuple[Frame, Outline]:
        """Return the screen and its elements. Raises EnvironmentLacksError."""
        frame = self._desktop.screen.grab()
        try:
            return frame, self._outliner.take(frame).result(_TIMEOUT)
        except LateError as error:
            raise EnvironmentLacksError("The screen could not be read in time.", "Try --tree.") from error

    def close(self) -> None:
        """Close all connections."""
        self._outliner.close()
        with closing(self._desktop), closing(self._desktop.screen):
            pass
