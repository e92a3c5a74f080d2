"""Image files become data: URLs."""

import base64
import io

import pytest
from PIL import Image

from serverctl.load.images import data_url, media_type


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
