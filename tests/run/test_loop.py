"""The loop with a scripted model: what it does with each kind of answer, and in which order it tells."""

import json
from dataclasses import replace
from typing import Any

import pytest
from stubs.desk import Desk, FakeHand, FakePerson, FakeScreen, every, finish, notes, run
from stubs.endpoint import DONE, act, pictures, raw, refuse, say, texts, whole
from stubs.several import Several
from stubs.two_models import go

from agent.core.actions import Action, CallTool, Click, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.core.notes import Note, NoteKind, read_notes
from agent.desktop.input.hand import DryRunHand
from agent.desktop.protocol.hand import ActionFailedError
from agent.events.run_events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Event,
    ModelDelta,
    Observed,
    StepFinished,
    Warned,
)
from agent.run.control import Steering
from agent.run.loop.context import ToolAnswer, ToolFailedError
from agent.safety.policy import Approval, Question
from agent.screen.outline import Element
from foundation.errors import EnvironmentLacksError, ExitStatus

CLICK = act("click", coordinate=[500, 500])


async def test_a_step_tells_what_was_seen_said_decided_and_done_in_that_order() -> None:
    events, desk = await run([CLICK, DONE])
    kinds: list[str] = []
    for event in events:
        if type(event).__name__ not in kinds[-1:]:
            kinds.append(type(event).__name__)
    step = ["Observed", "ModelDelta", "Decided"]
    assert kinds == [*step, "Acted", "StepFinished", *step, "StepFinished", "Receipt", "RunFinished"]
    assert finish(events).status is ExitStatus.DONE
    assert [event.step for event in every(events, Observed)] == [1, 2]
    (done,) = desk.hand.done
    assert done == Click(DesktopPoint(500 * 256 / 999, 500 * 256 / 999))
    assert every(events, Decided)[0].target == done
    assert "".join(event.text for event in every(events, ModelDelta) if event.step == 1) == CLICK


async def test_a_wait_is_done_when_it_is_over() -> None:
    events, _ = await run([act("wait", time=0.2), DONE])
    waited = next(event for event in events if isinstance(event, Acted))
    assert waited.executed
    assert waited.milliseconds >= 190


async def test_what_was_held_and_opened_is_let_go_however_a_run_ends() -> None:
    for script in ([DONE], [act("terminate", status="fail")], [refuse(400, "no")], ["junk", "junk", "junk"]):
        _, desk = await run(script)
        assert desk.hand.closed
        assert desk.screen.closed


async def test_usage_adds_up_over_all_requests() -> None:
    events, _ = await run([say("junk", prompt=10, completion=1), say(DONE, prompt=30, completion=4, cached=8)])
    usage = finish(events).usage
    assert (usage.prompt, usage.completion, usage.cached) == (40, 5, 8)


# Answers that end a run


async def test_terminate_with_fail_is_giving_up() -> None:
    events, _ = await run([act("terminate", status="fail")])
    assert (finish(events).outcome, finish(events).status) == ("gave_up", ExitStatus.NOT_DONE)


async def test_an_answer_to_the_person_ends_the_task_with_its_text() -> None:
    events, _ = await run([act("answer", text="It is 21 degrees.")])
    assert (finish(events).outcome, finish(events).message) == ("done", "It is 21 degrees.")


# Answers that cannot be read


async def test_an_unreadable_answer_goes_back_to_the_model_with_what_it_said() -> None:
    events, desk = await run(["I would click somewhere.", CLICK, DONE])
    assert finish(events).outcome == "done"
    first = every(events, Decided)[0]
    assert first.failure is not None
    assert first.target is None
    retried = desk.endpoint.requests[1]
    assert texts(retried, "assistant")[-1] == "I would click somewhere."
    assert first.failure.message in texts(retried, "user")[-1]
    # Feedback belongs to its step: the next request is as if the model had answered well at once.
    assert "I would click somewhere." not in str(texts(desk.endpoint.requests[2]))


