"""The hand, which carries out actions on a desktop, and the input device through which it sends single events."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint


class ActionFailedError(Exception):
    """The action could not be carried out; the message goes to the model and the person."""


class CornerError(Exception):
    """The person moved the pointer into a corner of the screen."""


@dataclass(slots=True)
class Rest:
    """Whether the hand is busy, and since when it rests (monotonic seconds). Written by the hand's thread."""

    busy: bool = False
    since: float = field(default_factory=time.monotonic)


class Hand(Protocol):
    """Carries out actions on the desktop. Called from one thread, which it may block."""

    @property
    def touches(self) -> bool:
        """False for a dry run, which only describes actions."""

    @property
    def rest(self) -> Rest:
        """Whether the hand is busy; the takeover watch needs this."""

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out and describe what was done.

        Keys of `KeyDown` and buttons of `ButtonDown` stay down until they are released or lifted, or an action fails.
        Meanwhile, every action names all keys that are down (`agent.safety.held_input`). Raises ActionFailedError: it
        could not be done, and nothing stays pressed; StoppedError; EnvironmentLacksError: the display is gone.
        """

    def lift(self) -> None:
        """Release held keys. Modifiers are pressed again for later actions that name them. Never raises."""

    def release_all(self) -> None:
        """Release and forget everything that is held down. Never raises."""

    def close(self) -> None:
        """Release everything and close the connections."""


@dataclass(frozen=True, slots=True)
class Press:
    """A pressed key, by its name in `agent.core.keys`, or a pressed mouse button (`actions.Button`)."""

    kind: Literal["key", "button"]
    name: str


class Input(Protocol):
    """Mouse and keyboard of a desktop, used from the hand's thread; coordinates are desktop units.

    Methods with a body are for inputs that need or know no more. Every method but `close` may raise CornerError, and
    any error of the system if it accepts no more input.
    """

    def position(self) -> tuple[int, int]:
        """Return where the pointer is."""

    def move(self, x: int, y: int) -> None:
        """Move the pointer."""

    def held(self) -> list[str]:
        """Return the names of all modifiers and buttons that are down, ours and the person's; empty if unknown."""
        return []

    def has_key(self, name: str) -> bool:
        """Whether this keyboard has a key."""

    def press(self, press: Press) -> None:
        """Press a key or button down."""

    def release(self, presses: Sequence[Press]) -> None:
        """Release all of these, even if the pointer is in a corner."""

    def scroll(self, dx: int, dy: int) -> None:
        """Turn the wheel by one notch: `dy` 1 scrolls towards the end of the document, `dx` 1 to the right."""

    def set_busy(self, busy: bool) -> None:  # noqa: ARG002
        """Note that an action begins or ends."""
        return

    def lost(self, error: Exception) -> Exception:
        """Translate an error to EnvironmentLacksError, or to StoppedError if a stop caused it."""

    def close(self) -> None:
        """Close the connection."""
        return
