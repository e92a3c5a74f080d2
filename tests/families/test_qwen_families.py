"""What the families of Qwen-VL's descendants share: their requests beyond the published ones, and several calls."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from stubs.desk import Desk
from stubs.endpoint import FakeEndpoint, say
from test_conformance import calls_of

from agent.commands.models.exchanges import read_request
from agent.core.actions import CallTool, Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Size
from agent.events.run_events import RunFinished
from agent.families.base import Call, Decision, ParseFailure
from agent.families.qwen.family import QwenComputerUse
from agent.families.registry import family_names, get_family
from agent.model.request import to_openai
from foundation.chat_stream import Answer

QWEN = [name for name in family_names() if isinstance(get_family(name), QwenComputerUse)]
SENT = [Size(1920, 1088)]


def family(name: str) -> QwenComputerUse:
    made = get_family(name)
    assert isinstance(made, QwenComputerUse)
    return made


def request(name: str, steps: list[dict[str, Any]], *, style: str = "desktop", **more: Any) -> list[dict[str, Any]]:
    """The messages of a request: its parts as texts, "IMAGE" for a screenshot."""
    data = {"instruction": "Turn on {previous} light", "steps": steps, **more}
    prompt = read_request(data, family(name), {"style": style})
    messages = to_openai(family(name).request(prompt).messages, lambda _image: "IMAGE")
    return [
        {"role": message["role"], "parts": [part if part == "IMAGE" else part["text"] for part in message["content"]]}
        for message in messages
    ]


def texts(messages: list[dict[str, Any]]) -> str:
    return "\n".join(part for message in messages for part in message["parts"])


def step(name: str, thought: str = "Go on.", **more: Any) -> dict[str, Any]:
    return {"thought": thought, "action": calls_of(name)[0]["call"]["arguments"], **more}


@pytest.mark.parametrize("name", QWEN)
def test_marks_in_an_instruction_are_not_filled(name: str) -> None:
    assert "Turn on {previous} light" in texts(request(name, []))


@pytest.mark.parametrize("name", QWEN)
@pytest.mark.parametrize("images", [1, 3])
def test_what_a_person_said_is_in_the_request_wherever_the_window_is(name: str, images: int) -> None:
    said = [step(name), step(name, user_reply="The left one."), step(name, tool_result="42 files")]
    told = texts(request(name, said, images=images))
    assert told.count("The left one.") == told.count("42 files") == 1


@pytest.mark.parametrize("name", QWEN)
def test_the_newest_screenshot_ends_a_request(name: str) -> None:
    newest = request(name, [step(name)] * 7)[-1]
    assert newest["role"] == "user"
    assert newest["parts"].count("IMAGE") == 1


@pytest.mark.parametrize("name", QWEN)
def test_a_persons_own_system_text_takes_the_place_of_all_of_it(name: str) -> None:
    prompt = read_request({"instruction": "x"}, family(name), {}, "Just click.")
    first = to_openai(family(name).request(prompt).messages, lambda _image: "IMAGE")[0]
    assert (first["role"], [part["text"] for part in first["content"]]) == ("system", ["Just click."])


@pytest.mark.parametrize("name", QWEN)
@pytest.mark.parametrize("style", ["reference", "desktop"])
def test_what_is_offered_can_be_written_under_constraint(name: str, style: str) -> None:
    made = family(name)
    wanted = re.compile(str(made.constraint({"style": style})))
    takes = made.takes({"style": style})
    tried = 0
    for written in calls_of(name):
        arguments = written["call"]["arguments"]
        text = arguments.get("text")
        if list(arguments)[1:] != takes.get(arguments["action"]) or (isinstance(text, str) and "\n" in text):
            continue
        tried += 1
        assert wanted.fullmatch(made.written("Go on.", [Call("computer_use", arguments)])), arguments
    assert tried >= 6
    assert not wanted.fullmatch(made.written("Go on.", [Call("computer_use", {"action": "fly"})]))


@pytest.mark.parametrize("name", QWEN)
def test_all_calls_of_an_answer_count_where_the_client_carries_them_out_and_else_the_first(name: str) -> None:
    made, calls = family(name), [Call(**each["call"]) for each in calls_of(name)[:3]]
    read = made.parse(Answer(made.written("Go on.", calls)), SENT)
    assert isinstance(read, Decision)
    several = name in ("qwen2.5-vl", "qwen3-vl", "qwen3.5", "evocua", "gui-owl-1.5")
    assert (read.calls, read.left_out) == ((tuple(calls), 0) if several else (tuple(calls[:1]), 2))


@pytest.mark.parametrize("name", QWEN)
def test_a_call_that_cannot_be_carried_out_ends_the_answer_and_is_told(name: str) -> None:
    made, calls = family(name), [Call(**each["call"]) for each in calls_of(name)[:2]]
    wrong = Call("computer_use", {"action": "fly"})
    read = made.parse(Answer(made.written("Go on.", [calls[0], wrong, calls[1]])), SENT)
    assert isinstance(read, Decision)
    assert read.calls == tuple(calls[:1])
    assert read.left_out == 2 or "'fly'" in read.unread
    assert isinstance(made.parse(Answer(made.written("Go on.", [wrong, calls[0]])), SENT), ParseFailure)


@pytest.mark.parametrize("name", ["qwen3-vl", "qwen3.5", "evocua"])
def test_a_call_that_comes_again_and_again_is_made_once(name: str) -> None:
    made, calls = family(name), [Call(**each["call"]) for each in calls_of(name)[:2]]
    read = made.parse(Answer(made.written("Go on.", [calls[1], *calls[:1] * 15])), SENT)
    assert isinstance(read, Decision)
    assert (read.calls, read.left_out) == ((calls[1], calls[0]), 14)


@pytest.mark.parametrize("name", QWEN)
def test_what_is_wrong_with_an_answer_goes_back_to_the_model(name: str) -> None:
    assert "no <here>" in family(name).feedback(ParseFailure("bad_point", "no <here>"))


@pytest.mark.parametrize("name", QWEN)
def test_a_question_for_one_point_has_the_picture_before_the_words(name: str) -> None:
    system, asked = to_openai(family(name).grounding_request("the gear", None).messages, lambda _image: "IMAGE")
    assert "left_click" in system["content"][-1]["text"]
    assert asked["content"] == ["IMAGE", {"type": "text", "text": "the gear"}]


@pytest.mark.parametrize("name", QWEN)
def test_the_schema_in_the_system_text_is_json_of_one_function(name: str) -> None:
    for style in ("reference", "desktop"):
        system = "".join(request(name, [], style=style)[0]["parts"])
        (schema,) = re.findall(r"<tools>\n(.*)\n</tools>", system)
        function = json.loads(schema)["function"]
        properties = function["parameters"]["properties"]
        assert function["name"] == "computer_use"
        assert all(name in properties["action"]["description"] for name in properties["action"]["enum"])
        used = {key for keys in family(name).takes({"style": style}).values() for key in keys}
        assert used <= set(properties)


@pytest.mark.parametrize("name", ["qwen3-vl", "qwen3.5", "qwen2.5-vl", "gui-owl-1.5", "gui-owl", "evocua"])
def test_installed_applications_are_told_and_may_be_opened_in_the_style_for_a_desktop(name: str) -> None:
    prompt = read_request({"instruction": "x"}, family(name), {})
    told = "".join(family(name).request(replace(prompt, apps=("Files", "{size}"))).texts())
    assert "these are installed: Files, {size}." in told
    assert '"open"' in told
    assert "desktop icons" not in told
    assert '"open"' not in "".join(family(name).request(prompt).texts())


@pytest.mark.parametrize("name", QWEN)
def test_a_tool_stands_beside_the_function_and_is_called_under_its_own_name(name: str) -> None:
    tool = {"name": "maps", "description": "Finds places", "parameters": {"type": "object"}}
    system = "".join(request(name, [], tools=[tool])[0]["parts"])
    (listed,) = re.findall(r"<tools>\n(.*)\n</tools>", system, re.DOTALL)
    assert [json.loads(line)["function"]["name"] for line in listed.splitlines()] == ["computer_use", "maps"]
    made = family(name)
    read = made.parse(Answer(made.written("Look.", [Call("maps", {"q": "Köln"})])), SENT)
    assert isinstance(read, Decision)
    assert read.actions == (CallTool("maps", {"q": "Köln"}),)


async def test_a_call_that_stands_for_several_actions_has_them_done_in_order() -> None:
    made = family("fara")
    arguments = {"action": "type", "text": "Köln", "coordinate": [126, 126], "delete_existing_text": True}
    end = Call("computer_use", {"action": "terminate", "status": "success"})
    script = [say(made.written("There.", [Call("computer_use", arguments)])), say(made.written("It is 12 €.", [end]))]
    with FakeEndpoint(script) as endpoint:
        desk = Desk(endpoint, family="fara")
        told = await desk.run()
    keys = [PressKeys(("ctrl", "a")), TypeText("Köln"), PressKeys(("enter",))]
    assert desk.hand.done == [Click(DesktopPoint(128, 128)), *keys]
    assert isinstance(told[-1], RunFinished)
    assert "12 €" in told[-1].message


def test_earlier_steps_keep_their_numbers_when_the_oldest_are_left_out() -> None:
    made = family("qwen3-vl")
    prompt = read_request({"instruction": "x", "steps": [step("qwen3-vl", "Click A.")] * 6}, made, {})
    told = to_openai(made.request(replace(prompt, skipped=30)).messages, lambda _image: "IMAGE")
    assert told[1]["content"][1]["text"].endswith(
        "Previous actions:\nSteps 1 to 30: left out here.\nStep 31: Click A.\nStep 32: Click A."
    )


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("Action: Click Save.\n<tool_call>\n%s\n</tool_call>", "Click Save."),
        ("I look.\naction: Click Save. \n<tool_call>\n%s\n</tool_call>", "Click Save."),
        ("Action: Click Save. <tool_call>%s</tool_call>", "Click Save."),
        ("Click Save.\n<tool_call>\n%s\n</tool_call>", "Click Save."),
        ("<tool_call>\n%s\n</tool_call>", "Performing left_click action"),
    ],
)
def test_an_earlier_step_is_told_by_the_line_that_says_what_it_did(answer: str, line: str) -> None:
    call = json.dumps({"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1, 2]}})
    steps = [{"answer": answer % call}, step("qwen3-vl")]
    told = request("qwen3-vl", steps, images=2)
    assert told[1]["parts"][1].endswith(f"Previous actions:\nStep 1: {line}")
    assert request("qwen3-vl", steps[:1])[2]["parts"] == [answer % call], "in the window it is there to the letter"


@pytest.mark.parametrize("name", ["qwen3-vl", "qwen3.5", "evocua", "gui-owl-1.5"])
def test_the_label_of_an_answer_stands_there_once(name: str) -> None:
    assert request(name, [step(name, "Action: Click Save.")])[2]["parts"][0].startswith(
        "Action: Click Save.\n<tool_call>"
    )


def test_a_call_that_the_server_read_is_written_out_where_it_is_replayed() -> None:
    made = family("qwen3.5")
    call = Call("computer_use", {"action": "left_click", "coordinate": [1, 2]})
    assert made.written("Go.", [call]).startswith("Action: Go.\n<tool_call>\n<function=computer_use>\n")


def test_screenshots_that_are_left_out_are_told_so_with_what_came_back() -> None:
    steps = [step("qwen3.5"), step("qwen3.5", user_reply="The left one."), step("qwen3.5"), step("qwen3.5")]
    told = request("qwen3.5", steps, images=1)
    assert [message["parts"] for message in told if message["role"] == "user"][1:] == [
        ["<tool_response>\nThis screenshot has been collapsed.\n</tool_response>"],
        ["<tool_response>\nThis screenshot has been collapsed.\nThe left one.\n</tool_response>"],
        ["<tool_response>\nThis screenshot has been collapsed.\n</tool_response>"],
        ["<tool_response>\n", "IMAGE", "\n</tool_response>"],
    ]


def test_a_long_answer_from_a_page_is_told_with_its_middle_cut_out() -> None:
    told = request("fara-1.5", [step("fara-1.5", tool_result="a" * 800 + "b" * 800)])[-1]["parts"][1]
    assert told.startswith("a" * 500 + "\n... (600 characters left out) ...\n" + "b" * 500 + "\nHere is")


def test_turns_without_a_screenshot_keep_only_what_the_person_said_in_the_reference_style() -> None:
    steps = [step("fara"), step("fara", user_reply="Yes.", tool_result="42"), *[step("fara")] * 2]
    told = request("fara", steps, style="reference", images=2)
    assert [message["parts"] for message in told if message["role"] == "user"][:2] == [
        ["Turn on {previous} light"],
        ["Yes."],
    ]


def test_beyond_a_hundred_steps_the_oldest_are_told_as_lines() -> None:
    told = request("qwen3.5", [step("qwen3.5", "Wait.")] * 102)
    assert told[1]["parts"][0].endswith("Previous actions:\nStep 1: Wait.\nStep 2: Wait.")
    assert sum(message["role"] == "assistant" for message in told) == 100
    assert sum(message["parts"].count("IMAGE") for message in told) == 20


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Action: Open the menu.\n{call}", "Step 1: Action: Open the menu."),
        ("First this.\nI'll open the menu.\n{call}", "Step 1: I'll open the menu."),
        ("Now I wait. {call}", "Step 1: Now I wait."),
    ],
)
def test_qwen25_vl_is_told_the_line_that_said_what_was_done_as_it_stood(said: str, told: str) -> None:
    call = '<tool_call>{"name": "computer_use", "arguments": {"action": "wait"}}</tool_call>'
    answers = [said.replace("{call}", call), *([f"Action: More.\n{call}"] * 4)]
    first = request("qwen2.5-vl", [{"answer": answer} for answer in answers], style="reference")[1]
    assert first["parts"][1].endswith(f"Previous actions:\n{told}")
