"""Pictures that others made are opened as they are meant, or refused."""

import io

import pytest
from PIL import Image

from agent.screen.encode import open_foreign


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
