"""What only one family does: its own history, replies, tokens and refusals."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.actions import Absent, Click, Finish
from agent.core.geometry import Size
from agent.families.base import Call, Decision, ParseFailure, PastStep, PromptRequest
from agent.families.literal.family import render
from agent.families.registry import get_family
from agent.families.step_gui.family import as_tabbed, tabbed_calls
from agent.model.request import TextPart
from agent.screen.outline import Outline
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


SENT = [Size(1932, 1092)]


@pytest.mark.parametrize("name", ["ui-venus-1.5", "ui-venus"])
@pytest.mark.parametrize(("text", "grounding"), [("[-1,-1]", True), ("<action>Click(box=(-1,-1))</action>", False)])
def test_the_point_that_stands_for_nothing_is_no_click_in_the_corner(name: str, text: str, grounding: bool) -> None:
    family = get_family(name)
    read = (family.parse_grounding if grounding else family.parse)(Answer(text), SENT)
    assert isinstance(read, Decision)
    assert read.actions == (Absent(),)


def test_one_and_a_half_is_told_how_to_say_that_a_thing_is_absent() -> None:
    for name, told in (("ui-venus-1.5", True), ("ui-venus", False)):
        assert ("[-1,-1]" in "".join(get_family(name).grounding_request("Save", None).texts())) == told


def test_what_came_back_stands_behind_the_step_that_it_came_to() -> None:
    answer = Answer("<think>The menu.</think>\n<action>Wait()</action>\n<conclusion>Waited.</conclusion>")
    step = PastStep("x", (Call("Wait", {}),), answer=answer, note="Nothing changed.")
    request = get_family("ui-venus-1.5").request(PromptRequest("Do it.", (None,), (step, step), skipped=2))
    text = "".join(request.texts())
    assert "\nStep 2: <think>The menu.</think><action>Wait()</action>\nResult: Nothing changed.\nStep 3: " in text
    assert len(request.messages) == 2


@pytest.mark.parametrize(("message", "asked"), [(', message="Pay now"', True), (', message=""', False), ("", False)])
def test_a_tap_with_a_message_is_one_that_a_person_must_agree_to(message: str, asked: bool) -> None:
    answer = Answer(f'<think>a</think><answer>do(action="Tap", element=[5,6]{message})</answer>')
    read = get_family("autoglm-phone").parse(answer, [Size(1920, 1088)])
    assert isinstance(read, Decision)
    assert bool(read.objection) == asked


def test_a_desktop_has_hotkeys_and_a_phone_has_none() -> None:
    family = get_family("autoglm-phone")
    for style, told in (("desktop", True), ("reference", False)):
        request = family.request(PromptRequest("do it", (None,), apps=("Files",), options={"style": style}))
        assert ("Hotkey" in "".join(request.texts())) == told


STEP_GUI = get_family("step-gui")


def step_gui_is_asked(*steps: PastStep) -> str:
    return "".join(STEP_GUI.request(PromptRequest("Do it.", (None,), steps)).texts())


def test_the_summary_of_the_last_answer_alone_is_the_history() -> None:
    steps = [
        PastStep("", (Call("WAIT", {}),), answer=Answer(f"explain:x\taction:WAIT\tsummary:After {number}."))
        for number in (1, 2)
    ]
    assert "After 2." in step_gui_is_asked(*steps)
    assert "After 1." not in step_gui_is_asked(*steps)
    nothing = PastStep("", (Call("WAIT", {}),), answer=Answer("explain:x\taction:WAIT"))
    for told in (step_gui_is_asked(), step_gui_is_asked(nothing), step_gui_is_asked(steps[0], nothing)):
        assert "暂无历史操作" in told
        assert "After" not in told


def test_a_reply_stands_with_the_question_that_it_answers() -> None:
    told = step_gui_is_asked(
        PastStep("", (Call("INFO", {"value": "Which one?"}),), user_reply="The second.", note="Slow.")
    )
    assert told.index("Which one?") < told.index("The second.") < told.index("Slow.")


def test_a_point_at_the_very_end_may_be_cut_and_is_refused() -> None:
    cut = tabbed_calls("explain:x\taction:CLICK\tpoint:512,2")
    assert isinstance(cut, ParseFailure)
    assert cut.kind == "truncated"
    assert tabbed_calls("action:CLICK\tpoint:512,2\n") == [Call("CLICK", {"point": "512,2"})]


def test_a_call_is_one_line_whatever_its_values_are() -> None:
    call = Call("TYPE", {"value": "a\tb\nc", "point": [1, 2], "explain": "x", "summary": "y"})
    assert as_tabbed(call) == "explain:x\taction:TYPE\tvalue:a b c\tpoint:1,2\tsummary:y"


GLM_V = get_family("glm-v")
ANSWER = 'Save it.\n<|begin_of_box|>left_click(start_box=\'[1,2]\')<|end_of_box|>\nMemory:\n[{"a": "b"}]'


def glm_v_is_asked(*answers: str | None) -> str:
    """The text of a request after these answers, None for one that is not known to the letter."""
    steps = tuple(PastStep("t", (Call("WAIT", {}),), answer=None if text is None else Answer(text)) for text in answers)
    return "".join(GLM_V.request(PromptRequest("Do it.", (None,), steps)).texts())


def test_the_memory_of_the_last_answer_comes_back_and_is_empty_where_there_was_none() -> None:
    assert '\nMemory:\n[{"a": "b"}]\n' in glm_v_is_asked(None, ANSWER)
    for answers in ((ANSWER, "DONE()"), (ANSWER, None), (), (ANSWER, "x\nMemory:\n")):
        assert "\nMemory:\n[]\n" in glm_v_is_asked(*answers)


def test_a_server_is_told_to_keep_the_box_tokens_and_one_that_does_not_is_understood() -> None:
    assert not GLM_V.request(PromptRequest("Do it.", (None,))).skip_special_tokens
    stripped = ANSWER.replace("<|begin_of_box|>", "").replace("<|end_of_box|>", "")
    with_tokens, without = (GLM_V.parse(Answer(text), [Size(1932, 1092)]) for text in (ANSWER, stripped))
    assert isinstance(with_tokens, Decision)
    assert with_tokens == without


def test_everything_is_one_message_of_the_user_and_skipped_steps_keep_their_numbers() -> None:
    steps = (PastStep("t", (Call("WAIT", {}),), note="Nothing changed."),)
    request = GLM_V.request(PromptRequest("Do it.", (None,), steps, skipped=3))
    assert [message.role for message in request.messages] == ["user"]
    text = "".join(request.texts())
    assert "\nstep 4: Screenshot:(Omitted in context.) Thought: t\nAction: WAIT()\nResult: Nothing changed." in text


def test_the_engine_gets_the_typed_request_and_people_a_chat():
    seen = Outline(Size(10, 10), ())
    step = PastStep("click it", (Call("computer_use", {"action": "wait"}),), images=(None,), shown=True, outline=seen)
    prompt = PromptRequest("do it", (None,), steps=(step,), outline=seen)
    request = get_family("literal").request(prompt)
    kinds = [[type(part).__name__ for part in message.parts] for message in request.messages]
    assert kinds == [["TextPart"], ["TextPart"], ["ImagePart"]]
    assert request.native["prompt"] is prompt


def test_the_end_of_a_run_brings_its_evidence():
    arguments = {"action": "terminate", "status": "success", "text": "x", "evidence": ["it is on"], "verified": True}
    result = get_family("literal").parse(Answer(render("so", Call("computer_use", arguments))), (Size(10, 10),))
    assert isinstance(result, Decision)
    assert result.actions == (Finish(True, "x", ("it is on",), True),)
