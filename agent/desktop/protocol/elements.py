"""The elements on the screen, as the desktop's accessibility tree describes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint
from agent.screen.outline import Element, Outline


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of a field and its selection; an empty selection is the caret."""

    text: str
    start: int  # characters from the beginning
    end: int

    def after(self, typed: str) -> str:
        """Return the text of the field after `typed` has been entered; Enter alone keeps what is selected."""
        return self.text[: self.start] + typed + self.text[self.end :] if typed else self.text

    def line(self, begins: Callable[[str], int | None]) -> "FieldText | None":
        """Return the rest of the caret's line, from the index that `begins` returns for this line.

        None if `begins` returns None, or if the caret is before that index.
        """
        first, last = self.text.rfind("\n", 0, self.start) + 1, self.text.find("\n", self.start)
        line = self.text[first : last if last >= 0 else len(self.text)]
        at = begins(line)
        if at is None or first + at > self.start:
            return None
        return FieldText(line[at:], self.start - first - at, self.start - first - at)


class NoAnswerError(Exception):
    """An application did not answer in time, so that its elements are not known."""


class Elements(Protocol):
    """A connection to the elements, used from one thread. No call waits long for a hung application.

    Names and values are untrusted text: truncated, sanitized, and only data. All but `outline` and `close` take at most
    a second, and raise NoAnswerError if the application has not answered by then, EnvironmentLacksError if the
    accessibility tree is gone.
    """

    def outline(self) -> Outline:
        """Return the visible elements of the top windows; only `lacks` if the elements are unknown."""

    def at(self, point: DesktopPoint) -> Element | None:
        """Return the element that a click at a point would hit, a link with its address as value; None if unknown."""

    def focused(self) -> Element | None:
        """Return the focused element of the active window, with a value only for a link's address; None if unknown."""

    def field_text(self) -> FieldText | None:
        """Return the present text of the focused field in the active window.

        None if no field has the focus, for a password field, and if the text is unknown or very long.
        """

    def fields(self) -> list[str] | None:
        """Return the texts of all fields but password fields in the active window or its pages; None if unknown."""

    def dialogs(self) -> list[str] | None:
        """Return the texts of dialogs drawn inside the active window, such as a page's; None if unknown."""

    def default_button(self) -> Element | None:
        """Return the button that Enter presses in the active window. None: it has none, or does not report it."""

    def page(self) -> str | None:
        """Return the address of the web page in the active window; None if it shows none."""

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the calling thread; None if elements are unknown.
OpenElements: TypeAlias = Callable[[], Elements | None]
