"""What is looked at: a screen, and one captured frame of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.core.geometry import Viewport

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Frame:
    """One captured monitor."""

    image: "Image"  # RGB, in captured pixels
    viewport: Viewport  # how the captured pixels lie on the desktop
    taken_at: float  # `time.monotonic()` of the grab


class Screen(Protocol):
    """Something that can be looked at."""

    def grab(self) -> Frame:
        """Capture now. Raises EnvironmentLacksError when the screen cannot be read."""

    def close(self) -> None:
        """Give back what the capture holds."""
