"""Families are found by name, and by the name of a served model."""

import pytest

from agent.families.registry import DEFAULT_FAMILY, family_names, get_family
from agent.model.request import Sampling
from foundation.errors import UsageError
from foundation.families import family_data, image_rule


@pytest.mark.parametrize("name", family_names())
def test_every_named_family_can_be_had_and_knows_its_name(name: str) -> None:
    assert get_family(name).facts.name == name
    assert get_family(name) is get_family(name)
    assert get_family(name).facts.image == image_rule(name)


def test_a_family_that_is_like_another_has_its_numbers_but_not_its_models_and_names() -> None:
    small, large = get_family("opencua").facts, get_family("opencua-72b").facts
    assert (large.image, large.sampling, large.several) == (small.image, small.sampling, small.several)
    assert not set(large.models) & set(small.models)
    assert family_data("opencua-72b")["detect"] != family_data("opencua")["detect"]


def test_the_default_is_one_of_them() -> None:
    assert DEFAULT_FAMILY in family_names()


def test_mai_ui_is_sampled_as_its_published_client_does() -> None:
    facts = get_family("mai-ui").facts
    assert facts.sampling == Sampling(max_tokens=2048, seed=42)
    assert (facts.reference_images, facts.image_format) == (3, "png")


@pytest.mark.parametrize("name", ["", "mai", "../families/mai-ui"])
def test_an_unknown_family_is_a_usage_error_that_names_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="mai-ui"):
        get_family(name)
    with pytest.raises(UsageError, match="qwen3-vl"):
        image_rule(name)


@pytest.mark.parametrize("written", ["MAI-UI", "mai_ui", " Mai UI ", "Tongyi-MAI/MAI-UI-8B"])
def test_a_family_is_found_by_any_spelling_and_by_the_name_of_a_model(written: str) -> None:
    assert get_family(written) is get_family("mai-ui")
    assert image_rule(written) == image_rule("mai-ui")


def test_a_family_of_which_only_the_image_rule_is_known_says_so() -> None:
    assert image_rule("qwen2-vl").factor == 28
    with pytest.raises(UsageError, match="only the image rule"):
        get_family("qwen2-vl")
