"""The call syntaxes that families share: what they read, what they refuse, and that nothing makes them raise."""

import random

import pytest

from agent.core.geometry import Grid, Size
from agent.families.base import Call, ParseFailure
from agent.families.registry import family_names, get_family
from agent.families.shared.answer_parts import as_text, tagged_calls, take_apart
from agent.families.shared.named_calls import as_named, named_calls, xml_calls
from agent.families.shared.points import PointError, grid_of, read_point
from foundation.chat_stream import Answer, ToolCall

# XML parameters

QWEN = """Action: Click the Save button.
<tool_call>
<function=computer_use>
<parameter=action>
left_click
</parameter>
<parameter=coordinate>
[512, 734]
</parameter>
</function>
</tool_call>"""
SEED = "<seed:tool_call><function=click><parameter=point><point>17 58</point></parameter></function></seed:tool_call>"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (QWEN, [Call("computer_use", {"action": "left_click", "coordinate": [512, 734]})]),
        (SEED, [Call("click", {"point": "<point>17 58</point>"})]),
        (SEED * 2, [Call("click", {"point": "<point>17 58</point>"})] * 2),
        ("<function=wait></function>", [Call("wait", {})]),
        ("<function=f><parameter=a>1<parameter=b>-300</function>", [Call("f", {"a": "1", "b": "-300"})]),
        ("<function=f><parameter=a>{no json</parameter></function>", [Call("f", {"a": "{no json"})]),
        ("<function=f><parameter=a>a\nb < c</parameter></function>", [Call("f", {"a": "a\nb < c"})]),
    ],
)
def test_xml_parameters_are_read_in_order(text: str, calls: list[Call]) -> None:
    assert xml_calls(text) == calls


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "no_action"), ("I am done.", "no_action"), (QWEN[:-30], "truncated"), (SEED + SEED[:40], "truncated")],
)
def test_an_xml_call_that_is_missing_or_cut_is_refused(text: str, kind: str) -> None:
    result = xml_calls(text)
    assert isinstance(result, ParseFailure)
    assert result.kind == kind


def test_a_cut_xml_call_after_a_whole_one_may_be_left_away() -> None:
    assert xml_calls(SEED + SEED[:40], whole=False) == [Call("click", {"point": "<point>17 58</point>"})]


def test_a_text_in_an_xml_call_stays_a_text_and_keeps_its_white_space() -> None:
    written = "<function=f><parameter=text>\n [1]\n\n</parameter><parameter=keys>\n[1]\n</parameter></function>"
    assert xml_calls(written, ["text"]) == [Call("f", {"text": " [1]\n", "keys": [1]})]


# name(argument=value)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("click(start_box='(197,525)')", [Call("click", {"start_box": "(197,525)"})]),
        (
            "hotkey(key='ctrl s')\n\nclick(start_box='(40,60)')",
            [Call("hotkey", {"key": "ctrl s"}), Call("click", {"start_box": "(40,60)"})],
        ),
        ("wait()", [Call("wait", {})]),
        ("wait())", [Call("wait", {})]),
        (r"type(content='\d C:\\')", [Call("type", {"content": "\\d C:\\"})]),
        ("type(content='it's \"here\"\\n')", [Call("type", {"content": "it's \"here\"\n"})]),
        ("type(content='f(x='a')', clear=True)", [Call("type", {"content": "f(x='a')", "clear": "True"})]),
        ('scroll(point="<point>1 2</point>", direction="up")\n',
         [Call("scroll", {"point": "<point>1 2</point>", "direction": "up"})]),
        ("pyautogui.click(x=0.23, y=0.38)", [Call("pyautogui.click", {"x": "0.23", "y": "0.38"})]),
        ("Click(352, 348)", [Call("Click", {"0": "352", "1": "348"})]),
        ("drag(start=[1, 2], end=(3, 4))", [Call("drag", {"start": "[1, 2]", "end": "(3, 4)"})]),
        ("click(\n  x=1,\n  y=2\n)", [Call("click", {"x": "1", "y": "2"})]),
    ],
)  # fmt: skip
def test_named_arguments_are_read_in_order(text: str, calls: list[Call]) -> None:
    assert named_calls(text) == calls


@pytest.mark.parametrize("text", ["it's", "C:\\new", "a\n\tb\r", "\\", "\\'", "'", '"', "f(x='a')", "ends with\\"])
def test_a_named_argument_that_is_written_is_read_back(text: str) -> None:
    calls = [Call("type", {"content": text}), Call("click", {"at": "(1,2)"})]
    assert named_calls("\n\n".join(map(as_named, calls))) == calls
    assert as_named(Call("click", {"at": [1, 2], "0": "3", "step": 5})) == "click(at='(1,2)', '3', step=5)"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (" \n", "empty"),
        ("I click.", "no_action"),
        ("click(start_box='(197,5", "truncated"),
        ("click(x=1", "truncated"),
        ("click(x=)", "truncated"),
        ("wait()\nand then", "no_action"),
        ("wait() and then", "truncated"),
    ],
)
def test_what_is_no_named_call_is_refused(text: str, kind: str) -> None:
    result = named_calls(text)
    assert isinstance(result, ParseFailure)
    assert result.kind == kind


