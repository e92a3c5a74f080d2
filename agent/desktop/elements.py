"""What a desktop tells of the elements on its screen, by its accessibility tree."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agent.core.geometry import DesktopPoint
from agent.screen.outline import Element, Outline


@dataclass(frozen=True, slots=True)
class FieldText:
    """What stands in a field, and which part of it is selected; an empty selection is the caret."""

    text: str
    start: int  # characters from the beginning
    end: int

    def after(self, typed: str) -> str:
        """The text once something is typed into the field."""
        return self.text[: self.start] + typed + self.text[self.end :]


class Elements(Protocol):
    """One user's connection to the elements, used from one thread. No call waits long for a hung application.

    Names and values are text of strangers: cut, cleaned, and data only.
    """

    def outline(self) -> Outline:
        """What can be seen now of the windows that are on top; no elements, but `lacks`, where none are told."""

    def at(self, point: DesktopPoint) -> Element | None:
        """What a click at a point would hit; None where that is not known. Takes 50 ms at most.

        Raises EnvironmentLacksError: nobody tells elements, or not any more.
        """

    def focused(self) -> Element | None:
        """What gets the keys in the active window, without its value; None where that is not known. 50 ms at most.

        Raises as `at` does.
        """

    def field_text(self) -> FieldText | None:
        """What stands in the field that gets the keys in the active window, as it is now. 50 ms at most.

        None where no field has the focus, for a password, and where the text is not told or very long. Raises as `at`
        does.
        """

    def close(self) -> None:
        """Close the connection; never raises."""


#: Opens a connection for the thread that calls it; None where elements are unknown.
OpenElements: TypeAlias = Callable[[], Elements | None]