async def test_after_two_unreadable_retries_the_run_is_unparsable_and_nothing_was_touched() -> None:
    events, desk = await run(["junk", "", '<tool_call>{"name": "mobile_use"', DONE])
    assert (finish(events).outcome, finish(events).status) == ("unparsable", ExitStatus.NOT_DONE)
    assert len(desk.endpoint.requests) == 3
    assert len(every(events, Decided)) == 3
    assert desk.hand.done == []


@pytest.mark.parametrize(("kind", "expected"), [("vllm", [False, False, True]), ("other", [False, False, False])])
async def test_only_the_last_try_is_constrained_and_only_where_the_server_can(kind: Any, expected: list[bool]) -> None:
    _, desk = await run(["junk", "junk", DONE], kind=kind)
    assert ["structured_outputs" in request for request in desk.endpoint.requests] == expected


async def test_an_answer_cut_by_the_token_limit_is_named_so() -> None:
    events, _ = await run([say("<thinking>and so", finish="length"), DONE])
    failure = every(events, Decided)[0].failure
    assert failure is not None
    assert failure.kind == "truncated"
    assert "token limit" in failure.message


# What the model is told


async def test_an_action_without_effect_is_told_to_the_model() -> None:
    screen = FakeScreen()
    events, desk = await run([CLICK, DONE], screen=screen, hand=FakeHand(screen, changes=False))
    assert notes(events)[0] == str(Note("no_effect"))
    assert every(events, StepFinished)[0].changed is False
    assert str(Note("no_effect")) in texts(desk.endpoint.requests[1], "user")


async def test_an_action_with_effect_needs_no_note() -> None:
    events, _ = await run([CLICK, DONE])
    assert notes(events)[0] is None
    assert every(events, StepFinished)[0].changed is True


async def test_an_action_that_fails_goes_back_to_the_model_with_its_reason() -> None:
    screen = FakeScreen()
    hand = FakeHand(screen)

    def fail(_: object) -> str:
        raise ActionFailedError("no installed application is called 'Foo'")

    hand.behave = fail
    events, desk = await run([act("open", text="Foo"), DONE], screen=screen, hand=hand)
    (acted,) = every(events, Acted)
    assert acted.executed is False
    assert acted.error == "no installed application is called 'Foo'"
    assert any("'Foo'" in text for text in texts(desk.endpoint.requests[1], "user"))
    assert finish(events).outcome == "done"


async def test_waiting_touches_nothing_and_is_no_failure_to_change_anything() -> None:
    events, desk = await run([act("wait", seconds=0.01), DONE])
    assert desk.hand.done == []
    assert notes(events)[0] is None


async def test_a_call_of_an_unknown_tool_is_told_as_a_failure() -> None:
    call = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'
    events, desk = await run([call, DONE])
    told = str(Note("failed", "there is no tool named “weather”"))
    assert (every(events, StepFinished)[0].reply, every(events, StepFinished)[0].note) == (None, told)
    assert every(events, Acted)[0].error == "there is no tool named “weather”"
    assert told in texts(desk.endpoint.requests[1], "user")


# Asking the person


async def test_the_persons_reply_goes_back_to_the_model() -> None:
    events, desk = await run([act("ask_user", text="Which one?"), DONE], person=FakePerson(["The red one"]))
    assert desk.person.questions == ["Which one?"]
    assert texts(desk.endpoint.requests[1], "user")[-1] == "The red one"
    assert every(events, StepFinished)[0].reply == "The red one"


async def test_where_nobody_answers_the_model_is_told_so() -> None:
    _, desk = await run([act("ask_user", text="Which one?"), DONE], person=FakePerson([None]))
    assert texts(desk.endpoint.requests[1], "user")[-1] == str(Note("nobody"))


