"""The size at which an image is sent equals what the servers' processor makes of it."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

from agent.geometry import Size
from agent.screen.fit import MAX_ASPECT_RATIO, ImageRule, resize
from foundation.errors import UsageError

Q3 = ImageRule(32, 65_536, 16_777_216)
Q25 = ImageRule(28, 3_136, 12_845_056)
PROPERTY = settings(deadline=None, max_examples=400)

rules = st.sampled_from([Q3, Q25, Q3.capped(512_000), Q3.capped(2_097_152), Q3.capped(6_553_600), Q25.capped(100_000)])
sides = st.integers(1, 9000)


@pytest.mark.parametrize(
    ("screen", "factor_28", "factor_32"),
    [
        ("1920x1080", "1932x1092", "1920x1088"),
        ("2560x1440", "2548x1428", "2560x1440"),
        ("3840x2160", "3836x2156", "3840x2176"),
        ("1366x768", "1372x756", "1376x768"),
    ],
)
def test_sizes_are_those_that_were_computed_with_the_reference(screen: str, factor_28: str, factor_32: str) -> None:
    size = Size.parse(screen)
    assert str(Q25.fit(size)) == factor_28
    assert str(Q3.fit(size)) == factor_32


# Tokens as recorded for the reference processor; a live server agreed with 2040, 1980 and 880.
@pytest.mark.parametrize(
    ("screen", "native", "at_512000", "at_1003520", "at_2097152", "at_6553600", "qwen25"),
    [
        ("1280x720", 880, 464, 880, 880, 880, 1196),
        ("1920x1080", 2040, 464, 943, 2040, 2040, 2691),
        ("2560x1440", 3600, 464, 943, 1980, 3600, 4641),
        ("3840x2160", 8160, 464, 943, 1980, 6360, 10549),
    ],
)
def test_tokens_are_those_that_were_recorded(
    screen: str, native: int, at_512000: int, at_1003520: int, at_2097152: int, at_6553600: int, qwen25: int
) -> None:
    size = Size.parse(screen)
    budgets = {None: native, 512_000: at_512000, 1_003_520: at_1003520, 2_097_152: at_2097152, 6_553_600: at_6553600}
    for budget, tokens in budgets.items():
        rule = Q3.capped(budget)
        assert rule.tokens(rule.fit(size)) == tokens
    assert Q25.tokens(Q25.fit(size)) == qwen25


def test_half_a_step_goes_to_the_even_neighbour_as_in_the_processor() -> None:
    assert Q3.fit(Size(1040, 1008)) == Size(1024, 1024)  # 32.5 and 31.5 steps


def fits(rule: ImageRule, width: int, height: int) -> Size:
    assume(max(width, height) <= MAX_ASPECT_RATIO * min(width, height))
    return rule.fit(Size(width, height))


@PROPERTY
@given(rules, sides, sides)
def test_both_sides_are_whole_steps_and_the_tokens_are_their_number(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assert sent.width % rule.factor == 0 == sent.height % rule.factor
    assert rule.tokens(sent) == (sent.width // rule.factor) * (sent.height // rule.factor)


@PROPERTY
@given(rules, sides, sides)
def test_the_area_keeps_to_the_budget_unless_the_image_is_a_strip(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assert sent.area >= rule.min_pixels
    if rule.factor not in (sent.width, sent.height):
        assert sent.area <= max(rule.max_pixels, rule.min_pixels)


@PROPERTY
@given(rules, st.integers(200, 9000), st.integers(200, 9000))
def test_the_shape_is_kept_to_a_step(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    scale = sent.width / width
    assert abs(sent.height - height * scale) <= rule.factor * (1 + max(width / height, height / width))


@PROPERTY
@given(rules, sides, sides)
def test_a_fitted_image_is_not_resized_again(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assume(rule.min_pixels <= sent.area <= rule.max_pixels)
    assert fits(rule, sent.width, sent.height) == sent  # but for a strip that rounding made longer than is taken


@PROPERTY
@given(rules, sides, sides)
def test_turning_the_image_turns_the_result(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assert rule.fit(Size(height, width)) == Size(sent.height, sent.width)


def test_a_strip_of_two_hundred_to_one_is_the_longest_that_is_taken() -> None:
    assert Q3.fit(Size(20_000, 100)).width % 32 == 0
    for size in (Size(20_001, 100), Size(100, 20_001), Size(201, 1)):
        with pytest.raises(UsageError, match="200 times"):
            Q3.fit(size)


def test_one_pixel_is_enlarged_to_the_smallest_image() -> None:
    assert Q3.fit(Size(1, 1)) == Size(256, 256)


def test_a_budget_lowers_the_largest_area_and_never_raises_it() -> None:
    assert Q3.capped(None) == Q3
    assert Q3.capped(1_000_000).max_pixels == 1_000_000
    assert Q3.capped(10**9) == Q3
    assert Q3.capped(65_536).fit(Size(1000, 1000)) == Size(256, 256)


def test_a_budget_below_the_smallest_image_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="--max-pixels 65536"):
        Q3.capped(65_535)


@pytest.mark.parametrize(("family", "rule"), [("mai-ui", Q3), ("qwen3-vl", Q3), ("qwen2.5-vl", Q25), ("qwen2-vl", Q25)])
def test_the_shipped_families_have_the_published_rules(family: str, rule: ImageRule) -> None:
    assert ImageRule.from_config(family) == rule


def test_resizing_gives_the_size_asked_for_and_leaves_a_fitting_image_alone() -> None:
    image = Image.new("RGB", (64, 48), (10, 200, 30))
    assert resize(image, Size(64, 48)) is image
    for to in (Size(96, 64), Size(32, 32), Size(64, 47)):
        resized = resize(image, to)
        assert resized.size == (to.width, to.height)
        assert resized.getpixel((5, 5)) == (10, 200, 30)
