"""What a desktop tells of the elements on its screen, by its accessibility tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint
from agent.screen.outline import Element, Outline


@dataclass(frozen=True, slots=True)
class FieldText:
    """The text of a field, and its selected part; an empty selection is the caret."""

    text: str
    start: int  # characters from the beginning
    end: int

    def after(self, typed: str) -> str:
        """Return the text as it will be once something is typed."""
        return self.text[: self.start] + typed + self.text[self.end :]


class Elements(Protocol):
    """A connection to the elements, used from one thread. No call waits long for a hung application.

    Names and values are text of strangers: cut, cleaned, and data only. `at`, `focused` and `field_text` take 50 ms at
    most and raise EnvironmentLacksError if nobody tells elements any more.
    """

    def outline(self) -> Outline:
        """Return what is visible now of the windows on top; only `lacks` if no elements are told."""

    def at(self, point: DesktopPoint) -> Element | None:
        """Return what a click at a point would hit; None if unknown."""

    def focused(self) -> Element | None:
        """Return what gets the keys in the active window, without its value; None if unknown."""

    def field_text(self) -> FieldText | None:
        """Return the current text of the field that gets the keys in the active window.

        None if no field has the focus, for a password, and if the text is not told or very long.
        """

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the calling thread; None where elements are unknown.
OpenElements: TypeAlias = Callable[[], Elements | None]
