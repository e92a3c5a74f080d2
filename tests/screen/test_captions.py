"""What is written at a point: on buttons of every colour, beside boxes, in prose; drawn here, so that it is known."""

import pytest
from PIL import Image, ImageDraw, ImageFont

from agent.screen.captions import caption_at
from agent.screen.ocr import Ocr

FONT = ImageFont.load_default(14)
BUTTON = (800, 500, 940, 534)
CENTER = (870, 517)


@pytest.fixture(scope="module")
def ocr() -> Ocr:
    return Ocr("The test")


def page(colour: str = "#fafafa") -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (1920, 1080), colour)
    return image, ImageDraw.Draw(image)


def write(draw: ImageDraw.ImageDraw, text: str, middle: tuple[int, int], colour: str) -> None:
    draw.text(middle, text, fill=colour, font=FONT, anchor="mm")


@pytest.mark.parametrize("point", [CENTER, (804, 505), (935, 530), (812, 517)])
@pytest.mark.parametrize(
    ("ground", "text", "around"),
    [
        ("#e1e1e1", "#000000", "#fafafa"),
        ("#1e5ac8", "#ffffff", "#fafafa"),
        ("#c81e1e", "#ffffff", "#282828"),
        ("#3c3c3c", "#e6e6e6", "#282828"),
        ("#ffd814", "#0f1111", "#ffffff"),
    ],
)
def test_the_caption_of_a_button_is_read_wherever_it_is_clicked(
    ocr: Ocr, ground: str, text: str, around: str, point: tuple[int, int]
) -> None:
    image, draw = page(around)
    write(draw, "Your basket contains three items", (860, 470), text if around == "#282828" else "#000000")
    draw.rectangle(BUTTON, fill=ground)
    write(draw, "Place order", CENTER, text)
    draw.rectangle((960, 500, 1100, 534), fill=ground)
    write(draw, "Cancel", (1030, 517), text)
    assert caption_at(image, *point, ocr).text == "Place order"


@pytest.mark.parametrize(("ground", "outline"), [("#e1e1e1", None), ("#fafafa", "#555555"), ("#1e5ac8", None)])
def test_the_caption_in_the_middle_of_a_small_field_is_drawn_as_a_button(
    ocr: Ocr, ground: str, outline: str | None
) -> None:
    image, draw = page()
    draw.rectangle(BUTTON, fill=ground, outline=outline)
    write(draw, "Place order", CENTER, "#ffffff" if ground == "#1e5ac8" else "#000000")
    assert caption_at(image, *CENTER, ocr).framed


def test_text_on_the_page_a_wide_row_and_what_stands_at_the_left_of_a_field_are_not(ocr: Ocr) -> None:
    image, draw = page()
    write(draw, "Place order", CENTER, "#000000")
    assert not caption_at(image, *CENTER, ocr).framed
    draw.rectangle((300, 600, 1700, 640), fill="#1e5ac8")
    write(draw, "A row of a list", (870, 620), "#ffffff")
    assert not caption_at(image, 870, 620, ocr).framed
    draw.rectangle((700, 700, 1060, 734), fill="#ffffff", outline="#555555")
    draw.text((710, 717), "Search products", fill="#777777", font=FONT, anchor="lm")
    assert not caption_at(image, 760, 717, ocr).framed


def test_a_caption_on_a_colour_gradient_is_read(ocr: Ocr) -> None:
    image, draw = page()
    for x in range(BUTTON[0], BUTTON[2]):
        share = (x - BUTTON[0]) / (BUTTON[2] - BUTTON[0])
        draw.line((x, BUTTON[1], x, BUTTON[3]), fill=(round(255 - 175 * share), 0, round(170 + 85 * share)))
    write(draw, "Install", CENTER, "#ffffff")
    for x in (812, 870, 930):
        assert caption_at(image, x, 517, ocr).text == "Install"


def test_a_box_is_known_by_the_words_beside_it(ocr: Ocr) -> None:
    image, draw = page()
    draw.rectangle((800, 510, 814, 524), outline="#000000")
    draw.text((822, 508), "I agree to the terms", fill="#000000", font=FONT)
    assert caption_at(image, 807, 517, ocr).text.endswith("agree to the terms")


def test_of_a_long_line_only_the_words_around_the_point_are_meant(ocr: Ocr) -> None:
    image, draw = page()
    line = "If you do not want to read this any more then delete the whole letter and write another one"
    draw.text((600, 508), line, fill="#000000", font=FONT)
    assert "delete" not in caption_at(image, 620, 517, ocr).text
    assert "If you" in caption_at(image, 620, 517, ocr).text


def test_where_nothing_is_written_nothing_is_read(ocr: Ocr) -> None:
    image, draw = page()
    write(draw, "Delete", (870, 200), "#000000")
    assert caption_at(image, 870, 517, ocr).text == ""


@pytest.mark.parametrize("point", [(0, 0), (1919, 1079), (0, 1079), (1918.6, 0.4)])
def test_corners_of_the_screen_are_points_like_others(ocr: Ocr, point: tuple[float, float]) -> None:
    assert caption_at(page()[0], *point, ocr).text == ""


def test_an_image_smaller_than_what_is_looked_at_is_read_whole(ocr: Ocr) -> None:
    image = Image.new("RGB", (160, 50), "#ffffff")
    write(ImageDraw.Draw(image), "Delete", (80, 25), "#000000")
    assert caption_at(image, 80, 25, ocr).text == "Delete"


def test_on_a_screen_of_double_density_the_same_is_read(ocr: Ocr) -> None:
    image, draw = page()
    draw.rectangle((700, 500, 980, 568), fill="#1e5ac8")
    draw.text((840, 534), "Pay now", fill="#ffffff", font=ImageFont.load_default(28), anchor="mm")
    assert caption_at(image, 840, 534, ocr, scale=2.0).text == "Pay now"
