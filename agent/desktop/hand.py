"""What a hand is: the protocol that carries an action out, and what it says when it cannot."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from agent.core.actions import Action, describe
from agent.core.geometry import DesktopPoint


class ActionFailedError(Exception):
    """The action could not be carried out; the message goes to the model and the person."""


@dataclass(slots=True)
class Rest:
    """Whether the hand is at work, and since when it rests; written by the hand's thread."""

    busy: bool = False
    since: float = field(default_factory=time.monotonic)


class Hand(Protocol):
    """Carries out actions that touch the desktop. Called from one thread, which it may block."""

    @property
    def touches(self) -> bool:
        """False for a dry run, which records instead."""

    @property
    def rest(self) -> Rest:
        """Whether it is at work, for those who watch what the person does meanwhile."""

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Carry the action out and say in words what was done.

        What `KeyDown` and `ButtonDown` press stays down until it is released, or lifted, or an action fails. The action
        names all keys that are down meanwhile (`agent.safety.held`).

        Raises:
            ActionFailedError: it could not be done; nothing is left pressed.
            StoppedError: the stop switch was set, or the person took the pointer to a corner.
            EnvironmentLacksError: the display is gone.
        """

    def lift(self) -> None:
        """Release the keys that are kept down; modifiers are pressed again where an action names them. Never raises."""

    def release_all(self) -> None:
        """Release whatever is still held down, and keep nothing; never raises."""

    def close(self) -> None:
        """Release everything and give back what is held open."""


class RecordingHand:
    """The hand of a dry run: the same path, but it only says what would be done."""

    touches = False

    def __init__(self) -> None:
        self.rest = Rest()

    def perform(self, action: Action[DesktopPoint]) -> str:
        """Say what would be done."""
        return f"would {describe(action)}"

    def lift(self) -> None:
        """Nothing is ever held."""

    def release_all(self) -> None:
        """Nothing is ever held."""

    def close(self) -> None:
        """Nothing is open."""