async def test_after_the_person_answered_the_screen_is_looked_at_anew() -> None:
    screen, person = FakeScreen(), FakePerson(["I logged in for you"])

    def log_in() -> None:
        screen.marks = 255

    person.before_reply = log_in
    events, _ = await run([CLICK, act("ask_user", text="Log in, please"), DONE], screen=screen, person=person)
    seen = [event.image.digest for event in every(events, Observed)]
    assert seen[2] != seen[1]


async def test_what_mai_agent_refuses_itself_is_no_word_of_the_person() -> None:
    person = FakePerson(approvals=[Approval(allowed=False, by="mai-agent", note="Nobody can be asked here.")])
    _, desk = await run([act("key", keys="alt+f4"), DONE], approve="risky", person=person)
    sent = " ".join(texts(desk.endpoint.requests[1], "user"))
    assert "That could not be done: Nobody can be asked here." in sent
    assert "The person says" not in sent


async def test_a_refused_action_is_not_carried_out_and_the_reason_goes_back() -> None:
    person = FakePerson(approvals=[Approval(allowed=False, by="you", note="Use the other window.")])
    events, desk = await run([act("key", keys="alt+f4"), DONE], approve="risky", person=person)
    assert desk.hand.done == []
    assert every(events, Acted) == []
    assert every(events, ApprovalGiven)[0].allowed is False
    assert any("Use the other window." in text for text in texts(desk.endpoint.requests[1], "user"))


async def test_an_allowed_action_is_carried_out_after_the_person_agreed() -> None:
    person = FakePerson(approvals=[Approval(allowed=True, by="you")])
    events, desk = await run([act("type", text="sudo ls"), DONE], approve="risky", person=person)
    assert desk.hand.done == [TypeText("sudo ls")]
    order = [type(event) for event in events if isinstance(event, ApprovalAsked | ApprovalGiven | Acted)]
    assert order == [ApprovalAsked, ApprovalGiven, Acted]


async def test_the_screen_is_looked_at_anew_after_a_refusal() -> None:
    screen = FakeScreen()

    class Elsewhere(FakePerson):
        async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
            given = await super().approve(action, question)
            screen.marks += not given.allowed  # they went to another window to say no
            return given

    person = Elsewhere(approvals=[Approval(allowed=True, by="you"), Approval(allowed=False, by="you")])
    script = [CLICK, act("click", coordinate=[1, 1]), DONE]
    events, desk = await run(script, approve="ask", screen=screen, person=person)
    seen = [event.image.digest for event in every(events, Observed)]
    assert len(set(seen)) == 3
    assert len(desk.hand.done) == 1


# Repetition


async def test_a_model_that_repeats_itself_is_told_at_three_and_stopped_at_five() -> None:
    screen = FakeScreen()
    events, desk = await run([CLICK] * 9, screen=screen, hand=FakeHand(screen, changes=False))
    assert [str(Note("repeated")) in (note or "") for note in notes(events)] == [False, False, True, True]
    assert (finish(events).outcome, finish(events).status) == ("looping", ExitStatus.NOT_DONE)
    assert len(desk.hand.done) == 4


async def test_the_same_action_on_changing_screens_is_no_loop() -> None:
    events, desk = await run([CLICK] * 8 + [DONE])
    assert finish(events).outcome == "done"
    assert len(desk.hand.done) == 8


# Budgets


async def test_the_budget_of_steps_ends_the_run() -> None:
    events, desk = await run([CLICK] * 5, settings={"max_steps": 3})
    assert (finish(events).outcome, finish(events).status) == ("out_of_budget", ExitStatus.NOT_DONE)
    assert "--max-steps" in finish(events).message
    assert (finish(events).steps, len(desk.hand.done)) == (3, 3)


async def test_the_budget_of_seconds_ends_the_run() -> None:
    events, _ = await run([CLICK] * 50, settings={"max_seconds": 0.3})
    assert finish(events).outcome == "out_of_budget"
    assert "--max-seconds" in finish(events).message


