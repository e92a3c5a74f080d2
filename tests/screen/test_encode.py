"""Images as they are sent: size, encoding, and pictures that others made."""

import base64
import io
from typing import cast, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from agent.core.geometry import Size
from agent.screen.encode import EncodedImage, ImageFormat, encode, fit, open_foreign, resize
from foundation.errors import UsageError
from foundation.families import image_rule

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


def test_a_size_is_fitted_by_the_familys_rule() -> None:
    assert fit(image_rule("qwen3-vl"), Size.parse("1920x1080")) == Size(1920, 1088)
    with pytest.raises(UsageError, match="200 times"):
        fit(image_rule("qwen3-vl"), Size(201, 1))


@pytest.mark.parametrize("to", ["64x48", "96x64", "32x32", "64x47", "65x48", "64x1"])
def test_resizing_gives_the_size_asked_for_and_keeps_the_colour(to: str) -> None:
    image, size = Image.new("RGB", (64, 48), (10, 200, 30)), Size.parse(to)
    pixels = resize(image, size)
    assert pixels.shape == (size.height, size.width, 3)
    assert (pixels == (10, 200, 30)).all()


def test_an_image_of_the_right_size_keeps_its_pixels() -> None:
    image = noise(64, 48)
    assert (resize(image, Size(64, 48)) == np.asarray(image)).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(2, 300), st.floats(1.0, 1.5), st.integers(0, 99))
def test_some_more_rows_are_pillows_linear_interpolation(width: int, before: int, factor: float, seed: int) -> None:
    image, after = noise(width, before, seed), round(before * factor)
    expected = np.asarray(image.resize((width, after), Image.Resampling.BILINEAR)).astype(int)
    assert abs(resize(image, Size(width, after)).astype(int) - expected).max() <= 2


@pytest.mark.parametrize(("before", "after"), [(1080, 1088), (1080, 1064), (1050, 1056), (900, 896)])
def test_screens_of_real_sizes_are_interpolated_in_stripes_without_a_seam(before: int, after: int) -> None:
    slope = np.linspace(0, 255, before).astype(np.uint8)  # from black at the top to white at the bottom
    image = Image.fromarray(np.repeat(np.repeat(slope[:, None, None], 1920, 1), 3, 2))
    pixels = resize(image, Size(1920, after)).astype(int)
    assert (pixels == pixels[:, :1, :1]).all()
    rows = pixels[:, 0, 0]
    assert (rows[0], rows[-1]) == (0, 255)
    assert set(np.diff(rows)) <= {0, 1}


def saved(image: Image.Image, form: str, **more: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **more)
    return file.getvalue()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "RGB", "L", "1"])
def test_a_picture_becomes_rgb_and_what_is_clear_white(mode: str) -> None:
    clear = {"RGBA": (0, 0, 0, 0), "LA": (0, 0), "P": 0}
    image = Image.new(mode, (4, 3), clear.get(mode, 1 if mode == "1" else "white"))
    opened = open_foreign(saved(image, "PNG", **({"transparency": 0} if mode == "P" else {})), ("PNG",))
    assert (opened.mode, opened.size) == ("RGB", (4, 3))
    assert opened.getpixel((0, 0)) == (255, 255, 255)


def test_a_photograph_is_turned_as_its_camera_says() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter to the right
    assert open_foreign(saved(Image.new("RGB", (40, 30)), "JPEG", exif=exif), ("JPEG",)).size == (30, 40)


BROKEN = saved(Image.new("RGB", (40, 30)), "PNG")
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no picture",
        BROKEN[:60],
        BROKEN.replace(b"IEND", b"iCCP"),
        POSTSCRIPT,
    ],
)
def test_what_is_broken_or_in_another_format_is_refused_in_one_way(data: bytes) -> None:
    with pytest.raises(OSError, match=r"\S"):
        open_foreign(data, ("PNG", "JPEG", "WEBP"))


def test_a_picture_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(OSError, match="too large"):
        open_foreign(saved(Image.new("1", (10_000, 6_000)), "PNG"), ("PNG",))
