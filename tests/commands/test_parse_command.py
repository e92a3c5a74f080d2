"""`mai-agent parse`: a line in, a line out, whatever the line holds."""

import json
from typing import Any

import pytest
from commandline import CommandLine
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.commands.models.exchanges import parse_line
from agent.families.registry import get_family
from foundation.errors import ExitStatus

CLICK = '<thinking>\nI click.\n</thinking>\n<tool_call>\n{"name":"mobile_use","arguments":%s}\n</tool_call>'
GROUNDED = '<grounding_think>There.</grounding_think>\n<answer>\n{"coordinate":[968,176]}\n</answer>'


def line(text: Any, identifier: Any = 1, width: Any = 1920, height: Any = 1080) -> bytes:
    return json.dumps({"id": identifier, "text": text, "width": width, "height": height}).encode() + b"\n"


def click(x: Any, y: Any) -> str:
    return CLICK % json.dumps({"action": "click", "coordinate": [x, y]})


def parse(mai: CommandLine, stdin: bytes, *options: str) -> list[dict[str, Any]]:
    ran = mai("parse", "--family", "mai-ui", *options, stdin=stdin)
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
    return [json.loads(written, parse_constant=pytest.fail) for written in ran.out.splitlines()]


def test_a_navigation_answer_is_mapped_by_999(mai: CommandLine) -> None:
    (got,) = parse(mai, line(click(500, 300), "a-1"))
    point = got["actions"][0].pop("point")
    assert got == {
        "id": "a-1",
        "ok": True,
        "thought": "I click.",
        "actions": [{"type": "click", "button": "left", "count": 1}],
    }
    assert point == [pytest.approx(500 / 999 * 1920), pytest.approx(300 / 999 * 1080)]


def test_a_grounding_answer_is_mapped_by_1000(mai: CommandLine) -> None:
    (got,) = parse(mai, line(GROUNDED), "--grounding")
    assert got["thought"] == "There."
    assert got["actions"][0]["point"] == [pytest.approx(968 * 1.92), pytest.approx(176 * 1.08)]


def test_the_screen_of_each_line_is_its_own(mai: CommandLine) -> None:
    stdin = line(click(500, 500), 1, 999, 999) + line(click(500, 500), 2, 3840, 2160) + line(click(999, 0), 3, 100, 50)
    points = [got["actions"][0]["point"] for got in parse(mai, stdin)]
    assert points == [[500, 500], [pytest.approx(500 / 999 * 3840), pytest.approx(500 / 999 * 2160)], [98, 1]]


def test_both_ends_of_a_drag_are_in_screen_pixels(mai: CommandLine) -> None:
    drag = CLICK % '{"action":"drag","start_coordinate":[100,100],"end_coordinate":[200,300]}'
    (got,) = parse(mai, line(drag, 1, 999, 999))
    assert got["actions"] == [{"type": "drag", "start": [100, 100], "point": [200, 300]}]


def test_a_tool_call_and_a_text_have_no_point(mai: CommandLine) -> None:
    tool = '<tool_call>{"name":"maps","arguments":{"q":"Rome"}}</tool_call>'
    typed = CLICK % '{"action":"type","text":"世界\\n"}'
    got = parse(mai, line(tool) + line(typed))
    assert [answer["actions"] for answer in got] == [
        [{"type": "call_tool", "name": "maps", "arguments": {"q": "Rome"}}],
        [{"type": "type", "text": "世界\n"}],
    ]


def test_an_answer_without_an_action_is_an_error_with_its_kind(mai: CommandLine) -> None:
    stdin = b"".join(line(text, text) for text in ("", "nothing", click(5000, 5), click(0.5, 0.2), "<thinking>x"))
    got = parse(mai, stdin)
    assert [answer["error"]["kind"] for answer in got] == ["empty", "no_action", "off_screen", "bad_point", "truncated"]
    assert [answer["id"] for answer in got][:2] == ["", "nothing"]
    assert all(answer["ok"] is False and answer["error"]["message"] for answer in got)