async def test_the_budget_of_tokens_ends_the_run() -> None:
    events, _ = await run([say(CLICK, prompt=1000, completion=100)] * 9, settings={"max_tokens": 2000})
    assert finish(events).outcome == "out_of_budget"
    assert "--max-tokens" in finish(events).message
    assert finish(events).steps == 2


# Dry runs and troubles


async def test_a_dry_run_goes_the_whole_way_and_touches_nothing() -> None:
    events, desk = await run(
        [CLICK, act("key", keys="alt+f4"), DONE],
        hand=DryRunHand(), approve="ask", settings={"dry_run": True},
    )  # fmt: skip
    acted = every(events, Acted)
    assert [(event.executed, event.dry_run) for event in acted] == [(False, True), (False, True)]
    assert all(event.detail.startswith("would ") for event in acted)
    assert desk.person.asked == []
    assert desk.screen.marks == 0
    assert notes(events)[0] == str(Note("dry_run"))
    assert finish(events).outcome == "done"


async def test_a_screen_that_goes_away_ends_the_run_in_a_sentence() -> None:
    screen = FakeScreen()
    hand = FakeHand(screen)

    def lose(_: object) -> None:
        screen.trouble = EnvironmentLacksError("The screen can no longer be captured.", "Is it still there?")

    hand.behave = lose  # type: ignore[assignment]
    events, _ = await run([CLICK, DONE], screen=screen, hand=hand)
    assert (finish(events).outcome, finish(events).status) == ("failed", ExitStatus.ENVIRONMENT)
    assert finish(events).message == "The screen can no longer be captured. Is it still there?"


async def test_a_retry_voids_what_was_shown_and_is_told() -> None:
    events, _ = await run([refuse(503, "loading"), DONE])
    assert any(event.restart for event in every(events, ModelDelta))
    assert any("503" in event.message for event in every(events, Warned))
    assert finish(events).outcome == "done"


async def test_that_another_model_answered_is_told_once_and_stays_in_the_record() -> None:
    other = [raw(200, whole(text, "MAI-UI-2B"), "application/json") for text in (CLICK, CLICK, DONE)]
    events, _ = await run(other)
    told = [event.message for event in every(events, Warned) if "MAI-UI-2B" in event.message]
    assert len(told) == 1
    assert "MAI-UI-8B" in told[0]
    assert [event.model for event in every(events, Decided)] == ["MAI-UI-2B"] * 3


async def test_an_endpoint_that_stays_broken_ends_the_run_in_a_sentence() -> None:
    events, _ = await run([CLICK, refuse(500, "boom"), refuse(500, "boom")])
    assert (finish(events).outcome, finish(events).status) == ("failed", ExitStatus.ENVIRONMENT)
    assert "boom" in finish(events).message
    assert finish(events).steps == 2


async def test_every_request_ends_with_the_screen_as_it_is_now() -> None:
    _, desk = await run([CLICK, CLICK, DONE])
    last = [body["messages"][-1]["content"] for body in desk.endpoint.requests]
    assert all(len(content) == 1 and content[0]["type"] == "image_url" for content in last)
    urls = [pictures(body)[-1]["image_url"]["url"] for body in desk.endpoint.requests]
    assert len(set(urls)) == 3


# Several actions in one answer, and tools


class Weather:
    """One tool."""

    names = ("weather",)

    def __init__(self) -> None:
        self.called: list[Any] = []

    async def call(self, name: str, arguments: Any) -> ToolAnswer:
        self.called.append((name, arguments))
        if arguments["city"] != "Rome":
            raise ToolFailedError("no such city")
        return ToolAnswer("21 degrees")


async def test_several_actions_of_one_answer_are_carried_out_in_order_and_told_apart() -> None:
    events, desk = await run([act("type", text="click one two"), DONE], family=Several())
    assert [type(action) for action in desk.hand.done] == [Click, TypeText, TypeText]
    assert [event.index for event in every(events, Acted)] == [0, 1, 2]
    assert len(every(events, Decided)[0].targets) == 3
    assert [event.step for event in every(events, StepFinished)] == [1, 2]


