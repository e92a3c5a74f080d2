"""Captured images are made the size at which they are sent."""

import pytest
from PIL import Image

from agent.core.geometry import Size
from agent.screen.encode import fit, resize
from foundation.errors import UsageError
from foundation.families import image_rule


def test_a_size_is_fitted_by_the_familys_rule() -> None:
    assert fit(image_rule("qwen3-vl"), Size.parse("1920x1080")) == Size(1920, 1088)
    with pytest.raises(UsageError, match="200 times"):
        fit(image_rule("qwen3-vl"), Size(201, 1))


def test_resizing_gives_the_size_asked_for_and_leaves_a_fitting_image_alone() -> None:
    image = Image.new("RGB", (64, 48), (10, 200, 30))
    assert resize(image, Size(64, 48)) is image
    for to in (Size(96, 64), Size(32, 32), Size(64, 47)):
        resized = resize(image, to)
        assert resized.size == (to.width, to.height)
        assert resized.getpixel((5, 5)) == (10, 200, 30)
