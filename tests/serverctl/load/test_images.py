"""Image files are made to fit, and stay the image they were."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from foundation.images import ImageRule
from serverctl.load.images import data_url, fitted, media_type, png

Q3 = ImageRule(32, 65_536, 16_777_216)


def image_file(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_an_image_file_says_what_it_is_and_becomes_a_data_url(image_format: str) -> None:
    data = image_file(Image.new("RGB", (8, 8)), image_format)
    assert media_type(data) == f"image/{image_format.lower()}"
    head, _, body = data_url(data).partition(",")
    assert head == f"data:image/{image_format.lower()};base64"
    assert base64.b64decode(body) == data


def test_what_is_no_image_is_no_data_url() -> None:
    assert media_type(b"<html>") is None
    with pytest.raises(ValueError, match="no PNG"):
        data_url(b"<html>")


def test_an_image_of_the_right_size_is_sent_as_it_is() -> None:
    data = image_file(Image.new("RGB", (256, 256), (1, 2, 3)), "PNG")
    assert fitted(data, Q3.fit) is data


def test_an_image_is_made_to_fit() -> None:
    data = image_file(Image.new("RGB", (300, 200), (10, 200, 30)), "JPEG", quality=95)
    with Image.open(io.BytesIO(fitted(data, Q3.fit))) as image:
        assert image.size == Q3.fit(300, 200)
        assert image.mode == "RGB"


def test_a_photograph_that_lies_on_its_side_is_stood_up() -> None:
    lying = Image.new("RGB", (320, 256), (0, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn right
    data = image_file(lying, "JPEG", exif=exif.tobytes())
    with Image.open(io.BytesIO(fitted(data, lambda width, height: (width, height)))) as image:
        assert image.size == (256, 320)


def test_what_is_transparent_becomes_white() -> None:
    data = image_file(Image.new("RGBA", (100, 100), (0, 0, 0, 0)), "PNG")
    with Image.open(io.BytesIO(fitted(data, Q3.fit))) as image:
        assert image.convert("RGB").getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize("data", [b"", b"no image", png(Image.new("RGB", (300, 300)))[:60]])
def test_a_broken_image_is_an_error_with_a_reason(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(data, Q3.fit)
