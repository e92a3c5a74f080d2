"""Captured images are made the size at which they are sent."""

import numpy as np
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


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.mark.parametrize("to", ["64x48", "96x64", "32x32", "64x47", "65x48", "64x1"])
def test_resizing_gives_the_size_asked_for_and_keeps_the_colour(to: str) -> None:
    image, size = Image.new("RGB", (64, 48), (10, 200, 30)), Size.parse(to)
    resized = resize(image, size)
    assert resized.size == (size.width, size.height)
    assert (np.asarray(resized) == (10, 200, 30)).all()


def test_an_image_of_the_right_size_keeps_its_pixels() -> None:
    image = noise(64, 48)
    assert resize(image, Size(64, 48)).tobytes() == image.tobytes()
