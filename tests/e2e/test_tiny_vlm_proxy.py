"""A model that really sees, behind a server that silently makes images smaller."""

import json
from collections.abc import Iterator

import pytest
from stubs.coloured_marks import clicks, marked
from stubs.endpoint import FakeEndpoint
from stubs.other_tongue import computer_use_pixels, in_other_words
from stubs.resizing_proxy import ResizingProxy

from agent.cli import main
from agent.core.geometry import DesktopPoint, Region, Size
from foundation.families import image_rule

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(200)]

IMAGES = (101, 103, 104, 106, 107)
BUDGET = 400_000


def test_points_on_a_relative_grid_are_right_behind_a_server_that_resizes(tiny_vlm):
    screens = [marked(Size(1000, 800), None, image) for image in IMAGES]
    with ResizingProxy(tiny_vlm.url, BUDGET) as proxy:
        found = clicks(proxy.url, tiny_vlm.name, [(screen, None) for screen in screens])
    hits = [screen.holds(one.point) for screen, one in zip(screens, found, strict=True)]
    assert sum(hits) >= 4, [(screen.mark, one.point) for screen, one in zip(screens, found, strict=True)]
    assert {one.sent for one in found} == {Size(992, 800)}
    assert set(proxy.resized) == {(Size(992, 800), Size(704, 567))}


def test_the_command_line_finds_a_mark_through_such_a_server(tiny_vlm, tmp_path, capsys):
    screen = marked(Size(900, 700), None, 101)
    screen.frame.image.save(tmp_path / "screen.png")
    with ResizingProxy(tiny_vlm.url, BUDGET) as proxy:
        asked = ["--endpoint", proxy.url, "--image", str(tmp_path / "screen.png"), screen.ask]
        assert main(["act", "--grounding", "--json", *asked]) == 0
    x, y = json.loads(capsys.readouterr().out)["action"]["point"]
    assert screen.mark.left <= x < screen.mark.left + screen.mark.width
    assert screen.mark.top <= y < screen.mark.top + screen.mark.height


@pytest.fixture
def counting_pixels(tiny_vlm) -> Iterator[FakeEndpoint]:
    """A model that really sees and answers in pixels of the image that it gets."""
    behaviour = in_other_words(tiny_vlm, computer_use_pixels, image_rule("qwen2.5-vl"))
    with FakeEndpoint(lambda _: behaviour, models=[{"id": "Qwen2.5-VL-tiny"}]) as endpoint:
        yield endpoint


def test_pixels_of_the_image_as_sent_are_right_where_nothing_is_resized(counting_pixels):
    screens = [marked(Size(1000, 800), Region(-800, 0, 800, 640), image) for image in IMAGES]
    found = clicks(counting_pixels.url, "Qwen2.5-VL-tiny", [(screen, None) for screen in screens])
    hits = [screen.holds(one.point) for screen, one in zip(screens, found, strict=True)]
    assert sum(hits) >= 4, [(screen.mark, one.point) for screen, one in zip(screens, found, strict=True)]
    assert {one.sent for one in found} == {Size(1008, 812)}


def test_pixels_miss_behind_a_server_that_resizes_and_only_by_the_factor_of_which_nobody_told(counting_pixels):
    screens = [marked(Size(1000, 800), None, image) for image in IMAGES]
    with ResizingProxy(counting_pixels.url, 400_000) as proxy:
        found = clicks(proxy.url, "Qwen2.5-VL-tiny", [(screen, None) for screen in screens])
    [(sent, passed_on)] = set(proxy.resized)
    kept = Size(*image_rule("qwen2.5-vl").fit(passed_on.width, passed_on.height))
    across, down = sent.width / kept.width, sent.height / kept.height
    assert across > 1.3
    hits = [screen.holds(one.point) for screen, one in zip(screens, found, strict=True)]
    mended = [
        one.point is not None and screen.holds(DesktopPoint(one.point.x * across, one.point.y * down))
        for screen, one in zip(screens, found, strict=True)
    ]
    assert sum(hits) <= 1 and sum(mended) >= 4, [
        (screen.mark, one.point) for screen, one in zip(screens, found, strict=True)
    ]
