"""What counts as a screen that became darker."""

from PIL import Image, ImageDraw

from agent.literal.changes import became


def _page(background: int, pictures: int) -> Image.Image:
    image = Image.new("L", (1280, 800), 90)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 990, 670), fill=background)
    draw.rectangle((384, 416, 864, 672), fill=pictures)
    return image.convert("RGB")


def test_a_windows_theme_makes_it_darker_or_lighter() -> None:
    light, dark = _page(240, 235), _page(45, 50)
    assert became("darker", light, dark)
    assert not became("lighter", light, dark)
    assert became("lighter", dark, light)


def test_pictures_that_a_page_is_still_loading_do_not() -> None:
    assert not became("darker", _page(240, 231), _page(240, 148))
