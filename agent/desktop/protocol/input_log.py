"""What a person does with mouse and keyboard, for recording a demonstration."""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agent.core.actions import Button
from agent.core.geometry import DesktopPoint


@dataclass(frozen=True, slots=True)
class ButtonPressed:
    """A mouse button went down; `held` are the modifiers that were down."""

    at: DesktopPoint
    button: Button
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ButtonReleased:
    """A mouse button went up."""

    at: DesktopPoint


@dataclass(frozen=True, slots=True)
class WheelTurned:
    """The wheel turned by one notch: `dx` to the right, `dy` down."""

    at: DesktopPoint
    dx: int
    dy: int


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """A key went down.

    Args:
        key: its canonical name (`agent.core.keys`); "" for one that has none, such as a dead key.
        text: the character that it types; "" if it types none.
        held: the modifiers that were down, without a shift that only chose the character.
    """

    key: str
    text: str = ""
    held: tuple[str, ...] = ()


PersonInput: TypeAlias = ButtonPressed | ButtonReleased | WheelTurned | KeyPressed


class InputLog(Protocol):
    """Reports the person's input on a desktop in its order. Used from one thread."""

    def next(self, timeout: float) -> PersonInput | None:
        """Return the next input; None after `timeout` seconds without any.

        Raises EnvironmentLacksError: the display is lost.
        """

    def close(self) -> None:
        """Stop listening; never raises."""
