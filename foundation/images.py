"""Computes the size to which a vision model resizes an image, and its tokens, before the request.

Servers resize every image to a multiple of their patch grid. If we resize to exactly that size, the number of tokens is
known, no pixel is discarded by the server, and absolute coordinates refer to our image.
"""

import math
from dataclasses import dataclass, replace

from foundation.errors import UsageError

#: Largest aspect ratio that the processors accept.
MAX_ASPECT_RATIO = 200


def smart_resize(width: int, height: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Return the size to which a Qwen-VL processor resizes an image: both sides are multiples of `factor`.

    Equals `smart_resize` of transformers (`models/qwen2_vl/image_processing_qwen2_vl.py`, Apache-2.0), which Qwen2-VL,
    Qwen2.5-VL and Qwen3-VL share. `factor` is the side of one image token in pixels: 32 for Qwen3-VL (patch 16 x merge
    2), 28 for Qwen2/2.5-VL. A strip whose short side is already one `factor` may stay above `max_pixels`, as in the
    original. Raises UsageError for no area or an aspect ratio above 200, which the processors refuse.
    """
    _check(width, height)
    area = width * height
    fitted_width, fitted_height = (round(side / factor) * factor for side in (width, height))
    if fitted_width * fitted_height > max_pixels:
        shrink = math.sqrt(area / max_pixels)
        fitted_width, fitted_height = (
            max(factor, math.floor(side / shrink / factor) * factor) for side in (width, height)
        )
    elif fitted_width * fitted_height < min_pixels:
        grow = math.sqrt(min_pixels / area)
        fitted_width, fitted_height = (math.ceil(side * grow / factor) * factor for side in (width, height))
    return fitted_width, fitted_height


def linear_resize(width: int, height: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Return the size at which UI-TARS 1.0's own client sends an image. Raises UsageError as `smart_resize` does.

    Equals `linear_resize` of bytedance/UI-TARS (codes/ui_tars/action_parser.py, Apache-2.0).
    """
    _check(width, height)
    if width * height > max_pixels:
        shrink = math.sqrt(max_pixels / (width * height))
        width, height = (max(1, int(side * shrink)) for side in (width, height))
    if width * height < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        width, height = (math.ceil(side * grow) for side in (width, height))
    return width, height


def _check(width: int, height: int) -> None:
    if min(width, height) < 1:
        raise UsageError(f"An image of {width}x{height} has no area.", "Give both sides in pixels, 1 or more.")
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise UsageError(
            f"An image of {width}x{height} is more than {MAX_ASPECT_RATIO} times longer than wide.",
            "No supported model takes such an image: cut it into pieces.",
        )


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A model family's rule for images: the parameters of `smart_resize`, and other limits."""

    factor: int
    min_pixels: int
    max_pixels: int
    counts: bool = True  # False if the family reads pixels and has no image tokens
    linear: bool = False  # resize by `linear_resize`; the server then fits the image to its factor
    max_side: int | None = None  # limit of the longer side; None for none
    token_pixels: int | None = None  # pixels of one image token; None for a square of `factor`

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """Return the size in pixels at which to send an image. Raises UsageError as `smart_resize` does."""
        if self.linear:
            return linear_resize(width, height, self.min_pixels, self.max_pixels)
        fitted = smart_resize(width, height, self.factor, self.min_pixels, self.max_pixels)
        if self.max_side is None or max(fitted) <= self.max_side:
            return fitted
        shrink = self.max_side / max(width, height)
        narrower, lower = (
            max(self.factor, int(side * shrink) // self.factor * self.factor) for side in (width, height)
        )
        return narrower, lower

    def tokens(self, width: int, height: int) -> int:
        """Return the vision tokens of an image of a fitted size; 0 for families without image tokens."""
        if self.linear:
            width, height = smart_resize(width, height, self.factor, self.min_pixels, self.max_pixels)
        return width * height // (self.token_pixels or self.factor**2) if self.counts else 0

    def capped(self, max_pixels: int | None) -> "ImageRule":
        """Return the rule with a lower pixel budget. Raises UsageError below the family's minimum."""
        if max_pixels is None:
            return self
        if max_pixels < self.min_pixels:
            raise UsageError(
                f"A budget of {max_pixels} pixels is below this family's minimum of {self.min_pixels}.",
                f"Use --max-pixels {self.min_pixels} or more.",
            )
        return replace(self, max_pixels=min(self.max_pixels, max_pixels))
