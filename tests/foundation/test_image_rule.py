"""The size at which an image is sent equals what the servers' processor makes of it."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foundation.errors import UsageError
from foundation.families import detect_family, family_names, image_rule
from foundation.images import MAX_ASPECT_RATIO, ImageRule, linear_resize, smart_resize

Q3 = ImageRule(32, 65_536, 16_777_216)
Q25 = ImageRule(28, 3_136, 12_845_056)
PROPERTY = settings(deadline=None, max_examples=400)

rules = st.sampled_from([Q3, Q25, Q3.capped(512_000), Q3.capped(2_097_152), Q3.capped(6_553_600), Q25.capped(100_000)])
sides = st.integers(1, 9000)


# Tokens as recorded for the reference processor; a live server agreed with 2040, 1980 and 880.
@pytest.mark.parametrize(
    ("size", "native", "at_512000", "at_1003520", "at_2097152", "at_6553600", "qwen25"),
    [
        ((1280, 720), 880, 464, 880, 880, 880, 1196),
        ((1366, 768), 1032, 464, 943, 1032, 1032, 1323),
        ((1920, 1080), 2040, 464, 943, 2040, 2040, 2691),
        ((2560, 1440), 3600, 464, 943, 1980, 3600, 4641),
        ((3840, 2160), 8160, 464, 943, 1980, 6360, 10549),
    ],
)
def test_tokens_are_those_that_were_recorded(
    size: tuple[int, int],
    native: int,
    at_512000: int,
    at_1003520: int,
    at_2097152: int,
    at_6553600: int,
    qwen25: int,
) -> None:
    budgets = {None: native, 512_000: at_512000, 1_003_520: at_1003520, 2_097_152: at_2097152, 6_553_600: at_6553600}
    for budget, tokens in budgets.items():
        rule = Q3.capped(budget)
        assert rule.tokens(*rule.fit(*size)) == tokens
    assert Q3.capped(512_000).fit(1920, 1080) == (928, 512)
    assert Q3.capped(2_097_152).fit(3840, 2160) == (1920, 1056)
    assert Q25.tokens(*Q25.fit(*size)) == qwen25


def test_half_a_step_goes_to_the_even_neighbour_as_in_the_processor() -> None:
    assert Q3.fit(1040, 1008) == (1024, 1024)  # 32.5 and 31.5 steps


def fits(rule: ImageRule, width: int, height: int) -> tuple[int, int]:
    assume(max(width, height) <= MAX_ASPECT_RATIO * min(width, height))
    return rule.fit(width, height)


@PROPERTY
@given(rules, sides, sides)
def test_both_sides_are_whole_steps_and_the_tokens_are_their_number(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assert sent[0] % rule.factor == 0 == sent[1] % rule.factor
    assert min(sent) >= rule.factor
    assert rule.tokens(*sent) == (sent[0] // rule.factor) * (sent[1] // rule.factor)


@PROPERTY
@given(rules, sides, sides)
def test_the_area_keeps_to_the_budget_unless_the_image_is_a_strip(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    area = sent[0] * sent[1]
    assert area >= rule.min_pixels
    if rule.factor not in sent:
        assert area <= rule.max_pixels


@PROPERTY
@given(rules, st.integers(200, 9000), st.integers(200, 9000))
def test_the_shape_is_kept_to_a_step(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    scale = sent[0] / width
    assert abs(sent[1] - height * scale) <= rule.factor * (1 + max(width / height, height / width))


@PROPERTY
@given(rules, sides, sides)
def test_a_fitted_image_is_not_resized_again(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assume(rule.min_pixels <= sent[0] * sent[1] <= rule.max_pixels)
    assert fits(rule, *sent) == sent  # but for a strip that rounding made longer than is taken


@PROPERTY
@given(rules, sides, sides)
def test_turning_the_image_turns_the_result(rule: ImageRule, width: int, height: int) -> None:
    sent = fits(rule, width, height)
    assert rule.fit(height, width) == sent[::-1]


def test_a_strip_of_two_hundred_to_one_is_the_longest_that_is_taken() -> None:
    assert Q3.fit(20_000, 100)[0] % 32 == 0
    for size in ((20_001, 100), (100, 20_001), (201, 1)):
        with pytest.raises(UsageError, match="200 times"):
            Q3.fit(*size)


@pytest.mark.parametrize("size", [(201, 1), (1, 201), (0, 5), (5, -1)])
def test_what_no_processor_takes_is_refused_with_a_remedy(size: tuple[int, int]) -> None:
    with pytest.raises(UsageError) as raised:
        smart_resize(*size, 32, 65_536, 16_777_216)
    assert raised.value.remedy


def test_one_pixel_is_enlarged_to_the_smallest_image() -> None:
    assert Q3.fit(1, 1) == (256, 256)


def test_a_budget_lowers_the_largest_area_and_never_raises_it() -> None:
    assert Q3.capped(None) == Q3
    assert Q3.capped(1_000_000).max_pixels == 1_000_000
    assert Q3.capped(10**9) == Q3
    assert Q3.capped(65_536).fit(1000, 1000) == (256, 256)


def test_a_budget_below_the_smallest_image_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="--max-pixels 65536"):
        Q3.capped(65_535)


@pytest.mark.parametrize(("family", "rule"), [("mai-ui", Q3), ("qwen3-vl", Q3), ("qwen2.5-vl", Q25), ("qwen2-vl", Q25)])
def test_the_shipped_families_have_the_published_rules(family: str, rule: ImageRule) -> None:
    assert family in family_names()
    assert image_rule(family) == rule


@pytest.mark.parametrize("name", ["gpt", "", "mai", "../families/mai-ui"])
def test_an_unknown_family_is_refused_by_naming_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="mai-ui"):
        image_rule(name)


def test_a_model_of_another_family_than_those_in_question_is_not_guessed() -> None:
    assert detect_family("Qwen/Qwen3-VL-8B-Instruct", ["mai-ui"]) is None


# `linear_resize` of the published client, which is floating-point arithmetic and no more.
@pytest.mark.parametrize(
    ("size", "sent"),
    [((1920, 1080), (1920, 1080)), ((2560, 1440), (1939, 1091)), ((3840, 2160), (1939, 1091)), ((40, 30), (65, 49))],
)
def test_a_linear_rule_keeps_the_ratio_and_counts_the_tokens_of_the_server(
    size: tuple[int, int], sent: tuple[int, int]
) -> None:
    rule = ImageRule(28, 3_136, 2_116_800, linear=True)
    assert rule.fit(*size) == sent
    assert rule.tokens(*sent) == ImageRule(28, 3_136, 2_116_800).tokens(*smart_resize(*sent, 28, 3_136, 2_116_800))
    with pytest.raises(UsageError):
        linear_resize(1000, 1, 3_136, 2_116_800)
