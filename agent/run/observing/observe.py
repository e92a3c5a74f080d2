"""From the screen to the image the model gets: capture, settle, fit, encode, each timed."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from agent.core.changes import Change
from agent.core.geometry import Grid, Size, Viewport
from agent.run.observing.outliner import Outliner
from agent.screen.capture import Frame, Screen
from agent.screen.drawing import draw_marks
from agent.screen.encode import EncodedImage, ImageFormat, encode, fit, resize
from agent.screen.outline import Outline, See
from agent.screen.outline_text import is_seen, write_outline
from agent.screen.settle import Fingerprint, Settled, SettleRule, settle
from foundation.errors import EnvironmentLacksError
from foundation.images import ImageRule

if TYPE_CHECKING:
    from PIL.Image import Image

#: An outline is waited for so long, in seconds: the first one reads the whole screen, which may take some on a busy
#: machine.
_LONGEST = 10.0
#: Cells that may change while it is taken without its being taken again: carets and clocks.
_RESTLESS = SettleRule().spot_cells


#: Takes out of a captured screen and its outline what the model may not see.
Conceal: TypeAlias = Callable[[Frame | None, Outline], tuple[Frame | None, Outline]]


@dataclass(frozen=True, slots=True)
class Observation:
    """What the model is shown, and what is needed to act on its answer."""

    images: tuple[EncodedImage, ...]  # what is sent: the screenshot, and what else a family wants to see
    tokens: int  # their vision tokens
    viewport: Viewport  # how captured pixels lie on the desktop
    fingerprint: Fingerprint  # the screen, for comparing
    milliseconds: dict[str, float] = field(default_factory=dict)  # of capture, fit, encode and outline
    changes: tuple[Change, ...] = ()  # what changed since the run began, for families that ask for it
    frame: Frame | None = None  # the screen as it was captured, for a closer look
    outlining: "Future[Outline] | None" = None  # the elements of the screen, where something tells them
    sent: Size = Size(1, 1)  # noqa: RUF009 -- frozen; of the image, or of the one that would be sent

    @property
    def outline(self) -> Outline | None:
        """The elements of the screen; None where nothing tells them, or not yet. Never waits."""
        return self.outlining.result() if self.outlining is not None and self.outlining.done() else None

    @property
    def boxes(self) -> dict[str, tuple[int, int, int, int]]:
        """The boxes of the elements in sight, by number: left, top, width and height in desktop pixels."""
        outline = self.outline
        seen = [] if outline is None else [one for one in outline.elements if is_seen(one, outline)]
        return {str(one.id): (one.box.left, one.box.top, one.box.width, one.box.height) for one in seen}


@dataclass(frozen=True, slots=True)
class _Ahead:
    """An outline that was begun, and the screen that it is of."""

    fingerprint: Fingerprint
    outlining: "Future[Outline]"


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
        saw: Callable[[], None] = lambda: None,
        see: See = "screenshot",
        conceal: Conceal | None = None,
    ) -> None:
        """A `waits` observer gives each observation with its outline; otherwise that is taken while the model thinks.

        `saw` is called as soon as a screen was captured that the model will be shown. `see`: an observation has its
        screenshot; that with its elements marked; no image. With the last two, outlines are waited for, and so they are
        where something is to `conceal`, without which nothing is shown.
        """
        self._screen = screen
        self._rule = rule
        self._format: ImageFormat = image_format
        self._quality = quality
        self._outliner = outliner
        self._waits = (waits or see != "screenshot" or conceal is not None) and outliner is not None
        self._see = see
        self._conceal = conceal
        self._ahead: _Ahead | None = None
        self._saw = saw
        self._fitted: Image | None = None  # the newest image before anything is drawn on it

    def look(self) -> Observation:
        """Capture now. Raises EnvironmentLacksError: there is something to conceal, and nobody can tell where."""
        self._ahead = None
        began = time.perf_counter()
        frame = self._screen.grab()
        self._saw()
        captured = (time.perf_counter() - began) * 1000
        return self._outlined(frame, Fingerprint.of(frame.image), {"capture": captured})

    def watch(self, rule: SettleRule, stopped: Callable[[], bool]) -> Settled:
        """Wait until the screen is still; an outline that is waited for is taken as soon as it may be."""
        settled = settle(self._screen, rule, stopped, self._take_ahead if self._waits else None)
        self._saw()
        return settled

    def observe(self, settled: Settled) -> Observation:
        """The observation of an already settled screen: nothing is captured twice."""
        milliseconds = {"capture": 0.0}
        ahead, self._ahead = self._ahead, None
        if ahead is None or settled.fingerprint.changed_cells(ahead.fingerprint) - settled.restless:
            return self._outlined(settled.frame, settled.fingerprint, milliseconds)
        return self._with_outline(ahead, self._observe(settled.frame, settled.fingerprint, milliseconds))

    def _take_ahead(self, frame: Frame, fingerprint: Fingerprint) -> None:
        """Take the outline of a frame that may be the one on which the screen comes to rest."""
        if self._ahead is not None:
            self._ahead.outlining.cancel()
        self._ahead = None if self._outliner is None else _Ahead(fingerprint, self._outliner.take(frame))

    def _outlined(self, frame: Frame, fingerprint: Fingerprint, milliseconds: dict[str, float]) -> Observation:
        """The observation of a frame, with its outline where one is wanted."""
        if self._outliner is None:
            return self._concealed(self._observe(frame, fingerprint, milliseconds))
        if not self._waits:  # the picture first: nothing may hold it up
            seen = self._observe(frame, fingerprint, milliseconds)
            return replace(seen, outlining=self._outliner.take(frame))
        ahead = _Ahead(fingerprint, self._outliner.take(frame))
        return self._with_outline(ahead, self._observe(frame, fingerprint, milliseconds))

    def _with_outline(self, ahead: _Ahead, seen: Observation) -> Observation:
        """The observation with an outline that was begun, when it is there.

        An outline tells of the screen as it is while it is taken. Where the screen changed while it was waited for,
        both are taken again, once: a screen that never rests is as it is.
        """
        began = time.perf_counter()
        if not ahead.outlining.done():
            wait((ahead.outlining,), _LONGEST)
            now = self._screen.grab()
            after = Fingerprint.of(now.image)
            if self._outliner is not None and len(after.changed_cells(seen.fingerprint)) > _RESTLESS:
                ahead = _Ahead(after, self._outliner.take(now))
                self._saw()
                seen = self._observe(now, after, seen.milliseconds)
                wait((ahead.outlining,), _LONGEST)
        seen.milliseconds["outline"] = (time.perf_counter() - began) * 1000
        return self._marked(self._concealed(replace(seen, outlining=ahead.outlining)))

    def _concealed(self, seen: Observation) -> Observation:
        """The observation without what is to be concealed; where that is not known, there is none."""
        if self._conceal is None:
            return seen
        if seen.outline is None:
            raise EnvironmentLacksError("The elements of the screen were not told in time, so none of it is shown.")
        frame, outline = self._conceal(seen.frame, seen.outline)
        if frame is not None and frame is not seen.frame:
            seen = self._observe(frame, seen.fingerprint, seen.milliseconds)
        told: Future[Outline] = Future()
        told.set_result(outline)
        return replace(seen, outlining=told)

    def _marked(self, seen: Observation) -> Observation:
        """The observation with its elements marked in the image, where that is wanted and they are known."""
        if self._see != "marks" or seen.outline is None or self._fitted is None:
            return seen
        began = time.perf_counter()
        viewport = Viewport(seen.viewport.region, Size(*self._fitted.size))
        # What is told in text is what is marked.
        elements = write_outline(seen.outline, Grid.pixels(viewport.captured)).elements
        image = encode(draw_marks(self._fitted, elements, viewport), self._format, self._quality)
        seen.milliseconds["marks"] = (time.perf_counter() - began) * 1000
        return replace(seen, images=(image,))

    def _observe(self, frame: Frame, fingerprint: Fingerprint, milliseconds: dict[str, float]) -> Observation:
        began = time.perf_counter()
        sent = fit(self._rule, Size(*frame.image.size))
        if self._see == "outline":
            return Observation((), 0, frame.viewport, fingerprint, milliseconds, sent=sent)
        fitted = resize(frame.image, sent)
        self._fitted = fitted if self._see == "marks" else None
        resized = time.perf_counter()
        image = encode(fitted, self._format, self._quality)
        milliseconds |= {"fit": (resized - began) * 1000, "encode": (time.perf_counter() - resized) * 1000}
        return Observation(
            (image,), self._rule.tokens(sent.width, sent.height), frame.viewport, fingerprint, milliseconds,
            frame=frame, sent=sent,
        )  # fmt: skip

    def close(self) -> None:
        """Close the screen."""
        if self._outliner is not None:
            self._outliner.close()
        self._screen.close()
