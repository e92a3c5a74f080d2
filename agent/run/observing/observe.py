"""Turns the screen into the image for the model: capture, settle, fit, encode, each timed."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeAlias

from agent.core.changes import Change
from agent.core.geometry import Grid, Size, Viewport
from agent.run.observing.outliner import Outliner
from agent.screen.capture import Frame, Screen
from agent.screen.drawing import draw_marks
from agent.screen.encode import EncodedImage, ImageFormat, as_image, encode, fit, open_foreign, resize
from agent.screen.outline import Outline, See, is_seen, write_outline
from agent.screen.settle import Fingerprint, Settled, SettleRule, settle
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.images import ImageRule

#: Seconds to wait for an outline. The first one reads the whole screen, which takes long on a busy machine.
_LONGEST = 10.0
#: Screen cells that may change while an outline is taken: carets and clocks. If more change, it is taken again.
_RESTLESS = SettleRule().spot_cells


#: Removes what the model may not see from a captured screen and its outline.
Conceal: TypeAlias = Callable[[Frame | None, Outline], tuple[Frame | None, Outline]]
#: Returns a check for the effect that the model's last step should have; None if it needs none.
Awaited: TypeAlias = Callable[[], Callable[[Outline], bool] | None]


@dataclass(frozen=True, slots=True)
class Observation:
    """What the model is shown, with what is needed to act on its answer."""

    images: tuple[EncodedImage, ...]  # the images to send: the screenshot, and others that a family asks for
    tokens: int  # their vision tokens
    viewport: Viewport  # maps captured pixels to the desktop
    fingerprint: Fingerprint  # of the screen, for comparisons
    milliseconds: dict[str, float] = field(default_factory=dict)  # time of capture, fit, encode and outline
    changes: tuple[Change, ...] = ()  # changes since the run began, for families that ask for them
    frame: Frame | None = None  # the captured screen, for a closer look
    outlining: "Future[Outline] | None" = None  # the elements of the screen; None without an outliner
    sent: Size = Size(1, 1)  # noqa: RUF009 -- frozen; of the image, or of the image that would be sent

    @property
    def outline(self) -> Outline | None:
        """Return the elements of the screen, or None if there is no outline yet. Never waits."""
        return self.outlining.result() if self.outlining is not None and self.outlining.done() else None

    @property
    def boxes(self) -> dict[str, tuple[int, int, int, int]]:
        """Map the number of each visible element to its box: left, top, width and height in desktop pixels."""
        outline = self.outline
        seen = [] if outline is None else [one for one in outline.elements if is_seen(one, outline)]
        return {str(one.id): (one.box.left, one.box.top, one.box.width, one.box.height) for one in seen}


@dataclass(slots=True)
class _Early:
    """Takes the outline of a screen while it becomes still."""

    outliner: Outliner
    is_awaited: Callable[[Outline], bool] | None
    enough: bool = False  # the tree shows what is awaited
    latest: "tuple[Frame, Fingerprint, Future[Outline]] | None" = None

    def take(self, frame: Frame, fingerprint: Fingerprint) -> None:
        """Begin the outline of a frame that may be the final one."""
        if self.latest is not None:
            self.latest[2].cancel()
        self.latest = (frame, fingerprint, self.outliner.take(frame, words=self.is_awaited is None))

    def is_enough(self) -> bool:
        """Whether the tree shows what is awaited. It is read again if it does not."""
        if self.is_awaited is None or self.latest is None or not self.latest[2].done():
            return False
        frame, fingerprint, outlining = self.latest
        self.enough = self.is_awaited(outlining.result())
        if not self.enough:
            self.take(frame, fingerprint)
        return self.enough

    def outline_of(self, settled: Settled) -> "Future[Outline] | None":
        """Return the outline of a settled screen. None: it changed since the outline, or the words are missing."""
        if self.latest is None or not (self.enough or self.is_awaited is None):
            return None
        _, fingerprint, outlining = self.latest
        return None if settled.fingerprint.changed_cells(fingerprint) - settled.restless else outlining


@dataclass(slots=True, eq=False)
class Observer:
    """Looks at one screen for one model. Its methods block; call them on a worker thread.

    With `waits`, each observation waits for its outline; otherwise it may be unfinished when the model answers. Marks,
    observations without an image, and `conceal` need the outline and therefore wait, too.
    """

    screen: Screen
    rule: ImageRule
    image_format: ImageFormat
    quality: int
    outliner: Outliner | None = None
    _: KW_ONLY
    waits: bool = True
    saw: Callable[[], None] = lambda: None  # called as soon as a screen that the model will be shown was captured
    see: See = "screenshot"
    conceal: Conceal | None = None
    awaited: Awaited = lambda: None  # the check for the effect of the model's last step
    _early: "_Early | None" = None  # the outline that was begun during `watch`

    def look(self) -> Observation:
        """Capture now. Raises EnvironmentLacksError: `conceal` needs an outline, and there is none."""
        self._early = None
        began = time.perf_counter()
        frame = self.screen.grab()
        self.saw()
        captured = (time.perf_counter() - began) * 1000
        return self._observation(frame, Fingerprint.of(frame.image), {"capture": captured})

    def watch(self, rule: SettleRule, stopped: Callable[[], bool]) -> Settled:
        """Wait until the screen is still, or shows what is `awaited`.

        The outline begins as soon as the screen may be still. If something is awaited, only the tree is read, again and
        again.
        """
        if self.outliner is None:
            settled = settle(self.screen, rule, stopped)
        else:
            early = _Early(self.outliner, self.awaited())
            settled = settle(self.screen, rule, stopped, early.take, early.is_enough)
            self._early = early
        self.saw()
        return settled

    def observe(self, settled: Settled) -> Observation:
        """Return the observation of a settled screen, without a second capture."""
        early, self._early = self._early, None
        outlining = None if early is None else early.outline_of(settled)
        return self._observation(settled.frame, settled.fingerprint, {"capture": 0.0}, outlining)

    def _observation(
        self,
        frame: Frame,
        fingerprint: Fingerprint,
        milliseconds: dict[str, float],
        outlining: "Future[Outline] | None" = None,
    ) -> Observation:
        """Build the observation of a captured frame. Every observation comes from here."""
        if self.outliner is None:
            return self._altered(self._pictured(frame, fingerprint, milliseconds))
        waits = self.waits or self.see != "screenshot" or self.conceal is not None
        if not waits:  # the image first: nothing may delay it
            seen = self._pictured(frame, fingerprint, milliseconds)
            return replace(seen, outlining=outlining or self.outliner.take(frame))
        outlining = outlining or self.outliner.take(frame)
        seen = self._pictured(frame, fingerprint, milliseconds)
        began = time.perf_counter()
        if not outlining.done():
            wait((outlining,), _LONGEST)
            # An outline describes the screen at the time it is taken. If the screen changed meanwhile, both are taken
            # again, but only once: some screens never rest.
            now = self.screen.grab()
            after = Fingerprint.of(now.image)
            if len(after.changed_cells(fingerprint)) > _RESTLESS:
                outlining = self.outliner.take(now)
                self.saw()
                seen = self._pictured(now, after, milliseconds)
                wait((outlining,), _LONGEST)
        milliseconds["outline"] = (time.perf_counter() - began) * 1000
        return self._altered(replace(seen, outlining=outlining))

    def _altered(self, seen: Observation) -> Observation:
        """Remove what the model may not see, and draw the marks if they are wanted."""
        outline = seen.outline
        if self.conceal is not None:
            if outline is None:
                raise EnvironmentLacksError("The elements of the screen came too late, so none of it is shown.")
            frame, outline = self.conceal(seen.frame, outline)
            if frame is not None and frame is not seen.frame:
                seen = self._pictured(frame, seen.fingerprint, seen.milliseconds)
            outlining: Future[Outline] = Future()
            outlining.set_result(outline)
            seen = replace(seen, outlining=outlining)
        if self.see != "marks" or outline is None or seen.frame is None:
            return seen
        began = time.perf_counter()
        viewport = Viewport(seen.viewport.region, seen.sent)
        # Mark the same elements that are listed in the text.
        elements = write_outline(outline, Grid.pixels(viewport.captured)).elements
        fitted = draw_marks(as_image(resize(seen.frame.image, seen.sent)), elements, viewport)
        image = encode(fitted, self.image_format, self.quality)
        seen.milliseconds["marks"] = (time.perf_counter() - began) * 1000
        return replace(seen, images=(image,))

    def _pictured(self, frame: Frame, fingerprint: Fingerprint, milliseconds: dict[str, float]) -> Observation:
        """Fit and encode a frame, unless the model gets no image."""
        began = time.perf_counter()
        sent = fit(self.rule, Size(*frame.image.size))
        if self.see == "outline":
            return Observation((), 0, frame.viewport, fingerprint, milliseconds, sent=sent)
        fitted = resize(frame.image, sent)
        resized = time.perf_counter()
        image = encode(fitted, self.image_format, self.quality)
        milliseconds |= {"fit": (resized - began) * 1000, "encode": (time.perf_counter() - resized) * 1000}
        return Observation(
            (image,), self.rule.tokens(sent.width, sent.height), frame.viewport, fingerprint, milliseconds,
            frame=frame, sent=sent,
        )  # fmt: skip

    def pictures(self, files: Sequence[bytes]) -> tuple[tuple[EncodedImage, int], ...]:
        """Encode pictures for the model, each with its vision tokens.

        Those that cannot be read are left out; a model that is sent no screenshots gets none.
        """
        shown = []
        for file in () if self.see == "outline" else files:
            with suppress(OSError, UsageError):
                image = open_foreign(file, ("PNG", "JPEG", "WEBP"))
                sent = fit(self.rule, Size(*image.size))
                encoded = encode(resize(image, sent), self.image_format, self.quality)
                shown.append((encoded, self.rule.tokens(sent.width, sent.height)))
        return tuple(shown)

    def close(self) -> None:
        """Close the outliner and the screen."""
        if self.outliner is not None:
            self.outliner.close()
        self.screen.close()
