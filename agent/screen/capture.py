"""What is looked at: a screen, and one captured frame of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.geometry import Viewport

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Frame:
    """One captured monitor.

    Args:
        image: RGB, in captured pixels.
        viewport: how the captured pixels lie on the desktop.
        taken_at: `time.monotonic()` of the grab.
    """

    image: "Image"
    viewport: Viewport
    taken_at: float


class Screen(Protocol):
    """Something that can be looked at."""

    def grab(self) -> Frame:
        """Capture now. Raises EnvironmentLacksError when the screen cannot be read."""

    def close(self) -> None:
        """Give back what the capture holds."""
