"""What is sent decodes to what was seen."""

import base64
import io
from typing import cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from agent.core.geometry import Size
from agent.screen.encode import EncodedImage, ImageFormat, encode

PROPERTY = settings(deadline=None, max_examples=60)


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def decoded(image: EncodedImage) -> Image.Image:
    return Image.open(io.BytesIO(image.data))


@PROPERTY
@given(st.integers(1, 67), st.integers(1, 67), st.integers(0, 2**32 - 1))
def test_a_png_holds_exactly_the_pixels_that_were_given(width: int, height: int, seed: int) -> None:
    image = noise(width, height, seed)
    sent = encode(image, "png")
    back = decoded(sent)
    assert (back.format, back.mode, back.size) == ("PNG", "RGB", (width, height))
    assert back.tobytes() == image.tobytes()
    assert sent.size == Size(width, height)


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (1279, 719), (1920, 1088)])
def test_a_png_of_any_shape_passes_the_readers_checks(size: tuple[int, int]) -> None:
    image = noise(*size)
    decoded(encode(image, "png")).verify()  # chunk checksums
    assert decoded(encode(image, "png")).tobytes() == image.tobytes()


def test_a_png_of_another_mode_is_written_in_colour() -> None:
    grey = Image.new("L", (5, 3), 77)
    assert decoded(encode(grey, "png")).getpixel((4, 2)) == (77, 77, 77)


@pytest.mark.parametrize("image_format", ["jpeg", "webp"])
@pytest.mark.parametrize("size", [(1, 1), (33, 17), (640, 481)])
def test_the_lossy_formats_keep_size_and_colour(image_format: ImageFormat, size: tuple[int, int]) -> None:
    sent = encode(Image.new("RGB", size, (200, 40, 60)), image_format, quality=90)
    back = decoded(sent)
    assert (back.format, back.size, sent.size) == (image_format.upper(), size, Size(*size))
    colour = cast("tuple[int, int, int]", back.convert("RGB").getpixel((size[0] // 2, size[1] // 2)))
    assert max(abs(got - want) for got, want in zip(colour, (200, 40, 60), strict=True)) <= 6


def test_red_text_in_a_jpeg_keeps_its_colour_at_the_edge() -> None:
    image = Image.new("RGB", (32, 32), "white")
    image.paste((255, 0, 0), (15, 0, 16, 32))  # a line one pixel wide
    red, green, blue = cast("tuple[int, int, int]", decoded(encode(image, "jpeg", 90)).getpixel((15, 16)))
    assert red > 220 and green < 60 and blue < 60


def test_lower_quality_is_smaller() -> None:
    image = noise(200, 100)
    assert len(encode(image, "jpeg", 30).data) < len(encode(image, "jpeg", 90).data)
    assert len(encode(image, "webp", 30).data) < len(encode(image, "webp", 90).data)


def test_the_digest_names_the_picture() -> None:
    image = noise(50, 40)
    other = image.copy()
    other.putpixel((49, 39), (1, 2, 3))
    digests = {encode(picture, "png").digest for picture in (image, other, noise(40, 50))}
    assert len(digests) == 3
    assert encode(image.copy(), "png").digest in digests
    assert all(len(digest) == 32 for digest in digests)


@pytest.mark.parametrize("image_format", get_args(ImageFormat))
def test_the_data_url_carries_exactly_the_bytes(image_format: ImageFormat) -> None:
    sent = encode(noise(9, 7), image_format)
    head, _, body = sent.data_url.partition(",")
    assert head == f"data:image/{image_format};base64"
    assert base64.b64decode(body, validate=True) == sent.data
