"""Waits for the screen to settle after an action, by measuring instead of a fixed sleep.

Fixed sleeps are the largest cost of a step in other agents, and still too short for slow applications. Here the screen
is polled until nothing but small changing spots (a caret, a clock, a spinner) has changed for some time, with a cap.

Two frames are compared by the grey values of small cells. A strict pixel comparison never finds a desktop still (carets
blink, clocks tick), and a coarse one misses a check box.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent.screen.capture import Frame, Screen

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


#: Grey pixels are compared at a quarter of the size: a poll of a 1080p screen then costs about 4 ms.
_REDUCTION = 4
#: Side of a cell in captured pixels. A caret or a check box covers one or two cells.
CELL = 32
#: Grey levels (of 255) by which a reduced pixel must differ to count as changed.
_NOISE = 6


@dataclass(frozen=True)
class Fingerprint:
    """The reduced grey image of a screen."""

    grey: "np.ndarray[Any, np.dtype[np.int16]]"

    @classmethod
    def of(cls, image: "Image") -> "Fingerprint":
        """Return the fingerprint of an RGB image."""
        import numpy as np

        return cls(np.asarray(image.reduce(_REDUCTION).convert("L"), dtype=np.int16))

    def changed_cells(self, other: "Fingerprint") -> frozenset[tuple[int, int]]:
        """Return the cells (row, column) that differ; if the sizes differ, only (-1, -1), which stands for all."""
        import numpy as np

        if self.grey.shape != other.grey.shape:
            return frozenset({(-1, -1)})
        rows, columns = np.nonzero(np.abs(self.grey - other.grey) > _NOISE)
        step = CELL // _REDUCTION
        return frozenset(zip((rows // step).tolist(), (columns // step).tolist(), strict=True))

    @cached_property
    def digest(self) -> str:
        """A short hash that identifies this screen in the record."""
        import hashlib

        return hashlib.blake2b(self.grey.tobytes(), digest_size=8).hexdigest()


#: Shortest pause before the last poll, in seconds.
_SHORTEST = 0.005


@dataclass(frozen=True, slots=True)
class SettleRule:
    """When a screen counts as still. Times in seconds."""

    quiet: float = 0.3  # how long nothing may change; applications here react to a click within 0.1 to 0.25 s
    cap: float = 2.5  # stop waiting after this long: a video never becomes still
    poll: float = 0.04  # pause between two polls
    hint: float = 0.1  # after this long without a change, the frame may be final: the next step can be prepared
    spot_cells: int = 4  # up to this many changed cells of 32x32 pixels are a spot, not a change of the screen


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of `settle`."""

    frame: Frame  # the last frame
    fingerprint: Fingerprint  # of the last frame
    seconds: float  # how long the wait took
    still: bool  # False if the cap ended the wait
    restless: frozenset[tuple[int, int]]  # cells that kept changing while everything else was still


def settle(
    screen: Screen,
    rule: SettleRule,
    stopped: Callable[[], bool] = lambda: False,
    may_be_still: Callable[[Frame, Fingerprint], None] | None = None,
    is_enough: Callable[[], bool] = lambda: False,
) -> Settled:
    """Poll until the screen is still, the cap is reached, or `stopped()`.

    `may_be_still` gets frames that may be the last. While such a frame stays unchanged, `is_enough` may end the wait.
    Raises EnvironmentLacksError: the screen cannot be captured.
    """
    began = time.monotonic()
    frame = screen.grab()
    last = Fingerprint.of(frame.image)
    quiet_since = spot_since = began
    spots: dict[tuple[int, int], list[float]] = {}  # times at which each cell of a spot changed
    hinted = -1.0  # start of the quiet time that was last reported
    while True:
        left = quiet_since + rule.quiet - time.monotonic()
        time.sleep(min(rule.poll, max(left, _SHORTEST)))
        frame = screen.grab()
        now = Fingerprint.of(frame.image)
        changed = now.changed_cells(last)
        last, at = now, time.monotonic()
        if len(changed) > rule.spot_cells:
            quiet_since = at
        elif changed:
            spot_since = at
            for cell in changed:
                spots.setdefault(cell, []).append(at)
        since = max(quiet_since, spot_since)
        if may_be_still is not None and hinted != since and at - since >= rule.hint:
            hinted = since
            may_be_still(frame, now)
        enough = hinted == since and is_enough()
        calm = at - spot_since >= rule.quiet / 2
        # A spot may be a check box that is being drawn, so it gets twice the time to settle. A caret never settles.
        still = at - quiet_since >= rule.quiet * (1 if calm else 2)
        if still or enough or at - began >= rule.cap or stopped():
            restless = frozenset(
                cell for cell, times in spots.items() if len(times) > 1 and at - times[-1] < rule.quiet / 2
            )
            return Settled(frame, now, at - began, still or enough, restless)


def unchanged(before: Fingerprint, after: Settled) -> bool:
    """Whether nothing changed since `before`, except cells that change on their own."""
    return not (before.changed_cells(after.fingerprint) - after.restless)
