"""From the screen to the image the model gets: capture, settle, fit, encode, each timed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.geometry import Size, Viewport
from agent.screen.capture import Frame, Screen
from agent.screen.encode import EncodedImage, ImageFormat, encode
from agent.screen.fingerprint import Fingerprint
from agent.screen.fit import fit, resize
from agent.screen.outline import Outline
from agent.screen.settle import Settled, SettleRule, settle
from foundation.images import ImageRule


@dataclass(frozen=True, slots=True)
class Observation:
    """What the model is shown, and what is needed to act on its answer."""

    images: tuple[EncodedImage, ...]  # what is sent: the screenshot, and what else a family wants to see
    tokens: int  # their vision tokens
    viewport: Viewport  # how captured pixels lie on the desktop
    fingerprint: Fingerprint  # the screen, for comparing
    milliseconds: dict[str, float] = field(default_factory=dict)  # of capture, fit and encode
    outline: Outline | None = None  # the elements of the screen, where something tells them


class Observer:
    """Looks at one screen for one model. Its methods block; call them on its own worker."""

    def __init__(self, screen: Screen, rule: ImageRule, image_format: ImageFormat, quality: int) -> None:
        self._screen = screen
        self._rule = rule
        self._format: ImageFormat = image_format
        self._quality = quality

    def look(self) -> Observation:
        """Capture now."""
        began = time.perf_counter()
        frame = self._screen.grab()
        captured = (time.perf_counter() - began) * 1000
        return self._observe(frame, Fingerprint.of(frame.image), {"capture": captured})

    def watch(self, rule: SettleRule, stopped: Callable[[], bool]) -> Settled:
        """Wait until the screen is still."""
        return settle(self._screen, rule, stopped)

    def observe(self, settled: Settled) -> Observation:
        """The observation of an already settled screen: nothing is captured twice."""
        return self._observe(settled.frame, settled.fingerprint, {"capture": 0.0})

    def _observe(self, frame: Frame, fingerprint: Fingerprint, milliseconds: dict[str, float]) -> Observation:
        began = time.perf_counter()
        sent = fit(self._rule, Size(*frame.image.size))
        fitted = resize(frame.image, sent)
        resized = time.perf_counter()
        image = encode(fitted, self._format, self._quality)
        milliseconds |= {"fit": (resized - began) * 1000, "encode": (time.perf_counter() - resized) * 1000}
        return Observation(
            (image,), self._rule.tokens(sent.width, sent.height), frame.viewport, fingerprint, milliseconds
        )

    def close(self) -> None:
        """Close the screen."""
        self._screen.close()
