"""`mai-agent act`: one screenshot, one decision, printed; asked as a run asks."""

import json
import struct
from base64 import b64decode
from pathlib import Path

import pytest
from commandline import CommandLine
from PIL import Image
from stubs.endpoint import MODEL, FakeEndpoint, act, pictures, raw, say, whole

from agent.core.geometry import Size

CLICK = act("click", "The button is there.", coordinate=[999, 333])


@pytest.fixture
def screenshot(tmp_path: Path) -> str:
    """An image of 1920x1080."""
    path = tmp_path / "screen.png"
    Image.new("RGB", (1920, 1080), "white").save(path)
    return str(path)


def sent_size(endpoint: FakeEndpoint) -> Size:
    """The size of the one image that was sent."""
    (picture,) = pictures(endpoint.requests[0])
    return Size(*struct.unpack(">II", b64decode(picture["image_url"]["url"].partition(",")[2])[16:24]))


def test_the_decision_is_printed_with_its_point_on_the_screenshot(mai: CommandLine, screenshot: str) -> None:
    with FakeEndpoint([say(CLICK), say(CLICK)]) as endpoint:
        plain = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "click it")
        as_json = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "--json", "click it")
    assert plain.status == as_json.status == 0
    assert plain.out.splitlines() == ["thought: The button is there.", "decided: click at 1918,360"]
    answer = json.loads(as_json.out)
    assert answer["raw"] == CLICK
    assert answer["action"] == answer["actions"][0]
    assert answer["action"]["point"] == [1918, 360]
    assert answer["elements"] == [[]]  # a file has no elements


def test_a_point_alone_can_be_asked_for(mai: CommandLine, screenshot: str) -> None:
    with FakeEndpoint([say('<answer>{"coordinate":[500,500]}</answer>')]) as endpoint:
        ran = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "--grounding", "the gear")
    assert ran.out.splitlines() == ["decided: click at 960,540"]


def test_another_model_that_answers_is_told(mai: CommandLine, screenshot: str) -> None:
    with FakeEndpoint([raw(200, whole(CLICK, model="other-7b"), "application/json"), say(CLICK)]) as endpoint:
        other = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "click it")
        own = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "click it")
    assert other.status == own.status == 0
    assert "Another model answered than was asked for: other-7b." in other.err
    assert "nother model" not in own.err


def test_an_answer_that_cannot_be_used_is_status_1(mai: CommandLine, screenshot: str) -> None:
    with FakeEndpoint([say("I am not sure."), say("")]) as endpoint:
        ran = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "click it")
        as_json = mai("act", "--endpoint", endpoint.url, "--image", screenshot, "--json", "click it")
    assert (ran.status, as_json.status) == (1, 1)
    assert ran.out.startswith("no decision: ")
    assert json.loads(as_json.out)["error"]["kind"] == "empty"


def test_the_screenshot_leaves_half_of_a_small_context_to_the_text(mai: CommandLine, screenshot: str) -> None:
    models = [{"id": MODEL, "owned_by": "other", "max_model_len": 4096}]
    with FakeEndpoint([say(CLICK)], models=models) as endpoint:
        assert mai("act", "--endpoint", endpoint.url, "--image", screenshot, "click it").status == 0
    assert endpoint.requests[0]["max_tokens"] == 1024
    assert sent_size(endpoint).area <= (4096 - 1024) // 2 * 32 * 32


def test_a_budget_of_pixels_is_kept(mai: CommandLine, screenshot: str) -> None:
    with FakeEndpoint([say(CLICK)]) as endpoint:
        options = ("--image", screenshot, "--max-pixels", "500000", "--no-thinking")
        assert mai("act", "--endpoint", endpoint.url, *options, "click it").status == 0
    assert sent_size(endpoint).area <= 500_000


@pytest.fixture
def pictures_of_sizes(tmp_path: Path) -> list[str]:
    """Three images, 1000, 2000 and 500 pixels wide."""
    names = []
    for number, width in enumerate((1000, 2000, 500)):
        names.append(str(tmp_path / f"{number}.png"))
        Image.new("RGB", (width, 500), "white").save(names[-1])
    return names


def test_many_pictures_are_asked_about_in_one_process_and_answered_in_order(
    mai: CommandLine, pictures_of_sizes: list[str]
) -> None:
    with FakeEndpoint([say(CLICK)] * 6) as endpoint:
        ran = mai("act", "--endpoint", endpoint.url, "--image", *pictures_of_sizes, "--json", "click it")
        plain = mai("act", "--endpoint", endpoint.url, "--image", *pictures_of_sizes, "--at-once", "1", "click it")
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.status, plain.status) == (0, 0)
    assert [(answer["id"], answer["image"]) for answer in answers] == list(enumerate(pictures_of_sizes))
    assert [answer["action"]["point"][0] for answer in answers] == [998, 1998, 498]
    assert plain.out.splitlines()[1] == f"{pictures_of_sizes[0]}: decided: click at 998,166"


def test_lines_are_answered_one_by_one_and_a_bad_one_does_not_end_the_rest(
    mai: CommandLine, pictures_of_sizes: list[str]
) -> None:
    asked = [
        {"id": "a", "image": pictures_of_sizes[0], "instruction": "click it"},
        {"id": "b", "image": "/no/such.png", "instruction": "click it"},
        {"id": "c", "instruction": "click it"},
        {"id": "d", "image": pictures_of_sizes[2], "instruction": "the gear", "grounding": True},
    ]
    given = "\n".join(map(json.dumps, asked)) + "\nno JSON\n\n"
    script = [say(CLICK), say('<answer>{"coordinate":[500,500]}</answer>')]
    with FakeEndpoint(script) as endpoint:
        ran = mai("act", "--endpoint", endpoint.url, "--lines", "--at-once", "1", stdin=given.encode())
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 1
    assert [answer["id"] for answer in answers] == ["a", "b", "c", "d", None]
    assert [answer["ok"] for answer in answers] == [True, False, False, True, False]
    assert "is no image" in answers[1]["error"]["message"]
    assert [answers[number]["error"]["kind"] for number in (1, 2, 4)] == ["not_asked", "bad_request", "bad_request"]
    assert answers[3]["action"]["point"] == [250, 250]


@pytest.mark.parametrize(
    ("words", "told"),
    [((), "no INSTRUCTION"), (("--image", "SHOT"), "no INSTRUCTION"), (("--lines", "click it"), "every line names")],
)
def test_what_is_missing_or_too_much_is_said(
    mai: CommandLine, screenshot: str, words: tuple[str, ...], told: str
) -> None:
    ran = mai("act", *(screenshot if word == "SHOT" else word for word in words))
    assert (ran.status, told in ran.err) == (2, True)


def test_the_literal_engine_reads_the_words_of_a_picture(mai: CommandLine) -> None:
    picture = Path(__file__).parents[1] / "literal/screens/appear.png"
    ran = mai("act", "--engine", "literal", "--image", str(picture), "--json", "click Icons")
    x, y = json.loads(ran.out)["action"]["point"]
    assert ran.status == 0
    assert 110 < x < 160 and 45 < y < 70
