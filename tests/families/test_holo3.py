"""Holo3 is asked in one of two formats, and a run stays in it."""

import json
from typing import Any

import pytest

from agent.families.base import Call, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.model.request import ChatRequest, to_openai
from foundation.chat_stream import Answer, ToolCall

CLICK = Call("click_desktop", {"element": "OK", "x": 500, "y": 400}, "call-7")
WRITE = Call("write_desktop", {"content": "é"}, "call-8")
PAST = PastStep("Confirm.", (CLICK, WRITE), (None,), note="Your last action changed nothing on the screen.")


def asked(steps: tuple[PastStep, ...] = (), model: str = "", **options: Any) -> ChatRequest:
    prompt = PromptRequest("Make it dark", (None,), steps, options=options, model=model)
    return get_family("holo3").request(prompt)


def sent(request: ChatRequest) -> list[dict[str, Any]]:
    return to_openai(request.messages, lambda _image: "IMAGE")


def test_the_schema_is_in_the_system_text_and_a_constraint_and_wants_a_note() -> None:
    request = asked()
    system = sent(request)[0]["content"][0]["text"]
    written = system.partition("<output_format>\n```json\n")[2].partition("\n```\n</output_format>")[0]
    assert json.loads(written) == request.schema
    assert request.schema is not None
    assert request.schema["required"] == ["note", "thought", "tool_call"]
    assert request.schema["properties"]["note"]["minLength"] == 1
    assert not request.tools
    assert (request.sampling.temperature, request.reasoning_effort) == (0.8, "medium")
    assert request.template_arguments == {"enable_thinking": True}


def test_a_batch_is_an_array_in_the_schema() -> None:
    schema = asked(batch=True).schema
    assert schema is not None
    assert schema["properties"]["tool_calls"]["type"] == "array"


@pytest.mark.parametrize(("model", "options"), [("Hcompany/Holo4-27B", {}), ("holo-3.1", {"format": "native"})])
def test_native_calls_have_tools_and_results_of_the_tool(model: str, options: dict[str, Any]) -> None:
    answer = Answer("The file is a.txt.", "I think.", (ToolCall("call-7", CLICK.name, json.dumps(CLICK.arguments)),))
    past = PastStep("I think.", (CLICK, WRITE), (None,), note="Nothing changed.", answer=answer)
    request = asked((past,), model, **options)
    assert request.tool_choice == "required"
    assert request.schema is None
    assert "click_desktop" in [tool["function"]["name"] for tool in request.tools]
    messages = sent(request)
    assert "output_format" not in messages[0]["content"][0]["text"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    said = messages[2]
    assert said["content"] == [{"type": "text", "text": "The file is a.txt."}]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == CLICK.arguments
    assert "reasoning_content" not in said, "the template drops reasoning anyway"
    assert [message["tool_call_id"] for message in messages[3:5]] == ["call-7", "call-8"]
    assert messages[4]["content"][0]["text"] == "Nothing changed."


def test_a_model_that_is_not_known_to_call_is_asked_for_an_object() -> None:
    assert asked(model="Hcompany/Holo3-35B-A3B").tool_choice is None
    assert asked(model="Hcompany/Holo4-27B", format="structured").tool_choice is None


def test_every_call_of_a_batch_gets_its_result_and_the_note_stands_in_the_last() -> None:
    results = [message["content"][0]["text"] for message in sent(asked((PAST,)))[3:5]]
    assert results[0] == '<tool_output tool="click_desktop">\nDone.\n</tool_output>'
    assert results[1].startswith('<tool_output tool="write_desktop">\nYour last action changed nothing')


def test_an_answer_is_replayed_as_the_parsed_object_with_its_note() -> None:
    raw = (
        '<think>hm</think>Well: {"note": "a.txt", "thought": "Go.",\n "tool_call": {"tool_name": "wait", "seconds": 2}}'
    )
    past = PastStep("Go.", (Call("wait", {"seconds": 2}),), (None,), answer=Answer(raw))
    replayed = sent(asked((past,)))[2]["content"][0]["text"]
    assert replayed == '{"note":"a.txt","thought":"Go.","tool_call":{"tool_name":"wait","seconds":2}}'


def test_a_step_that_is_told_by_its_action_is_replayed_as_a_tool() -> None:
    past = PastStep("Go.", (Call("computer_use", {"action": "click", "x": 1, "y": 2}),), (None,))
    replayed = json.loads(sent(asked((past,)))[2]["content"][0]["text"])
    assert replayed["tool_call"] == {"tool_name": "click", "x": 1, "y": 2}


def test_a_person_s_own_system_text_keeps_the_task_and_the_schema() -> None:
    prompt = PromptRequest("Make it dark", (None,), system_prompt="Be quick.")
    text = sent(get_family("holo3").request(prompt))[0]["content"][0]["text"]
    assert text.startswith("Be quick.\n\n<task>\nMake it dark\n</task>\n\n<output_format>")


def test_no_more_images_are_sent_than_do_it_good() -> None:
    assert get_family("holo3").facts.most_images == 3