async def test_each_action_is_judged_and_after_a_refused_one_the_rest_is_left_out() -> None:
    person = FakePerson(approvals=[Approval(allowed=False, by="you")])
    events, desk = await run(
        [act("type", text="one alt+f4 two three"), DONE], approve="risky", person=person, family=Several()
    )
    assert desk.hand.done == [TypeText("one")]
    assert [(event.index, event.reason != "") for event in every(events, ApprovalAsked)] == [(1, True)]
    assert str(Note("left_out", "2")) in (notes(events)[0] or "")


async def test_an_end_after_other_actions_comes_when_they_were_carried_out() -> None:
    events, desk = await run([act("type", text="one done")], family=Several())
    assert desk.hand.done == [TypeText("one")]
    assert finish(events).outcome == "done"
    person = FakePerson(approvals=[Approval(allowed=False, by="you")])
    events, _ = await run([act("type", text="alt+f4 done"), DONE], approve="risky", person=person, family=Several())
    assert finish(events).steps == 2


def calls(*arguments: dict[str, Any]) -> str:
    """An answer of a model of Qwen's, which makes several calls."""
    written = (json.dumps({"name": "computer_use", "arguments": each}) for each in arguments)
    return "\n".join(["Action: I go on.", *(f"<tool_call>\n{each}\n</tool_call>" for each in written)])


def pressing(x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"action": "left_click", "coordinate": [x, y], **more}


@pytest.mark.parametrize(
    ("second", "done", "note"),
    [
        (pressing(900, 900), 3, None),
        (pressing(100, 100), 1, "target_changed"),  # the first click draws a box there
        (pressing(800, 100), 3, None),  # the first click's own place may change
        ({"action": "wait"}, 2, None),
        ({"action": "fly"}, 1, "unread"),
    ],
)
async def test_the_calls_of_an_answer_are_carried_out_until_one_cannot_be(
    second: dict[str, Any], done: int, note: NoteKind | None
) -> None:
    end = {"action": "terminate", "status": "success"}
    script = [calls(pressing(800, 100), second, {"action": "type", "text": "x"}), calls(end)]
    events, desk = await run(script, family="qwen3-vl")
    assert len(desk.hand.done) == done
    told = [one.kind for one in read_notes(notes(events)[0] or "") if one.kind != "no_effect"]
    assert told[:1] == ([note] if note else [])
    assert finish(events).outcome == "done"
    if note:
        assert str(Note(note))[:30] in texts(desk.endpoint.requests[1], "user")[-1]


@pytest.mark.parametrize(
    ("was", "comes", "role", "clicks"),
    [
        ("Keep", "Delete", "push button", 1),  # only once: a toolkit's two answers may always differ
        ("Keep", "Keep", "push button", 2),
        ("12:04", "12:05", "push button", 2),
        ("Keep", "Delete", "label", 2),  # a part of the button, or what lies around it
        ("Keep", "", "push button", 2),
    ],
)
async def test_what_came_to_a_point_since_the_model_looked_is_not_clicked(
    was: str, comes: str, role: str, clicks: int
) -> None:
    button = Element(1, "push button", was, Region(100, 100, 60, 60), source="tree")
    hit = replace(button, role=role, name=comes)
    # With marks, a step waits for its outline; this model's answer would often be there before.
    ran = await go([say(CLICK), say(CLICK), say(DONE)], [], elements=(button,), hit=hit, see="marks")
    assert len([one for one in every(ran.events, Acted) if isinstance(one.target, Click) and one.executed]) == clicks
    told = [note.detail for note in read_notes(notes(ran.events)[0] or "") if note.kind == "failed"]
    assert told == (["“Delete” came where “Keep” was meanwhile: look again"] if clicks == 1 else [])