# Tool calls of the server

CLICK = ToolCall("c1", "computer_use", '{"action": "click", "coordinate": [1, 2]}')


def tool_calls(answer: Answer) -> list[Call] | ParseFailure:
    """The calls that the server read, or else those in the text."""
    parts = take_apart(answer)
    if parts.calls is None:
        return tagged_calls(parts.text)
    return parts.calls if isinstance(parts.calls, ParseFailure) else list(parts.calls)


def test_calls_that_the_server_read_keep_their_ids() -> None:
    answer = Answer("", "", (CLICK, ToolCall("c2", "wait", "")))
    assert tool_calls(answer) == [
        Call("computer_use", {"action": "click", "coordinate": [1, 2]}, "c1"), Call("wait", {}, "c2")
    ]  # fmt: skip


def test_a_recorded_answer_is_read_like_the_one_that_came() -> None:
    answer = Answer("I click.", "Where is it?", (CLICK, ToolCall("c2", "wait", "{}")))
    again, first = tool_calls(Answer(as_text(answer))), tool_calls(answer)
    assert isinstance(again, list)
    assert isinstance(first, list)
    assert [(call.name, call.arguments) for call in again] == [(call.name, call.arguments) for call in first]
    assert as_text(Answer("only text")) == "only text"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer("", "", (ToolCall("a", "", "{}"),)), "bad_argument"),
        (Answer("", "", (ToolCall("a", "f", '{"x": [1'),)), "truncated"),
        (Answer("", "", (CLICK, ToolCall("a", "f", '{"x" 1}'))), "bad_json"),
        (Answer("", "", (ToolCall("a", "f", "[1]"),)), "no_action"),
        (Answer(as_text(Answer("", "", (ToolCall("a", "f", '{"x": [1'),)))), "truncated"),
    ],
)
def test_a_tool_call_that_cannot_be_read_spoils_the_answer(answer: Answer, kind: str) -> None:
    result = tool_calls(answer)
    assert isinstance(result, ParseFailure)
    if kind != "no_action" or not answer.tool_calls:
        assert result.kind == kind


# Grids


def test_a_family_names_its_grid_in_its_data() -> None:
    sent = [Size(100, 50), Size(1932, 1092)]
    assert grid_of(999, sent) == Grid(999, 999)
    assert grid_of("pixels", sent) == Grid(1932, 1092)
    assert read_point([0.5, 0.25], grid_of(1, sent)).x == 0.5
    with pytest.raises(PointError):
        read_point([0.5, 0.25], grid_of("pixels", sent))


PIECES = [
    "<function=", "f", ">", "</function>", "<parameter=", "x", "</parameter>", "click(", ")", "'", '"', ",", "=", "\n",
    "[1", "]", "{", "}", "\\", "<tool_call>", "</tool_call>", '{"name": "f", "arguments": {}}', "</think>",
    "\ud800", "：",
]  # fmt: skip


def test_no_text_makes_a_reader_raise_and_every_call_has_a_name() -> None:
    for seed in range(6000):
        dice = random.Random(seed)
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 24)))
        answer = Answer(text, text, (ToolCall(text, text, text),) * dice.randrange(2))
        for result in (xml_calls(text), named_calls(text), tool_calls(answer), tool_calls(Answer(as_text(answer)))):
            assert isinstance(result, ParseFailure) or all(call.name for call in result), text


@pytest.mark.parametrize("name", family_names())
def test_no_answer_makes_a_family_raise(name: str) -> None:
    family, sent = get_family(name), [Size(1920, 1088)]
    for seed in range(2000):
        dice = random.Random(seed)
        text, thought = ("".join(dice.choices(PIECES, k=dice.randrange(24))) for _ in range(2))
        answer = Answer(text, thought, (ToolCall(text, thought, text),) * dice.randrange(3))
        for result in (family.parse(answer, sent), family.parse_grounding(answer, sent)):
            assert isinstance(result, ParseFailure) or result.actions


LONG = ["<function=f>", "<function=f><parameter=x>", "f('", "f(x='", "'," * 3, " ", "<tool_call>", "f("]


@pytest.mark.parametrize("piece", LONG)
def test_a_long_answer_is_read_in_no_time(piece: str) -> None:
    text = (piece * 200_000)[:190_000]
    for reader in (xml_calls, named_calls, lambda text: tool_calls(Answer(text))):
        reader("click(x='" + text)
        reader(text)
