"""The mistakes that models are known to make: mended where the meaning is plain, refused where it is not."""

import pytest
from answers import action, answer, call, failure, read
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import CallTool, Click, Drag, OpenApp, TypeText, Wait
from agent.core.geometry import Grid, GridPoint
from agent.families.base import Decision

GRID = Grid.relative(999)
CLICK = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[579,550]}}'
OTHER = '{"name":"mobile_use","arguments":{"action":"click","coordinate":[1,2]}}'
CLICKED = Click(GridPoint(579, 550, GRID))
TAGGED = f"<tool_call>\n{CLICK}\n</tool_call>"
PROPERTY = settings(deadline=None, max_examples=200)


@pytest.mark.parametrize(
    "text",
    [
        f"<thinking>\nx\n</thinking>\n<tool_call>\n{CLICK}\n</tool_call>",
        f"x\n</think>\n<tool_call>\n{CLICK}\n</tool_call>",  # </think> alone
        f"<think>x</think>\n{TAGGED}",
        f"</thinking>{TAGGED}",
        f"x\n{TAGGED}",  # no thinking tag
        f"<thinking>x</thinking>\n{CLICK}",  # no <tool_call>
        f"<thinking>x</thinking>\n```json\n{CLICK}\n```",
        CLICK,
        f"<thinking>x</thinking><tool_call>{CLICK}",  # no closing tag
        f"<thinking>x</thinking><tool_call>{CLICK}</tool_",  # the closing tag is cut off
        f"<thinking>x</thinking><tool_call>{CLICK}</tool_call",
        f"<thinking>x</thinking><tool_call>{CLICK}}}</tool_call>",  # one brace too many
        f"<thinking>x</thinking><tool_call>{CLICK}}}}}",
        f"<thinking>x</thinking><tool_call>{CLICK[:-1]}</tool_call>",  # one too few
        f"<thinking>x</thinking><tool_call>{CLICK[:-3]}</tool_call>",
        f"<thinking>x</thinking><tool_call><tool_call>\n{CLICK}\n</tool_call></tool_call>",
        f"<thinking>x</thinking><tool_call>\n```json\n{CLICK}\n```\n</tool_call>",
        f"<thinking>x</thinking>{TAGGED}\n{TAGGED}\n{TAGGED}",  # repeated
        f"<thinking>x</thinking>{CLICK}\n{CLICK}\n{CLICK}",
        f"<thinking>x</thinking>{TAGGED}\n<tool_call>\n{OTHER}\n</tool_call>",  # the first one counts
        f"<THINKING>x</THINKING><Tool_Call>{CLICK}</Tool_Call>",
        f"<thinking>x</thinking>\nAction: I click.\n{TAGGED}\nDone.",
    ],
)
def test_a_damaged_answer_is_read_as_it_was_meant(text: str) -> None:
    assert action(text) == CLICKED


@pytest.mark.parametrize(
    ("more", "left_out"), [("", 0), (TAGGED, 0), (TAGGED.replace("579", "1"), 1), ("<tool_call>{", 0)]
)
def test_further_calls_are_left_out_and_counted(more: str, left_out: int) -> None:
    decision = read(f"<thinking>x</thinking>{TAGGED}\n{more}")
    assert isinstance(decision, Decision)
    assert (len(decision.actions), decision.left_out) == (1, left_out)


@pytest.mark.parametrize(
    "body",
    [
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":{"x":579,"y":550}}}',
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":"[579, 550]"}}',
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":"579,550"}}',
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":["579","550"]}}',
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":[[579,550]]}}',
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":[579.0,550.0]}}',
        '{"name":"mobile_use","arguments":{"action":"click","point":[579,550]}}',
        '{"name":"mobile_use","arguments":"{\\"action\\":\\"click\\",\\"coordinate\\":[579,550]}"}',
        '{"name":"mobile_use","parameters":{"action":"click","coordinate":[579,550]}}',
        '{"name":"mobile_use","action":"click","coordinate":[579,550]}',
        '{"action":"click","coordinate":[579,550]}',
        '{"name":"click","arguments":{"coordinate":[579,550]}}',
        '{"type":"function","function":{"name":"mobile_use","arguments":{"action":"click","coordinate":[579,550]}}}',
        '｛"name"："mobile_use"，"arguments"：｛"action"："click"，"coordinate"：［579，550］｝｝',
        '{“name”:“mobile_use”,“arguments”:{“action”:“click”,“coordinate”:[579,550]}}',
        "{'name':'mobile_use','arguments':{'action':'click','coordinate':[579,550]}}",
        "{'name':'mobile_use','arguments':{'action':'click','coordinate':(579,550),'x':None}}",
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":[579,550],"clear":True}}',
        '{"name":"mobile_use","arguments":{"action":" Click ","coordinate":[579,550]}}',
    ],
)  # fmt: skip
def test_a_call_of_another_shape_means_the_same(body: str) -> None:
    assert action(answer(body)) == CLICKED
    assert action(f"<thinking>x</thinking>\n{body}") == CLICKED


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ('"one\ntwo\tthree"', "one\ntwo\tthree"),  # raw newlines
        (r'"C:\dir\Q"', r"C:\dir\Q"),
        (r'"C:\\dir\q"', r"C:\dir\q"),  # a right escape beside a wrong one
        (r'"C:\users"', r"C:\users"),
        (r'"it\'s"', "it's"),
        (r'"\u4f60\u597d"', "你好"),
        ('"你好，世界：“x”"', "你好，世界：“x”"),
        ('"</tool_call>"', "</tool_call>"),
        ('"{[<tool_call>"', "{[<tool_call>"),
        ('"a\x00\x1bb\x7f"', "ab"),  # control characters are not typed
        ("42", "42"),
    ],
)
def test_text_is_typed_as_the_model_meant_it(written: str, typed: str) -> None:
    assert action(answer(call(f'{{"action":"type","text":{written}}}'))) == TypeText(typed)


