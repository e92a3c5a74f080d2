"""The protocol of a screen that can be captured, and a captured frame."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.core.geometry import Viewport

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Frame:
    """A capture of one monitor."""

    image: "Image"  # RGB, in captured pixels
    viewport: Viewport  # maps captured pixels to the desktop
    taken_at: float  # `time.monotonic()` of the grab


class Screen(Protocol):
    """A monitor that can be captured."""

    def grab(self) -> Frame:
        """Capture the present screen. Raises EnvironmentLacksError: it cannot be captured."""

    def close(self) -> None:
        """Release the capture's resources."""
