"""Small pictures are found where they are shown, and nowhere else."""

import base64
import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps
from PIL.PngImagePlugin import PngInfo

from agent.core.geometry import DesktopPoint, Region, Size
from agent.screen.picture_search import cut_out, places_of, read_picture

SIZE = (320, 240)
WHOLE = Size(*SIZE)


def desktop(seed=1, at=(150, 100), gray=128):
    """A plain desktop with other icons of random lines, and one at a place."""
    image = Image.new("RGB", SIZE, (gray,) * 3)
    for number, place in enumerate([at, (40, 40), (280, 40), (40, 200), (280, 200)]):
        lines = random.Random(seed * 100 + number)
        points = [(place[0] + lines.randint(-14, 14), place[1] + lines.randint(-14, 14)) for _ in range(6)]
        ImageDraw.Draw(image).line(points, "black", 2)
    return image


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(1, 50), x=st.integers(90, 230), y=st.integers(90, 150), gray=st.integers(90, 220),
)  # fmt: skip
def test_a_picture_is_found_where_its_thing_went_on_a_background_of_another_brightness(seed, x, y, gray):
    picture = cut_out(desktop(seed), WHOLE, DesktopPoint(150, 100), Region(134, 84, 32, 32))
    [place] = places_of(picture, desktop(seed, (x, y), gray), WHOLE)
    assert (abs(place.middle.x - x), abs(place.middle.y - y)) <= (1, 1)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(1, 50), shrunk=st.sampled_from([(0.5, 0.5), (0.7, 0.72)]), larger=st.sampled_from([1, 1.5, 2])
)  # fmt: skip
def test_a_picture_of_a_shrunk_screenshot_is_found_on_a_screen_of_another_scale(seed, shrunk, larger):
    saw = desktop(seed).resize([round(side * by) for side, by in zip(SIZE, shrunk, strict=True)])
    picture = cut_out(saw, WHOLE, DesktopPoint(150, 100), None)
    now = desktop(seed).resize([round(side * larger) for side in SIZE])
    [place] = places_of(picture, now, Size(*now.size))
    assert max(abs(place.middle.x / larger - 150), abs(place.middle.y / larger - 100)) <= 2


def test_a_sign_that_a_dark_theme_draws_in_white_is_the_same():
    picture = cut_out(desktop(), WHOLE, DesktopPoint(150, 100), None)
    [place] = places_of(picture, ImageOps.invert(desktop(at=(200, 120))), WHOLE)
    assert (abs(place.middle.x - 200), abs(place.middle.y - 120)) <= (1, 1)


def test_another_icon_is_not_found():
    assert places_of(cut_out(desktop(1), WHOLE, DesktopPoint(150, 100), None), desktop(2), WHOLE) == []


@pytest.mark.parametrize(("colour", "places"), [("red", 1), ("green", 0), ("gray", 0)])
def test_a_sign_of_another_colour_is_another_thing(colour, places):
    def sign(fill):
        image = Image.new("RGB", SIZE, "white")
        ImageDraw.Draw(image).ellipse((140, 90, 160, 110), fill, "black", 2)
        return image

    picture = cut_out(sign("red"), WHOLE, DesktopPoint(150, 100), None)
    assert len(places_of(picture, sign(colour), WHOLE)) == places


def test_what_shows_nothing_is_no_picture():
    assert cut_out(desktop(), WHOLE, DesktopPoint(150, 180), None) == ""
    assert cut_out(desktop(), WHOLE, DesktopPoint(1, 100), None) == ""


def encoded(image, kind="png", **more):
    file = io.BytesIO()
    image.save(file, kind, **more)
    return base64.b64encode(file.getvalue()).decode()


def scaled(text):
    told = PngInfo()
    told.add_text("scale", text)
    return told


RINGED = desktop().crop((130, 80, 170, 120))


NONE = {
    "no base64": "%%%",
    "no image": base64.b64encode(b"no picture").decode(),
    "too large": encoded(Image.new("L", (500, 20))),
    "another format": encoded(Image.new("L", (20, 20)), "bmp"),
    "plain": encoded(Image.new("L", (20, 20))),
    "far too small a scale": encoded(RINGED, pnginfo=scaled("0.0001 1.0000")),
    "no scale": encoded(RINGED, pnginfo=scaled("1 x")),
}


@pytest.mark.parametrize("text", NONE.values(), ids=NONE)
def test_what_is_no_small_picture_is_a_clear_error(text):
    with pytest.raises(ValueError, match="picture"):
        read_picture(text)