def test_full_width_marks_of_the_call_are_mended_and_those_of_its_text_kept() -> None:
    body = '{"name"："mobile_use"，"arguments"：{"action"："type"，"text"："你好，“世界”（一）"}}'
    assert action(answer(body)) == TypeText("你好，“世界”（一）")


@PROPERTY
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_any_text_can_be_typed(text: str) -> None:
    assert action(answer({"action": "type", "text": text})) == TypeText(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I am done.", "no_action"),
        ("<thinking>only a thought</thinking>", "no_action"),
        ("<thinking>x</thinking><tool_call></tool_call>", "no_action"),
        ("<thinking>x</thinking><tool_call>", "truncated"),
        ("<thinking>x</thinking><tool_call>click(5, 6)</tool_call>", "no_action"),
        ("<thinking>x</thinking><tool_call>{action: click}</tool_call>", "bad_json"),
        ("<thinking>x</thinking><tool_call>" + CLICK[:-4], "truncated"),
        ("<thinking>x</thinking>" + CLICK[:-4], "truncated"),
        (f"<thinking>x</thinking>{CLICK} or rather {OTHER}", "ambiguous"),
        ("<thinking>I never stop thinking", "truncated"),
        (answer(call({"action": "fly"})), "unknown_action"),
        (answer("{}"), "bad_argument"),
        (answer('{"name": 5}'), "bad_argument"),
        (answer('{"name": "", "arguments": {}}'), "bad_argument"),
        (answer('{"name": "mobile_use", "arguments": [1]}'), "bad_argument"),
        (answer('{"name": "mobile_use", "arguments": "click"}'), "bad_argument"),
        (answer(call({"action": ["click"], "coordinate": [1, 2]})), "bad_argument"),
        (answer(call({"action": "click"})), "bad_point"),
        (answer("[" * 5000), "no_action"),
        (answer('{"a":' * 5000), "bad_json"),
        (answer('{"a":' * 100 + "1" + "}" * 100), "bad_json"),
        (answer('{"name":"mobile_use","arguments":{"action":"wait","seconds":' + "9" * 400 + "}}"), "bad_json"),
        (answer('{"name": "' + "x" * 200_000 + '"}'), "bad_json"),
    ],
)
def test_what_cannot_be_carried_out_says_why(text: str, kind: str) -> None:
    failed = failure(text)
    assert failed.kind == kind
    assert failed.message


def test_a_call_that_is_only_talked_about_is_never_carried_out() -> None:
    talk = f"I could <tool_call>{OTHER}</tool_call> or {OTHER}, but no."
    assert action(f"<thinking>{talk}</thinking>\n{TAGGED}") == CLICKED
    assert action(f"{talk}</think>\n{TAGGED}") == CLICKED
    assert failure(f"<thinking>{talk}</thinking>").kind == "no_action"
    assert failure(f"<thinking>{talk}").kind == "truncated"
    assert failure(f"<thinking>{OTHER}").kind == "truncated"


def test_a_call_inside_a_text_to_type_is_text_and_never_carried_out() -> None:
    text = "<tool_call>{'action':'click','coordinate':[1,2]}</tool_call>"
    written = call({"action": "type", "text": text})
    assert action(answer(written)) == action(f"<thinking>x</thinking>{written}") == action(written) == TypeText(text)
    assert failure(f"<thinking>x</thinking>{written[:-4]}").kind == "truncated"


def test_the_thought_is_kept_also_where_the_call_is_refused() -> None:
    result = read(answer({"action": "fly"}, "I fly away."))
    assert not isinstance(result, Decision)
    assert result.thought == "I fly away."


def test_a_drag_may_name_its_ends_in_the_ways_of_its_relatives() -> None:
    start, end = GridPoint(1, 2, GRID), GridPoint(3, 4, GRID)
    for names in (("start_coordinate", "end_coordinate"), ("coordinate", "coordinate2"), ("start", "end")):
        written = {"action": "drag", names[0]: [1, 2], names[1]: [3, 4]}
        assert action(answer(written)) == Drag(start, end)
    qwen = {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}
    assert action(answer(qwen)) == Drag(start, end)
    assert action(answer({"action": "left_click_drag", "coordinate": [3, 4]})) == Drag(None, end)


def test_names_of_related_models_are_understood() -> None:
    assert action(answer({"action": "AWAKE", "text": "Mail"})) == OpenApp("Mail")
    assert action(answer({"action": "left-click", "coordinate": [579, 550]})) == CLICKED
    assert action(answer('{"name": "wait", "arguments": {}}')) == Wait(1.0)
    assert action(answer('{"name": "search", "arguments": {}}')) == CallTool("search", {})
