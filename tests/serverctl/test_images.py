"""Images get the size that the server's processor keeps, and stay the image they were."""

import base64
import io
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from foundation.errors import UsageError
from serverctl.images import (
    MAX_ASPECT_RATIO,
    ImageRule,
    data_url,
    family_names,
    family_of,
    family_rule,
    fitted,
    media_type,
    png,
    smart_resize,
)

Q3 = ImageRule(32, 65_536, 16_777_216)
Q25 = ImageRule(28, 3_136, 12_845_056)
PROPERTY = settings(deadline=None, max_examples=300)

rules = st.sampled_from(
    [Q3, Q25, ImageRule(32, 65_536, 512_000), ImageRule(32, 65_536, 6_553_600), ImageRule(28, 3_136, 100_000)]
)
sides = st.integers(1, 9000)


# Sizes and tokens as recorded for the reference processor; a live server agreed with 2040, 1980 and 880.
@pytest.mark.parametrize(
    ("size", "rule", "expected", "tokens"),
    [
        ((1920, 1080), Q25, (1932, 1092), 2691),
        ((1920, 1080), Q3, (1920, 1088), 2040),
        ((2560, 1440), Q25, (2548, 1428), 4641),
        ((2560, 1440), Q3, (2560, 1440), 3600),
        ((3840, 2160), Q25, (3836, 2156), 10549),
        ((3840, 2160), Q3, (3840, 2176), 8160),
        ((1366, 768), Q25, (1372, 756), 1323),
        ((1366, 768), Q3, (1376, 768), 1032),
        ((1920, 1080), ImageRule(32, 65_536, 512_000), (928, 512), 464),
        ((3840, 2160), ImageRule(32, 65_536, 2_097_152), (1920, 1056), 1980),
    ],
)
def test_sizes_are_those_of_the_reference_processor(
    size: tuple[int, int], rule: ImageRule, expected: tuple[int, int], tokens: int
) -> None:
    width, height = rule.fit(*size)
    assert (width, height) == expected
    assert width * height // rule.factor**2 == tokens


def test_half_a_step_goes_to_the_even_neighbour() -> None:
    assert Q3.fit(1040, 1008) == (1024, 1024)  # 32.5 and 31.5 steps


def fit(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    assume(max(width, height) <= MAX_ASPECT_RATIO * min(width, height))
    return rule.fit(width, height)


@PROPERTY
@given(rules, sides, sides)
def test_both_sides_are_whole_steps(rule: ImageRule, width: int, height: int) -> None:
    fitted_width, fitted_height = fit(rule, width, height)
    assert fitted_width % rule.factor == 0 == fitted_height % rule.factor
    assert min(fitted_width, fitted_height) >= rule.factor


@PROPERTY
@given(rules, sides, sides)
def test_the_area_keeps_to_the_limits_unless_the_image_is_a_strip(rule: ImageRule, width: int, height: int) -> None:
    fitted_width, fitted_height = fit(rule, width, height)
    assert fitted_width * fitted_height >= rule.min_pixels
    if rule.factor not in (fitted_width, fitted_height):
        assert fitted_width * fitted_height <= rule.max_pixels


@PROPERTY
@given(rules, sides, sides)
def test_turning_the_image_turns_the_result(rule: ImageRule, width: int, height: int) -> None:
    fitted_width, fitted_height = fit(rule, width, height)
    assert rule.fit(height, width) == (fitted_height, fitted_width)


@PROPERTY
@given(rules, sides, sides)
def test_a_fitted_size_stays_as_it_is(rule: ImageRule, width: int, height: int) -> None:
    once = fit(rule, width, height)
    assume(rule.min_pixels <= once[0] * once[1] <= rule.max_pixels)
    assert fit(rule, *once) == once


@pytest.mark.parametrize("size", [(201, 1), (1, 201), (0, 5), (5, -1)])
def test_what_no_processor_takes_is_refused_with_a_remedy(size: tuple[int, int]) -> None:
    with pytest.raises(UsageError) as raised:
        smart_resize(*size, 32, 65_536, 16_777_216)
    assert raised.value.remedy


def test_every_family_has_a_rule_and_a_budget_only_lowers_it() -> None:
    assert {"mai-ui", "qwen2.5-vl", "qwen3-vl"} <= set(family_names())
    assert family_rule("qwen3-vl") == Q3
    assert family_rule("qwen2.5-vl") == Q25
    assert family_rule("mai-ui", 1_000_000).max_pixels == 1_000_000
    assert family_rule("mai-ui", 10**9) == Q3


def test_a_budget_below_the_smallest_image_and_an_unknown_family_are_refused() -> None:
    with pytest.raises(UsageError, match="65536"):
        family_rule("mai-ui", 65_535)
    with pytest.raises(UsageError, match="mai-ui"):
        family_rule("gpt")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("MAI-UI-8B", "mai-ui"),
        ("Tongyi-MAI/MAI-UI-2B", "mai-ui"),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3-vl"),
        ("Qwen2.5-VL-7B", "qwen2.5-vl"),
        ("some-model", None),
    ],
)
def test_the_family_is_known_by_the_models_name(model: str, family: str | None) -> None:
    assert family_of(model) == family


def image_file(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_an_image_file_says_what_it_is_and_becomes_a_data_url(image_format: str) -> None:
    data = image_file(Image.new("RGB", (8, 8)), image_format)
    assert media_type(data) == f"image/{image_format.lower()}"
    head, _, body = data_url(data).partition(",")
    assert head == f"data:image/{image_format.lower()};base64"
    assert base64.b64decode(body) == data


def test_what_is_no_image_is_no_data_url() -> None:
    assert media_type(b"<html>") is None
    with pytest.raises(ValueError, match="no PNG"):
        data_url(b"<html>")


def test_an_image_of_the_right_size_is_sent_as_it_is() -> None:
    data = image_file(Image.new("RGB", (256, 256), (1, 2, 3)), "PNG")
    assert fitted(data, Q3.fit) is data


def test_an_image_is_made_to_fit() -> None:
    data = image_file(Image.new("RGB", (300, 200), (10, 200, 30)), "JPEG", quality=95)
    with Image.open(io.BytesIO(fitted(data, Q3.fit))) as image:
        assert image.size == Q3.fit(300, 200)
        assert image.mode == "RGB"


def test_a_photograph_that_lies_on_its_side_is_stood_up() -> None:
    lying = Image.new("RGB", (320, 256), (0, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn right
    data = image_file(lying, "JPEG", exif=exif.tobytes())
    with Image.open(io.BytesIO(fitted(data, lambda width, height: (width, height)))) as image:
        assert image.size == (256, 320)


def test_what_is_transparent_becomes_white() -> None:
    data = image_file(Image.new("RGBA", (100, 100), (0, 0, 0, 0)), "PNG")
    with Image.open(io.BytesIO(fitted(data, Q3.fit))) as image:
        assert image.convert("RGB").getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize("data", [b"", b"no image", png(Image.new("RGB", (300, 300)))[:60]])
def test_a_broken_image_is_an_error_with_a_reason(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(data, Q3.fit)
