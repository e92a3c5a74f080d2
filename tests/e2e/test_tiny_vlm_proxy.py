"""A model that really sees, behind a server that silently makes images smaller."""

import json

import pytest
from PIL import Image, ImageDraw
from stubs.resizing_proxy import ResizingProxy

from agent.cli import main
from agent.geometry import Size

pytestmark = [pytest.mark.real_vllm, pytest.mark.timeout(200)]


def test_a_point_on_a_relative_grid_is_right_behind_a_server_that_resizes(tiny_vlm, capsys, tmp_path):
    image = Image.new("RGB", (900, 700), (70, 90, 110))
    draw = ImageDraw.Draw(image)
    draw.rectangle((600, 450, 680, 530), fill=(222, 30, 32))
    draw.ellipse((150, 120, 230, 200), fill=(30, 80, 224))
    image.save(tmp_path / "screen.png")
    with ResizingProxy(tiny_vlm.url, 400_000) as proxy:
        asked = ["--endpoint", proxy.url, "--image", str(tmp_path / "screen.png"), "click the red square"]
        assert main(["act", "--grounding", "--json", *asked]) == 0
    x, y = json.loads(capsys.readouterr().out)["action"]["point"]
    assert 600 <= x <= 680 and 450 <= y <= 530
    assert proxy.resized == [(Size(896, 704), Size(713, 560))]
