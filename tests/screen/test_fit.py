"""Captured images are made the size at which they are sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    pixels = resize(image, size)
    assert pixels.shape == (size.height, size.width, 3)
    assert (pixels == (10, 200, 30)).all()


def test_an_image_of_the_right_size_keeps_its_pixels() -> None:
    image = noise(64, 48)
    assert (resize(image, Size(64, 48)) == np.asarray(image)).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(2, 300), st.floats(1.0, 1.5), st.integers(0, 99))
def test_some_more_rows_are_pillows_linear_interpolation(width: int, before: int, factor: float, seed: int) -> None:
    image, after = noise(width, before, seed), round(before * factor)
    expected = np.asarray(image.resize((width, after), Image.Resampling.BILINEAR)).astype(int)
    assert abs(resize(image, Size(width, after)).astype(int) - expected).max() <= 2


@pytest.mark.parametrize(("before", "after"), [(1080, 1088), (1080, 1064), (1050, 1056), (900, 896)])
def test_screens_of_real_sizes_are_interpolated_in_stripes_without_a_seam(before: int, after: int) -> None:
    slope = np.linspace(0, 255, before).astype(np.uint8)  # from black at the top to white at the bottom
    image = Image.fromarray(np.repeat(np.repeat(slope[:, None, None], 1920, 1), 3, 2))
    pixels = resize(image, Size(1920, after)).astype(int)
    assert (pixels == pixels[:, :1, :1]).all()
    rows = pixels[:, 0, 0]
    assert (rows[0], rows[-1]) == (0, 255)
    assert set(np.diff(rows)) <= {0, 1}