BAD_LINES = [
    *(b"nonsense", b"{", b"[]", b"5", b"null", b'"text"', b"\xff\xfe\x00", b"\x00", b"[" * 100_000, b'{"id":' * 5000),
    *(b"{}", b'{"id": 7}', b'{"id": 7, "text": "x"}', b'{"id": 7, "text": "x", "width": 5}'),
    *(line(None), line(5), line(["x"]), line("x", 1, 0), line("x", 1, -5), line("x", 1, True), line("x", 1, "1920")),
    *(
        line("x", 1, None),
        line("x", 1, float("nan")),
        line("x", 1, float("inf")),
        line("x", 1, 1e300),
        line("x", 1, 0.5),
    ),
    *(line("x", float("nan")), b'{"id": 1e999, "text": "x", "width": 5, "height": 5}'),
    b'{"id": ' + b"[" * 700 + b"]" * 700 + b', "text": "x", "width": 5, "height": 5}',
    b'{"id": ' + b"9" * 5000 + b', "text": "x", "width": 5, "height": 5}',
]


@pytest.mark.parametrize("bad", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_gives_an_error_and_the_next_line_is_read(mai: CommandLine, bad: bytes) -> None:
    got = parse(mai, bad.rstrip(b"\n") + b"\n" + line(click(500, 300), "next"))
    assert [answer["ok"] for answer in got] == [False, True]
    assert got[0]["error"]["kind"] == "bad_request"
    assert got[0]["error"]["message"]
    assert got[1]["id"] == "next"


def test_a_bad_request_keeps_its_id_where_it_has_one(mai: CommandLine) -> None:
    (got,) = parse(mai, b'{"id": {"run": 3}, "text": "x"}')
    assert got == {"id": {"run": 3}, "ok": False, "error": {"kind": "bad_request", "message": "'width' is missing"}}


def test_empty_lines_are_passed_over_and_a_last_line_needs_no_end(mai: CommandLine) -> None:
    got = parse(mai, b"\n  \n" + line(click(1, 1)) + b"\r\n" + line(click(1, 1)).rstrip())
    assert [answer["ok"] for answer in got] == [True, True]
    assert parse(mai, b"") == []


def test_a_line_without_an_id_is_answered_with_none(mai: CommandLine) -> None:
    (got,) = parse(mai, b'{"text": "", "width": 5, "height": 5}')
    assert got["id"] is None


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | st.builds(line, st.text(max_size=80), st.text()))
def test_any_line_gives_an_object_that_can_be_written(written: bytes) -> None:
    for grounding in (False, True):
        got = parse_line(written, get_family("mai-ui"), grounding=grounding)
        assert json.loads(json.dumps(got, allow_nan=False)) == got
        assert got["ok"] in (True, False)


@pytest.mark.parametrize("family", ["nobody", "qwen2-vl"])
def test_a_family_without_a_parser_is_a_usage_error(mai: CommandLine, family: str) -> None:
    ran = mai("parse", "--family", family, stdin=line("x"))
    assert ran.status == ExitStatus.USAGE
    assert ran.out == ""
    assert family in ran.err


def test_the_family_must_be_named(mai: CommandLine) -> None:
    assert mai("parse").status == ExitStatus.USAGE


def test_an_answer_that_names_an_element_is_mapped_to_its_centre() -> None:
    told = {"text": '{"action": "click", "element": 7}', "width": 1920, "height": 1080}
    family = get_family("generic")
    elements: Any = [{"id": 7, "box": [100, 200, 60, 40]}]
    (action,) = parse_line(json.dumps({**told, "elements": elements}).encode(), family, grounding=False)["actions"]
    assert action["point"] == [130.0, 220.0]
    missing = parse_line(json.dumps(told).encode(), family, grounding=False)
    assert "the request listed no elements" in missing["error"]["message"]
    for elements in (5, [5], [{}], [{"id": 7}], [{"id": 7, "box": [1, 2]}], [{"id": 7, "box": [10**400, 2, 3, 4]}]):
        wrong = parse_line(json.dumps({**told, "elements": elements}).encode(), family, grounding=False)
        assert wrong["error"]["kind"] == "bad_request"
