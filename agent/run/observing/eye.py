"""Looks at a desktop between runs: its picture and its elements, without our own windows."""

from concurrent.futures import TimeoutError as LateError
from contextlib import closing

from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.protocol.desktop import Desktop
from agent.run.observing.outliner import Outliner
from agent.screen.capture import Frame
from agent.screen.outline import Outline
from foundation.errors import EnvironmentLacksError

#: Seconds for an outline: the tree takes tenths of a second, reading a whole new screen some seconds on a busy machine.
_PATIENCE = 60.0


class Eye:
    """Takes looks at a desktop, and keeps its connections open between them. Used from one thread.

    Args:
        desktop: closed with the eye.
        languages: tesseract's names of the languages on the screen.
        ours: whether our own windows may be on it.
        words: whether words are read beside the accessibility tree.
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
            return frame, self._outliner.take(frame).result(_PATIENCE)
        except LateError as error:
            raise EnvironmentLacksError("The screen could not be read in time.", "Try --tree.") from error

    def close(self) -> None:
        """Close all connections."""
        self._outliner.close()
        with closing(self._desktop), closing(self._desktop.screen):
            pass
