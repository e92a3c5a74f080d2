"""The `reference` style sends what the published client sends, message for message.

The expectations are spelled out here by a small restatement of that client's rules, apart from the code under test.
"""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.commands.models.exchanges import read_request
from agent.families.registry import get_family
from agent.model.request import Message, to_openai

FAMILY = get_family("mai-ui")
PROPERTY = settings(deadline=None, max_examples=200)
TOOLS = [
    {"name": "maps", "description": "Find 路 {call} {tools}", "parameters": {"q": "string"}},
    {"name": "mail", "description": "Send"},
]


def request(steps: list[dict[str, Any]], images: int = 3, **more: Any) -> list[dict[str, Any]]:
    data = {"instruction": "Open the settings", "steps": steps, "images": images, **more}
    messages = FAMILY.request(read_request(data, FAMILY, {"style": "reference"})).messages
    return to_openai(messages, lambda _: "IMAGE")


def text(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": content}]}


PICTURE = {"role": "user", "content": ["IMAGE"]}


def replayed(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the published client keeps and writes back for these arguments."""
    kept = dict(arguments)
    for key in ("coordinate", "start_coordinate", "end_coordinate"):
        if key in kept:
            point = kept[key]
            if len(point) == 4:
                point = [(point[0] + point[2]) / 2, (point[1] + point[3]) / 2]
            kept[key] = [point[0] / 999, point[1] / 999]
    if "coordinate" in kept:
        kept["coordinate"] = [int(kept["coordinate"][0] * 999), int(kept["coordinate"][1] * 999)]
    return kept


def expected(system: dict[str, Any], steps: list[dict[str, Any]], images: int) -> list[dict[str, Any]]:
    messages = [system, text("user", "Open the settings")]
    for number, step in enumerate(steps):
        if number >= len(steps) - (images - 1):
            messages.append(PICTURE)
        call = {"name": "mobile_use", "arguments": replayed(step["action"])}
        written = json.dumps(call, separators=(",", ":"))
        thought = f"<thinking>\n{step['thought']}\n</thinking>\n"
        messages.append(text("assistant", f"{thought}<tool_call>\n{written}\n</tool_call>"))
        messages += [text("user", step[key]) for key in ("user_reply", "tool_result") if step.get(key)]
    return [*messages, PICTURE]


numbers = st.integers(0, 999)
points = st.lists(numbers, min_size=2, max_size=2) | st.lists(numbers, min_size=4, max_size=4)
actions = st.one_of(
    st.fixed_dictionaries({"action": st.just("click"), "coordinate": points}),
    st.fixed_dictionaries({"action": st.just("drag"), "start_coordinate": points, "end_coordinate": points}),
    st.fixed_dictionaries({"action": st.just("type"), "text": st.text(max_size=20)}),
    st.just({"action": "wait"}),
)
steps_of = st.lists(
    st.fixed_dictionaries(
        {"thought": st.text(max_size=20), "action": actions},
        optional={"user_reply": st.text(max_size=9), "tool_result": st.text(max_size=9)},
    ),
    max_size=6,
)


@PROPERTY
@given(steps_of, st.integers(1, 6))
def test_any_history_is_sent_as_the_published_client_sends_it(steps: list[dict[str, Any]], images: int) -> None:
    messages = request(steps, images)
    assert messages == expected(messages[0], steps, images)
    assert messages[0]["role"] == "system"


CLICK = {"thought": "I click.", "action": {"action": "click", "coordinate": [63, 500]}}


def test_a_click_comes_back_cut_to_whole_numbers_as_published() -> None:
    lower = [value for value in range(1000) if replay_of({"action": "click", "coordinate": [value, 0]}) != [value, 0]]
    assert lower == [63, 126, 252, 504, 509]
    assert replay_of({"action": "click", "coordinate": [63, 0]}) == [62, 0]
    assert replay_of({"action": "click", "coordinate": [100, 200, 301, 400]}) == [200, 300]


def replay_of(arguments: dict[str, Any], key: str = "coordinate") -> Any:
    body = request([{"thought": "", "action": arguments}])[3]["content"][0]["text"]
    return json.loads(body.split("<tool_call>\n")[1].split("\n</tool_call>")[0])["arguments"][key]


def test_a_tool_call_comes_back_under_the_name_of_the_phone_as_published() -> None:
    step = {"thought": "Look.", "action": {"name": "maps", "arguments": {"q": "Rome"}}, "tool_result": "2 places"}
    body = request([step], tools=TOOLS)[3]["content"][0]["text"]
    assert '{"name":"mobile_use","arguments":{"q":"Rome"}}' in body


def test_replaying_leaves_the_kept_call_as_it_was() -> None:
    action = {"action": "click", "coordinate": [63, 63]}
    request([{"thought": "", "action": action}])
    assert action == {"action": "click", "coordinate": [63, 63]}


def test_the_actions_of_the_person_are_taught_only_together_with_tools() -> None:
    plain = request([])[0]["content"][0]["text"]
    assert "ask_user" not in plain and "double_click" not in plain and "MCP" not in plain
    with_tools = request([], tools=TOOLS)[0]["content"][0]["text"]
    assert "ask_user" in with_tools and "double_click" in with_tools


def test_another_system_text_replaces_ours_to_the_letter() -> None:
    data = {"instruction": "x", "tools": TOOLS}
    messages = FAMILY.request(read_request(data, FAMILY, {"style": "reference"}, "Be {brief}.\n")).messages
    assert messages[0] == Message.text("system", "Be {brief}.\n")


def test_a_grounding_request_is_one_user_message_of_text_and_image() -> None:
    messages = to_openai(FAMILY.grounding_request("the gear", None).messages, lambda _: "IMAGE")
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"] == [{"type": "text", "text": "the gear\n"}, "IMAGE"]
    (system,) = messages[0]["content"]
    for part in ("<grounding_think>", "</grounding_think>", "<answer>", "</answer>", '{"coordinate": [x,y]}'):
        assert part in system["text"]
