"""From the screen to the image the model gets: capture, settle, fit, encode, each timed."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace

from agent.changes import Change
from agent.geometry import Size, Viewport
from agent.run.outliner import Outliner
from agent.screen.capture import Frame, Screen
from agent.screen.encode import EncodedImage, ImageFormat, encode
from agent.screen.fingerprint import Fingerprint
from agent.screen.fit import fit, resize
from agent.screen.outline import Outline
from agent.screen.settle import Settled, SettleRule, settle
from foundation.images import ImageRule

#: An outline is waited for so long, in seconds: the first one reads the whole screen, which may take some on a busy
#: machine.
_LONGEST = 10.0
#: Cells that may change while it is taken without its being taken again: carets and clocks.
_RESTLESS = SettleRule().spot_cells


@dataclass(frozen=True, slots=True)
class Observation:
    """What the model is shown, and what is needed to act on its answer."""

    images: tuple[EncodedImage, ...]  # what is sent: the screenshot, and what else a family wants to see
    tokens: int  # their vision tokens
    viewport: Viewport  # how captured pixels lie on the desktop
    fingerprint: Fingerprint  # the screen, for comparing
    milliseconds: dict[str, float] = field(default_factory=dict)  # of capture, fit, encode and outline
    changes: tuple[Change, ...] = ()  # what changed since the run began, for families that ask for it
    outlining: "Future[Outline] | None" = None  # the elements of the screen, where something tells them

    @property
    def outline(self) -> Outline | None:
        """The elements of the screen; None where nothing tells them, or not yet. Never waits."""
        return self.outlining.result() if self.outlining is not None and self.outlining.done() else None


class Observer:
    """Looks at one screen for one model. Its methods block; call them on its own worker."""

    def __init__(
        self,
        screen: Screen,
        rule: ImageRule,
        image_format: ImageFormat,
        quality: int,
        outliner: Outliner | None = None,
        *,
        waits: bool = True,
    ) -> None:
        """`waits`: an observation comes with its outline; otherwise that is taken while the model thinks."""
        self._screen = screen
        self._rule = rule
        self._format: ImageFormat = image_format
        self._quality = quality
        self._outliner = outliner
        self._waits = waits

    def look(self) -> Observation:
        """Capture now."""
        began = time.perf_counter()
        frame = self._screen.grab()
        captured = (time.perf_counter() - began) * 1000
        return self._outlined(frame, Fingerprint.of(frame.image), {"capture": captured})

    def watch(self, rule: SettleRule, stopped: Callable[[], bool]) -> Settled:
        """Wait until the screen is still; where an outline is waited for, what is new is read meanwhile."""
        ahead = self._outliner.read_ahead if self._outliner is not None and self._waits else None
        return settle(self._screen, rule, stopped, ahead)

    def observe(self, settled: Settled) -> Observation:
        """The observation of an already settled screen: nothing is captured twice."""
        return self._outlined(settled.frame, settled.fingerprint, {"capture": 0.0})

    def _outlined(self, frame: Frame, fingerprint: Fingerprint, milliseconds: dict[str, float]) -> Observation:
        """The observation of a frame, with its outline where one is wanted.

        An outline tells of the screen as it is while it is taken. Where that is not the frame's any more, both are
        taken again, once: a screen that never rests is as it is.
        """
        if self._outliner is None:
            return self._observe(frame, fingerprint, milliseconds)
        if not self._waits:  # the picture first: nothing may hold it up
            seen = self._observe(frame, fingerprint, milliseconds)
            return replace(seen, outlining=self._outliner.take(frame))
        pending = self._outliner.take(frame)
        seen = self._observe(frame, fingerprint, milliseconds)
        began = time.perf_counter()
        _wait_for(pending)
        now = self._screen.grab()
        after = Fingerprint.of(now.image)
        if len(after.changed_cells(fingerprint)) > _RESTLESS:
            pending = self._outliner.take(now)
            seen = self._observe(now, after, milliseconds)
            _wait_for(pending)
        seen.milliseconds["outline"] = (time.perf_counter() - began) * 1000
        return replace(seen, outlining=pending)

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
        if self._outliner is not None:
            self._outliner.close()
        self._screen.close()


def _wait_for(pending: "Future[Outline]") -> None:
    """Wait for an outline, but not for long."""
    wait((pending,), _LONGEST)
