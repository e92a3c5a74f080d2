"""A model that really sees, behind a server that silently makes images smaller."""

import json

import pytest
from stubs.coloured_marks import clicks, marked
from stubs.resizing_proxy import ResizingProxy

from agent.cli import main
from agent.geometry import Size

pytestmark = [pytest.mark.real_vllm, pytest.mark.timeout(200)]

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
