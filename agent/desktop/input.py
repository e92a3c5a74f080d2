"""What a hand works with: single movements of pointer and wheel, and presses and releases of keys and buttons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


class CornerError(Exception):
    """The person took the pointer into a corner of the screen."""


@dataclass(frozen=True, slots=True)
class Press:
    """A key, by its name in `agent.core.keys`, or a button of the mouse (`actions.Button`) that is pressed."""

    kind: Literal["key", "button"]
    name: str


class Input(Protocol):
    """The input of a desktop, used from the hand's thread; coordinates are desktop units.

    Every method but `close` may raise CornerError, and anything that the system says when it takes no more input.
    """

    def position(self) -> tuple[int, int]:
        """Where the pointer is."""

    def move(self, x: int, y: int) -> None:
        """Move the pointer there."""

    def held(self) -> list[str]:
        """The modifiers and buttons that are down, in words, whoever holds them; empty where that is not known."""

    def has_key(self, name: str) -> bool:
        """Whether this keyboard has a key."""

    def press(self, press: Press) -> None:
        """Press one of them down."""

    def release(self, presses: Sequence[Press]) -> None:
        """Release all of these, wherever the pointer is."""

    def scroll(self, dx: int, dy: int) -> None:
        """Turn the wheel by one notch: `dy` 1 is towards the end of the document, `dx` 1 to the right."""

    def set_busy(self, busy: bool) -> None:
        """An action begins or ends."""

    def lost(self, error: Exception) -> Exception:
        """What an error means: EnvironmentLacksError, or StoppedError where a stop was the reason."""

    def close(self) -> None:
        """Give back what is held open."""
