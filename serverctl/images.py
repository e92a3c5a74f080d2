"""Images as a vLLM takes them: the size its processor keeps, data: URLs, and files made to fit.

Servers resize every image to a multiple of their patch grid. Who resizes to exactly that size first knows the tokens
before the request, and sends no pixel that is thrown away.
"""

import base64
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foundation.configs import config_names, load_config
from foundation.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

#: The processor refuses images that are more than this many times longer than wide.
MAX_ASPECT_RATIO = 200

#: File signatures of the formats that vLLM's image reader (Pillow) is sure to know, and their media types.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)


def smart_resize(width: int, height: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size to which a Qwen-VL processor resizes an image: both sides whole multiples of `factor`.

    `smart_resize` of transformers (`models/qwen2_vl/image_processing_qwen2_vl.py`, Apache-2.0), shared by Qwen2-VL,
    Qwen2.5-VL and Qwen3-VL. Halves round to the even neighbour, as Python's `round` does. A strip so long that its
    short side cannot shrink below one step may stay above `max_pixels`, as in the original.

    Args:
        width: of the image, in pixels.
        height: of the image, in pixels.
        factor: pixels on a side of one image token: 32 for Qwen3-VL (patch 16 x merge 2), 28 for Qwen2/2.5-VL.
        min_pixels: smaller images are enlarged to at least this area.
        max_pixels: larger images are reduced to at most this area.

    Returns:
        Width and height in pixels; their product over the factor squared is the number of image tokens.

    Raises:
        UsageError: the image has no area, or is more than 200 times longer than wide, which the processors refuse.
    """
    if min(width, height) < 1:
        raise UsageError(f"An image of {width}x{height} has no area.", "Give both sides in pixels, 1 or more.")
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise UsageError(
            f"An image of {width}x{height} is more than {MAX_ASPECT_RATIO} times longer than wide.",
            "No supported model takes such an image: cut it into pieces.",
        )
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


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A model family's resize rule; the arguments of `smart_resize`."""

    factor: int
    min_pixels: int
    max_pixels: int

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """The size in pixels that the processor keeps of an image. Raises UsageError as `smart_resize` does."""
        return smart_resize(width, height, self.factor, self.min_pixels, self.max_pixels)


def family_names() -> list[str]:
    """Families whose image rule is known."""
    return config_names("families")


def family_of(model: str) -> str | None:
    """The family whose name is part of a served model's name; None when the name says nothing."""
    lowered = model.lower()
    for family in family_names():
        parts = load_config(f"families/{family}.toml").get("detect", {}).get("names", [])
        if any(part in lowered for part in (family, *parts)):
            return family
    return None


def family_rule(family: str, max_pixels: int | None = None) -> ImageRule:
    """The image rule of a family in `configs/families`, with a lower pixel budget where one is given.

    Raises:
        UsageError: there is no such family, or the budget is below its smallest image.
    """
    if family not in family_names():
        raise UsageError(f"There is no family {family!r}.", f"Use one of: {', '.join(family_names())}.")
    image = load_config(f"families/{family}.toml")["image"]
    rule = ImageRule(int(image["factor"]), int(image["min_pixels"]), int(image["max_pixels"]))
    if max_pixels is None:
        return rule
    if max_pixels < rule.min_pixels:
        raise UsageError(
            f"A budget of {max_pixels} pixels is below the smallest image of {family}, {rule.min_pixels} pixels.",
            f"Use {rule.min_pixels} or more.",
        )
    return replace(rule, max_pixels=min(rule.max_pixels, max_pixels))


def media_type(data: bytes) -> str | None:
    """The media type of an image file by its first bytes; None for what is no PNG, JPEG, WebP, GIF or BMP."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), None)


def data_url(data: bytes) -> str:
    """An image file as a data: URL. Raises ValueError where it is no image file."""
    kind = media_type(data)
    if kind is None:
        raise ValueError("it is no PNG, JPEG, WebP, GIF or BMP file")
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def png(image: "Image") -> bytes:
    """A PNG, compressed lightly: for an image that crosses loopback once, time counts for more than size."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()


def fitted(data: bytes, fit: Callable[[int, int], tuple[int, int]]) -> bytes:
    """An image file at the size that `fit` makes of its own; the same bytes where that changes nothing.

    Raises:
        ValueError: Pillow cannot read it.
        UsageError: `fit` refuses its size.
    """
    from PIL import Image, ImageOps
    from PIL.Image import Resampling

    try:
        with Image.open(io.BytesIO(data)) as opened:
            upright = ImageOps.exif_transpose(opened)  # a new file carries no orientation: it is applied here
            size = fit(upright.width, upright.height)
            if size == opened.size == upright.size and media_type(data) is not None:
                return data
            # HAMMING keeps small text about as sharp as BICUBIC at BILINEAR's cost (Pillow's handbook, "Filters").
            return png(_flat(upright).resize(size, Resampling.HAMMING))
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:  # Pillow's for broken files and bombs
        raise ValueError(f"it cannot be read as an image ({error})") from error


def _flat(image: "Image") -> "Image":
    """RGB; what is transparent becomes white, as in vLLM's own reader."""
    from PIL import Image

    if not image.has_transparency_data:
        return image.convert("RGB")
    layered = image.convert("RGBA")
    ground = Image.new("RGBA", layered.size, "white")
    return Image.alpha_composite(ground, layered).convert("RGB")
