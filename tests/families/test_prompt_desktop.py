"""The `desktop` style names a desktop's actions and replays every call exactly as it was written."""

import json
import re
from dataclasses import replace
from typing import Any

from answers import FAMILY, action, answer, arguments, read
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import Click
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.model.request import ImagePart, Message, TextPart

PROPERTY = settings(deadline=None, max_examples=200)
REFERENCE = {"style": "reference"}
PLAIN = PromptRequest("Enable dark mode", (None,))


def step(call: Call, **more: Any) -> PastStep:
    return PastStep("I act.", (call,), (None,), **more)


def texts(messages: list[Message]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


def system(request: PromptRequest) -> str:
    return texts(FAMILY.request(request).messages)[0]


def replay(call: Call, **more: Any) -> str:
    (written,) = (
        message
        for message in FAMILY.request(replace(PLAIN, steps=[step(call)], **more)).messages
        if message.role == "assistant"
    )
    (part,) = written.parts
    assert isinstance(part, TextPart)
    return part.text


def test_every_coordinate_is_replayed_exactly() -> None:
    for value in range(1000):
        call = Call("mobile_use", {"action": "click", "coordinate": [value, 999 - value]})
        assert f'{{"action":"click","coordinate":[{value},{999 - value}]}}' in replay(call)


@PROPERTY
@given(arguments)
def test_what_is_replayed_reads_back_as_the_same_decision(written: dict[str, Any]) -> None:
    decision = read(answer(written))
    assert isinstance(decision, Decision)
    assert read(replay(decision.calls[0])) == decision


@PROPERTY
@given(
    st.from_regex(r"[a-z]{3,8}_[a-z]{1,5}", fullmatch=True), st.dictionaries(st.text(max_size=4), st.text(max_size=8))
)
def test_a_tool_call_is_replayed_under_its_own_name(name: str, given: dict[str, str]) -> None:
    written = json.dumps({"name": name, "arguments": given}, separators=(",", ":"), ensure_ascii=False)
    assert replay(Call(name, given)) == f"<thinking>\nI act.\n</thinking>\n<tool_call>\n{written}\n</tool_call>"


def test_a_replay_without_thinking_is_the_call_alone() -> None:
    assert replay(Call("mobile_use", {"action": "wait"}), options={"thinking": False}).startswith("<tool_call>\n")


def test_the_skeleton_is_system_task_history_and_the_screen_now() -> None:
    call = Call("mobile_use", {"action": "wait"})
    steps = [step(call), step(call, shown=True, note="Nothing changed."), step(call, shown=True, tool_result="42")]
    messages = FAMILY.request(replace(PLAIN, steps=steps)).messages
    kinds = [(message.role, isinstance(message.parts[0], ImagePart)) for message in messages]
    assert kinds == [
        *(("system", False), ("user", False), ("assistant", False)),
        *(("user", True), ("assistant", False), ("user", False)),
        *(("user", True), ("assistant", False), ("user", False)),
        ("user", True),
    ]
    assert texts(messages)[1] == "Enable dark mode"
    assert "Nothing changed." in texts(messages)
    assert "42" in texts(messages)
    assert sum(isinstance(part, ImagePart) for message in messages for part in message.parts) == 3


def test_what_there_is_to_say_of_a_step_is_told_in_both_styles() -> None:
    noted = [step(Call("mobile_use", {"action": "wait"}), note="The person said no.")]
    assert "The person said no." in texts(FAMILY.request(replace(PLAIN, steps=noted)).messages)
    assert "The person said no." in texts(FAMILY.request(replace(PLAIN, steps=noted, options=REFERENCE)).messages)


def test_steps_that_are_left_out_are_counted_for_the_model() -> None:
    assert "(7 earlier steps are left out here.)" in texts(FAMILY.request(replace(PLAIN, skipped=7)).messages)
    assert not any("left out" in text for text in texts(FAMILY.request(PLAIN).messages))


def test_every_action_that_is_offered_can_be_read() -> None:
    offered = [line.split("}")[0] + "}" for line in system(PLAIN).splitlines() if line.startswith('{"action"')]
    assert len(offered) >= 17
    for line in offered:
        filled = re.sub(r"\[x1?, y1?\]", "[5, 6]", line).replace("[x2, y2]", "[7, 8]").replace('""', '"a"')
        action(answer(json.loads(re.sub(" or [a-z]+", "", filled))))


def test_applications_are_listed_where_there_are_some() -> None:
    assert "Files, Text Editor" in system(replace(PLAIN, apps=["Files", "Text Editor"]))
    assert "Applications" not in system(PLAIN)
    assert "Text Editor" not in system(replace(PLAIN, apps=["Text Editor"], options=REFERENCE))


def test_tools_are_listed_as_lines_of_json_whatever_their_text_holds() -> None:
    tools = [{"name": "a", "description": "{call} {tools} é\nx"}, {"name": "b"}]
    lines = system(replace(PLAIN, tools=tools)).splitlines()
    for tool in tools:
        assert json.dumps(tool, ensure_ascii=False) in lines


def test_thinking_is_asked_for_only_where_it_is_wanted() -> None:
    assert "<thinking>" in system(PLAIN)
    assert "thinking" not in system(replace(PLAIN, options={"thinking": False}, tools=[{"name": "a"}]))
    assert "<thinking>" in system(replace(PLAIN, options=REFERENCE | {"thinking": False}))


def test_a_short_answer_in_the_asked_format_clicks() -> None:
    written = '{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [0, 0]}}'
    assert isinstance(action(f"<tool_call>\n{written}\n</tool_call>"), Click)
