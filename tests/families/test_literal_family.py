"""The literal engine's family: what it is sent comes back as the same values."""

from agent.core.actions import Finish
from agent.core.geometry import Size
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.families.literal.family import render
from agent.families.registry import get_family
from agent.screen.outline import Outline
from foundation.chat_stream import Answer


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
