import io

from PIL import Image

from agent.core.actions import Click, Drag, PressKeys
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.screen.drawing import target_crop
from agent.screen.encode import encode

# A HiDPI monitor left of the primary one: captured at scale 2, sent at half of that.
VIEWPORT = Viewport(Region(-1280, 0, 1280, 800), Size(2560, 1600))


def crop(action):
    data = target_crop(encode(Image.new("RGB", (1280, 800), "white"), "png"), VIEWPORT, action)
    return None if data is None else Image.open(io.BytesIO(data)).convert("RGB")


def test_the_target_is_marked_where_it_lies_in_the_crop():
    image = crop(Click(DesktopPoint(-640, 400)))
    assert image.size == (360, 240)
    assert image.getpixel((180 + 9, 120)) == (255, 0, 80)
    assert image.getpixel((180, 120)) == (255, 255, 255)


def test_a_target_at_the_edge_stays_inside_the_crop():
    image = crop(Click(DesktopPoint(-1279, 1)))
    assert image.size == (360, 240)
    assert (255, 0, 80) in {image.getpixel((x, y)) for x in range(14) for y in range(14)}


def test_a_drag_shows_its_end_and_the_way_there():
    image = crop(Drag(DesktopPoint(-700, 400), DesktopPoint(-640, 400)))
    assert image.getpixel((150, 120)) == (255, 0, 80)


def test_actions_without_a_point_have_no_crop():
    assert crop(PressKeys(("enter",))) is None
