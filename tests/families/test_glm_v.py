"""GLM-V: one message, its own memory, and box tokens that a server may leave out."""

from agent.core.geometry import Size
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.families.registry import get_family
from foundation.chat_stream import Answer

FAMILY = get_family("glm-v")
ANSWER = 'Save it.\n<|begin_of_box|>left_click(start_box=\'[1,2]\')<|end_of_box|>\nMemory:\n[{"a": "b"}]'


def asked(*answers: str | None) -> str:
    """The text of a request after these answers, None for one that is not known to the letter."""
    steps = tuple(PastStep("t", (Call("WAIT", {}),), answer=None if text is None else Answer(text)) for text in answers)
    return "".join(FAMILY.request(PromptRequest("Do it.", (None,), steps)).texts())


def test_the_memory_of_the_last_answer_comes_back_and_is_empty_where_there_was_none() -> None:
    assert '\nMemory:\n[{"a": "b"}]\n' in asked(None, ANSWER)
    for answers in ((ANSWER, "DONE()"), (ANSWER, None), (), (ANSWER, "x\nMemory:\n")):
        assert "\nMemory:\n[]\n" in asked(*answers)


def test_a_server_is_told_to_keep_the_box_tokens_and_one_that_does_not_is_understood() -> None:
    assert not FAMILY.request(PromptRequest("Do it.", (None,))).skip_special_tokens
    stripped = ANSWER.replace("<|begin_of_box|>", "").replace("<|end_of_box|>", "")
    with_tokens, without = (FAMILY.parse(Answer(text), [Size(1932, 1092)]) for text in (ANSWER, stripped))
    assert isinstance(with_tokens, Decision)
    assert with_tokens == without


def test_everything_is_one_message_of_the_user_and_skipped_steps_keep_their_numbers() -> None:
    steps = (PastStep("t", (Call("WAIT", {}),), note="Nothing changed."),)
    request = FAMILY.request(PromptRequest("Do it.", (None,), steps, skipped=3))
    assert [message.role for message in request.messages] == ["user"]
    text = "".join(request.texts())
    assert "\nstep 4: Screenshot:(Omitted in context.) Thought: t\nAction: WAIT()\nResult: Nothing changed." in text
