"""The size at which an image is sent, and what it costs in tokens, known before the request.

Servers resize every image to a multiple of their patch grid. Resizing once, here, to exactly the size that the server
will keep means that nothing is resized twice, tokens are known, and an absolute-pixel family's points refer to the
image we hold.

The rule is `smart_resize` of the Qwen2-VL image processor (transformers,
`models/qwen2_vl/image_processing_qwen2_vl.py`, Apache-2.0), which Qwen2.5-VL and Qwen3-VL share with other numbers.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.geometry import Size
from foundation.configs import load_config
from foundation.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

#: The processor refuses images that are more than this many times longer than wide.
MAX_ASPECT_RATIO = 200


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A family's resize rule.

    Args:
        factor: both sides of a sent image are multiples of it, in pixels; one token covers factor x factor pixels.
        min_pixels: smaller images are enlarged to at least this area.
        max_pixels: larger images are reduced to at most this area.
    """

    factor: int
    min_pixels: int
    max_pixels: int

    @classmethod
    def from_config(cls, family: str) -> "ImageRule":
        """The rule of a family in `configs/families`. Raises FileNotFoundError for an unknown family."""
        image = load_config(f"families/{family}.toml")["image"]
        return cls(int(image["factor"]), int(image["min_pixels"]), int(image["max_pixels"]))

    def capped(self, max_pixels: int | None) -> "ImageRule":
        """The rule with a lower pixel budget; None leaves it as it is.

        Raises:
            UsageError: the budget is below the family's minimum.
        """
        if max_pixels is None:
            return self
        if max_pixels < self.min_pixels:
            raise UsageError(
                f"A budget of {max_pixels} pixels is below this family's minimum of {self.min_pixels}.",
                f"Use --max-pixels {self.min_pixels} or more.",
            )
        return replace(self, max_pixels=min(self.max_pixels, max_pixels))

    def fit(self, size: Size) -> Size:
        """The size at which an image of `size` is sent.

        Raises:
            UsageError: the image is more than 200 times longer than wide, which the models' processors refuse.
        """
        longer, shorter = max(size.width, size.height), min(size.width, size.height)
        if longer > MAX_ASPECT_RATIO * shorter:
            raise UsageError(
                f"An image of {size} is more than {MAX_ASPECT_RATIO} times longer than wide.",
                "No supported model takes such an image: cut it into pieces.",
            )
        # Python's round() is the processor's too: halves go to the even neighbour.
        width, height = (round(side / self.factor) * self.factor for side in (size.width, size.height))
        if width * height > self.max_pixels:
            shrink = math.sqrt(size.area / self.max_pixels)
            width, height = (
                max(self.factor, math.floor(side / shrink / self.factor) * self.factor)
                for side in (size.width, size.height)
            )
        elif width * height < self.min_pixels:
            grow = math.sqrt(self.min_pixels / size.area)
            width, height = (math.ceil(side * grow / self.factor) * self.factor for side in (size.width, size.height))
        return Size(width, height)

    def tokens(self, sent: Size) -> int:
        """Vision tokens of an image of a fitted size (its area over factor squared)."""
        return sent.area // self.factor**2


def resize(image: "Image", to: Size) -> "Image":
    """The image at the size it is sent; the same object when nothing changes.

    Screens usually change by under 2 % (1080 rows become 1088): BILINEAR takes half the time of LANCZOS there. A real
    reduction uses HAMMING, which keeps small text about as sharp as BICUBIC at BILINEAR's cost (Pillow's handbook,
    "Filters"): 48 ms from 4K to 2 Mpx, where LANCZOS takes 106 ms.
    """
    from PIL.Image import Resampling

    if image.size == (to.width, to.height):
        return image
    reduced = image.width * image.height > 1.1 * to.area
    return image.resize((to.width, to.height), Resampling.HAMMING if reduced else Resampling.BILINEAR)
