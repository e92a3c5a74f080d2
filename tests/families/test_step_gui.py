"""Step-GUI: its summary is all that it knows of the past, and fields end at tabs."""

from agent.families.base import Call, ParseFailure, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.families.shared.tabbed_calls import as_tabbed, tabbed_calls
from foundation.chat_stream import Answer

FAMILY = get_family("step-gui")


def asked(*steps: PastStep) -> str:
    return "".join(FAMILY.request(PromptRequest("Do it.", (None,), steps)).texts())


def test_the_summary_of_the_last_answer_alone_is_the_history() -> None:
    steps = [
        PastStep("", (Call("WAIT", {}),), answer=Answer(f"explain:x\taction:WAIT\tsummary:After {number}."))
        for number in (1, 2)
    ]
    assert "After 2." in asked(*steps)
    assert "After 1." not in asked(*steps)
    nothing = PastStep("", (Call("WAIT", {}),), answer=Answer("explain:x\taction:WAIT"))
    for told in (asked(), asked(nothing), asked(steps[0], nothing)):
        assert "暂无历史操作" in told
        assert "After" not in told


def test_a_reply_stands_with_the_question_that_it_answers() -> None:
    told = asked(PastStep("", (Call("INFO", {"value": "Which one?"}),), user_reply="The second.", note="Slow."))
    assert told.index("Which one?") < told.index("The second.") < told.index("Slow.")


def test_a_point_at_the_very_end_may_be_cut_and_is_refused() -> None:
    cut = tabbed_calls("explain:x\taction:CLICK\tpoint:512,2")
    assert isinstance(cut, ParseFailure)
    assert cut.kind == "truncated"
    assert tabbed_calls("action:CLICK\tpoint:512,2\n") == [Call("CLICK", {"point": "512,2"})]


def test_a_call_is_one_line_whatever_its_values_are() -> None:
    call = Call("TYPE", {"value": "a\tb\nc", "point": [1, 2], "explain": "x", "summary": "y"})
    assert as_tabbed(call) == "explain:x\taction:TYPE\tvalue:a b c\tpoint:1,2\tsummary:y"