async def test_an_action_that_fails_ends_an_answer_of_several_calls() -> None:
    screen = FakeScreen()
    hand = FakeHand(screen)

    def fail(action: Action[DesktopPoint]) -> None:
        if isinstance(action, TypeText):
            raise ActionFailedError("this field is locked")

    hand.behave = fail
    script = [calls(pressing(800, 100), {"action": "type", "text": "x"}, pressing(800, 100)), calls(pressing(1, 1))]
    events, desk = await run(script, family="qwen3-vl", screen=screen, hand=hand, settings={"max_steps": 2})
    assert [type(action) for action in desk.hand.done] == [Click, Click]
    assert [one.kind for one in read_notes(notes(events)[0] or "")] == ["failed", "left_out"]


async def test_what_follows_a_question_waits_for_a_look_at_the_reply() -> None:
    events, desk = await run([act("type", text="ask one"), DONE], person=FakePerson(["The red"]), family=Several())
    assert desk.hand.done == []
    assert every(events, StepFinished)[0].reply == "The red"


CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'


async def test_a_tool_is_called_after_policy_and_person_agreed_and_its_result_goes_back() -> None:
    tools, person = Weather(), FakePerson(approvals=[Approval(allowed=True, by="you")])
    events, desk = await run([CALL, DONE], approve="risky", person=person, tools=tools)
    assert tools.called == [("weather", {"city": "Rome"})]
    assert [action for action, _ in person.asked] == [CallTool("weather", {"city": "Rome"})]
    assert every(events, StepFinished)[0].reply == "21 degrees"
    assert "21 degrees" in texts(desk.endpoint.requests[1], "user")
    assert every(events, Acted)[0].executed


async def test_a_tool_that_was_refused_fails_or_is_called_in_a_dry_run_gives_no_result() -> None:
    tools, person = Weather(), FakePerson(approvals=[Approval(allowed=False, by="you")])
    events, _ = await run([CALL, DONE], approve="risky", person=person, tools=tools)
    assert tools.called == []
    assert notes(events)[0] == str(Note("refused"))
    events, _ = await run([CALL, DONE], tools=tools, hand=DryRunHand(), settings={"dry_run": True})
    assert tools.called == []
    assert every(events, Acted)[0].dry_run
    events, _ = await run([CALL.replace("Rome", "Rom"), DONE], tools=tools)
    assert notes(events)[0] == str(Note("failed", "no such city"))


async def test_a_held_run_shows_a_tool_call_first() -> None:
    tools, person = Weather(), FakePerson(approvals=[Approval(allowed=False, by="you")])
    steering = Steering()
    steering.step()
    await run([CALL, DONE], person=person, tools=tools, steering=steering)
    assert tools.called == []
    assert len(person.asked) == 1


async def test_after_a_later_action_was_refused_the_screen_is_looked_at_anew() -> None:
    screen = FakeScreen()

    class Elsewhere(FakePerson):
        async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
            screen.marks = 255  # they went to another window to say no
            return await super().approve(action, question)

    person = Elsewhere(approvals=[Approval(allowed=False, by="you")])
    script = [act("type", text="one alt+f4"), DONE]
    events, _ = await run(script, approve="risky", screen=screen, person=person, family=Several())
    before, after = (event.digest for event in every(events, Observed))
    fresh, _ = await run([DONE], screen=screen)
    assert after == every(fresh, Observed)[0].digest != before


async def test_a_tool_is_not_called_after_a_stop_and_nothing_follows_a_call_unseen() -> None:
    tools = Weather()

    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Decided):
            desk.stop.stop("enough")

    await run([CALL, DONE], watch, tools=tools)
    assert tools.called == []
    events, desk = await run([act("type", text="weather one"), DONE], tools=tools, family=Several())
    assert (len(tools.called), desk.hand.done) == (1, [])
    assert str(Note("left_out", "1")) in (notes(events)[0] or "")
