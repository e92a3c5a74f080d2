"""UI-TARS: what its versions share, and what they do not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import Click
from agent.core.geometry import Size
from agent.families.base import Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.model.request import TextPart
from foundation.chat_stream import Answer


def replayed(name: str, answer: str) -> str:
    """A past answer as a request shows it to the model."""
    step = PastStep("", (Call("wait", {}),), answer=Answer(answer))
    request = get_family(name).request(PromptRequest("Do it.", (None,), (step,), options={"style": "reference"}))
    part = request.messages[2].parts[0]
    assert isinstance(part, TextPart)
    return part.text


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            "Thought: a\nAction: click(start_box='(1,2)') ",
            "Thought: a\nAction: click(start_box='<|box_start|>(1,2)<|box_end|>')",
        ),
        (
            "Action: drag(start_box='(1,2)', end_box='(3,4)')\nAction: wait()",
            "Action: drag(start_box='<|box_start|>(1,2)<|box_end|>', end_box='<|box_start|>(3,4)<|box_end|>')"
            "\n\nwait()",
        ),
        ("Action: click(start_box='(1, 2)')", "Action: click(start_box='(1, 2)')"),
        ("Action: type(content='x') ", "Action: type(content='x') "),
    ],
)
def test_box_tokens_go_back_into_an_answer_of_one_and_a_half_as_its_client_puts_them(answer: str, shown: str) -> None:
    assert replayed("ui-tars-1.5", answer) == shown
    assert replayed("ui-tars", answer) == answer


def test_points_are_pixels_of_the_image_that_was_sent_in_one_and_a_half_only() -> None:
    answer = Answer("Thought: a\nAction: click(start_box='(966,546)')")
    for name, share in (("ui-tars-1.5", 0.5), ("ui-tars", 0.966)):
        read = get_family(name).parse(answer, [Size(1932, 1092)])
        assert isinstance(read, Decision)
        click = read.actions[0]
        assert isinstance(click, Click)
        assert click.point.x / click.point.grid.width == share


def test_the_desktop_style_names_the_applications_and_keeps_the_reference_clean() -> None:
    for style in ("desktop", "reference"):
        prompt = PromptRequest(
            "Do it.", (None,), apps=("Firefox", "Files"), options={"style": style, "language": "German"}
        )
        text = "".join(get_family("ui-tars-1.5").request(prompt).texts())
        assert ("open_app(app_name='')" in text and "Firefox, Files" in text) is (style == "desktop")
        assert "German" in text


def test_a_persons_text_stands_in_the_place_of_the_prompt_before_the_task() -> None:
    request = get_family("ui-tars").request(PromptRequest("Do it.", (None,), system_prompt="Be brief."))
    assert list(request.texts())[1] == "Be brief.\n\n## User Instruction\nDo it.\n"


def test_thinking_goes_back_apart_from_the_call_and_screenshots_are_results_of_a_tool() -> None:
    answer = Answer("<seed:tool_call><function=wait></function></seed:tool_call>", "The page loads.")
    step = PastStep("x", (Call("wait", {}),), (None,), shown=True, answer=answer)
    request = get_family("ui-tars-2").request(PromptRequest("Do it.", (None,), (step,)))
    roles = [message.role for message in request.messages]
    assert roles == ["system", "system", "user", "tool", "assistant", "tool"]
    assert request.messages[4].reasoning == "The page loads."
    assert request.messages[4].parts == (TextPart(answer.content),)
    assert {message.call_id for message in request.messages if message.role == "tool"} == {"1"}


CONSTRAINT = get_family("ui-tars-1.5").constraint({}) or ""


@settings(deadline=None, max_examples=200)
@given(st.from_regex(CONSTRAINT, fullmatch=True))
def test_what_the_constraint_lets_through_is_one_action_or_has_a_value_that_is_none(text: str) -> None:
    read = get_family("ui-tars").parse(Answer(text), [Size(1932, 1092)])
    if isinstance(read, ParseFailure):  # a point off the screen, a key that no keyboard has, a text of blanks
        assert read.kind in ("off_screen", "bad_argument"), read
        return
    assert len(read.actions) == 1


@pytest.mark.parametrize("name", ["ui-tars", "ui-tars-1.5"])
def test_the_constraint_lets_through_what_its_models_write(name: str) -> None:
    family = get_family(name)
    pattern = re.compile(family.constraint({}) or "")
    for call in (Call("click", {"start_box": "(1,2)"}), Call("hotkey", {"key": "ctrl c"}), Call("wait", {})):
        assert pattern.fullmatch(family.written("First the menu.", [call]))
    assert get_family("doubao-ui-tars").constraint({}) is None
