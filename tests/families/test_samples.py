"""Every family reads the samples in its own folder."""

import pytest
from samples import Sample, check, samples_of

from agent.families.registry import family_names


@pytest.mark.parametrize("name", family_names())
def test_every_family_that_acts_brings_samples(name: str) -> None:
    assert samples_of(name)


@pytest.mark.parametrize("sample", [each for name in family_names() for each in samples_of(name)], ids=lambda s: s.name)
def test_a_published_answer_is_read_as_the_family_says(sample: Sample) -> None:
    check(sample)
