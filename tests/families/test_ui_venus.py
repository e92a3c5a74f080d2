"""UI-Venus: the past is text, and 1.5 can say that there is nothing of the kind."""

import pytest

from agent.core.actions import Absent
from agent.core.geometry import Size
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.families.registry import get_family
from foundation.chat_stream import Answer

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
