"""What every family must bring along and keep, whoever wrote it."""

import json
from typing import Any

import pytest
from samples import Sample, check, samples_of
from test_golden_requests import golden_file

from agent.core.actions import TOUCHING, points_of, to_json
from agent.core.geometry import Grid, Size
from agent.families.base import Call, Decision
from agent.families.registry import family_names, get_family
from foundation.chat_stream import Answer, ToolCall
from foundation.families import family_folder
from foundation.images import ImageRule

#: The literal engine is no model: nobody publishes its answers.
MODELS = [name for name in family_names() if name != "literal"]
SCREENS = ("1366x768", "1440x900", "1920x1080", "2560x1440", "2880x1800", "3024x1964", "3840x2160")
#: Reference sizes, computed by transformers' smart_resize, by factor, least and most pixels.
SIZES = {
    (28, 3136, 12845056): "1372x756 1428x896 1932x1092 2548x1428 2884x1792 3024x1960 3836x2156",
    (28, 3136, 1003520): "1316x728 1260x784 1316x728 1316x728 1260x784 1232x784 1316x728",
    (28, 3136, 8847360): "1372x756 1428x896 1932x1092 2548x1428 2884x1792 3024x1960 3836x2156",
    (32, 3136, 13107200): "1376x768 1440x896 1920x1088 2560x1440 2880x1792 3008x1952 3840x2176",
    (32, 65536, 16777216): "1376x768 1440x896 1920x1088 2560x1440 2880x1792 3008x1952 3840x2176",
    (32, 1024, 6553600): "1376x768 1440x896 1920x1088 2560x1440 2880x1792 3008x1952 3392x1920",
    (16, 3136, 10035200): "1360x768 1440x896 1920x1088 2560x1440 2880x1792 3024x1968 3840x2160",
}


def calls_of(name: str) -> list[dict[str, Any]]:
    """The calls that a family brings along, each with the actions that it must be read as."""
    path = family_folder(name) / "calls.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


@pytest.mark.parametrize("name", [name for name in MODELS if golden_file(name).is_file() or not get_family(name).acts])
def test_a_family_brings_forty_answers_thirty_of_them_malformed(name: str) -> None:
    samples = [sample.data for sample in samples_of(name)]
    good = [sample for sample in samples if "failure" not in sample and not sample.get("malformed")]
    assert len(good) >= 10
    assert len(samples) - len(good) >= 30
    texts = [json.dumps(sample["answer"], sort_keys=True) for sample in samples]
    assert len(set(texts)) == len(texts), "every answer once"


@pytest.mark.parametrize(
    ("name", "written"), [(name, each) for name in MODELS for each in calls_of(name)], ids=lambda value: str(value)[:60]
)
def test_a_call_that_is_written_is_read_back_as_the_same(name: str, written: dict[str, Any]) -> None:
    family, sent = get_family(name), [Size(*written.get("sent", (1920, 1088)))]
    call = Call(written["call"]["name"], written["call"]["arguments"])
    read = family.parse(Answer(family.written("First the menu.", [call])), sent)
    assert isinstance(read, Decision), read
    assert [to_json(action) for action in read.actions] == written["actions"]
    again = family.parse(Answer(family.written(read.thought, read.calls)), sent)
    assert again == read


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_that_the_server_took_for_reasoning_is_still_read(name: str) -> None:
    family = get_family(name)
    for written in calls_of(name)[:3]:
        sent = [Size(*written.get("sent", (1920, 1088)))]
        text = family.written("First the menu.", [Call(written["call"]["name"], written["call"]["arguments"])])
        read = family.parse(Answer("", reasoning=text), sent)
        assert isinstance(read, Decision), read
        assert [to_json(action) for action in read.actions] == written["actions"]


@pytest.mark.parametrize("name", MODELS)
def test_a_call_that_the_server_read_is_the_same_as_one_in_the_text(name: str) -> None:
    family = get_family(name)
    for written in calls_of(name):
        sent = [Size(*written.get("sent", (1920, 1088)))]
        made = ToolCall("call-1", written["call"]["name"], json.dumps(written["call"]["arguments"]))
        read = family.parse(Answer(reasoning="First the menu.", tool_calls=(made,)), sent)
        assert isinstance(read, Decision), read
        assert [to_json(action) for action in read.actions] == written["actions"]
        assert read.thought == "First the menu."


@pytest.mark.parametrize("name", [name for name in MODELS if get_family(name).grounds])
def test_what_was_measured_counts_in_place_of_what_the_family_says(name: str) -> None:
    measured, sent = Grid(5000, 4000, 10, 20), [Size(1920, 1088)]
    family = get_family(name).counting(measured)
    counted: dict[bool, set[Grid]] = {True: set(), False: set()}  # in answers to a question for a point, and in others
    for sample in samples_of(name):
        written, grounding = sample.data["answer"], bool(sample.data.get("grounding"))
        calls = tuple(ToolCall("", each["name"], each["arguments"]) for each in written.get("tool_calls", ()))
        answer = Answer(written.get("content", ""), written.get("reasoning", ""), calls)
        result = (family.parse_grounding if grounding else family.parse)(answer, sent)
        if isinstance(result, Decision):
            counted[grounding] |= {point.grid for action in result.actions for point in points_of(action)}
    assert counted[True] <= {measured}
    if family.acts and family.facts.navigation == measured:
        assert counted[False] - {Grid.relative(1)} == {measured}


@pytest.mark.parametrize("rule", SIZES, ids=str)
def test_an_image_gets_the_size_that_the_reference_computes(rule: tuple[int, int, int]) -> None:
    for screen, size in zip(SCREENS, SIZES[rule].split(), strict=True):
        width, height = map(int, screen.split("x"))
        assert "{}x{}".format(*ImageRule(*rule).fit(width, height)) == size


@pytest.mark.parametrize("name", family_names())
def test_every_family_that_acts_brings_samples(name: str) -> None:
    assert samples_of(name)


@pytest.mark.parametrize("sample", [each for name in family_names() for each in samples_of(name)], ids=lambda s: s.name)
def test_a_published_answer_is_read_as_the_family_says(sample: Sample) -> None:
    check(sample)


# A cut answer does nothing, or the beginning of what it does as a whole: half a number is a wrong click.

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


# An answer that repeats one thing without end is read in time: a quadratic expression would never be done.

FLOODS = [f"{piece * (100_000 // len(piece))}x" for piece in ("\n", " ", " \n", "<a>", "{", "Action: ")]


@pytest.mark.timeout(60)  # a quadratic one took four minutes for each of the first three
@pytest.mark.parametrize("name", family_names())
def test_a_flood_is_read(name: str) -> None:
    family = get_family(name)
    for flood in FLOODS:
        family.parse(Answer(flood), (Size(1000, 800),))
        if family.grounds:
            family.parse_grounding(Answer(flood), (Size(1000, 800),))
