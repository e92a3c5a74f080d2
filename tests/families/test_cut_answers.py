"""A cut answer does nothing, or the beginning of what it does as a whole: half a number is a wrong click."""

import pytest
from samples import Sample, samples_of

from agent.core.actions import TOUCHING
from agent.core.geometry import Size
from agent.families.base import Decision
from agent.families.registry import family_names, get_family
from foundation.chat_stream import Answer

#: How far from its end an answer is cut, character by character.
FARTHEST = 120


def whole(name: str) -> list[Sample]:
    """The samples of a family that are as they should be, and are text."""
    data = [(sample, sample.data) for sample in samples_of(name)]
    return [
        sample
        for sample, told in data
        if not ({"failure", "malformed", "grounding"} & set(told)) and told["answer"].get("content")
    ]


@pytest.mark.parametrize("name", [name for name in family_names() if whole(name)])
def test_no_beginning_of_an_answer_does_what_the_whole_one_does_not(name: str) -> None:
    family = get_family(name)
    for sample in whole(name):
        answer, sent = sample.data["answer"], [Size(*sample.data.get("sent", (1920, 1088)))]
        text, reasoning = answer["content"], answer.get("reasoning", "")
        read = family.parse(Answer(text, reasoning), sent)
        if not isinstance(read, Decision):  # what the server read makes it whole
            continue
        for end in range(max(1, len(text) - FARTHEST), len(text)):
            cut = family.parse(Answer(text[:end], reasoning), sent)
            done = (
                [action for action in cut.actions if isinstance(action, TOUCHING)] if isinstance(cut, Decision) else []
            )
            assert done == list(read.actions[: len(done)]), text[:end]
