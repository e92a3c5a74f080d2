"""A run that a person steers: pauses, single steps, words to the model, changed actions, and their own hand."""

import asyncio
from collections.abc import Callable

import pytest
from stubs.desk import Desk, FakeHand, FakePerson, FakeScreen, FakeSurroundings, every, run
from stubs.endpoint import DONE, act, texts

from agent.core.actions import Action, Click, OpenApp, TypeText, points_of
from agent.core.geometry import DesktopPoint
from agent.events.run_events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Dropped,
    Event,
    Observed,
    Paused,
    PersonSaid,
    Resumed,
    RunFinished,
    StepFinished,
    UserActed,
)
from agent.run.control import Steering
from agent.safety.naming import Aim
from agent.safety.policy import Approval, Question
from agent.safety.situation import UNKNOWN, Place, Situation

CLICK = act("click", coordinate=[500, 500])
YES = Approval(allowed=True, by="you")


def later(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(0.05, call)


async def test_a_paused_run_waits_before_its_next_step_and_goes_on_when_resumed() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, StepFinished) and event.step == 1:
            desk.steering.pause()
        if isinstance(event, Paused):
            later(desk.steering.resume)

    events, desk = await run([CLICK, CLICK, DONE], watch)
    kinds = [type(event) for event in events]
    paused = kinds.index(Paused)
    assert kinds[paused - 1 : paused + 3] == [StepFinished, Paused, Resumed, Observed]
    assert every(events, Paused) == [Paused(2, "you paused it")]
    assert len(desk.hand.done) == 2


async def test_the_time_of_a_pause_is_not_the_runs_time() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, StepFinished) and event.step == 1:
            desk.steering.pause()
        if isinstance(event, Paused):
            asyncio.get_running_loop().call_later(4.0, desk.steering.resume)

    events, _ = await run([CLICK, DONE], watch, settings={"max_seconds": 3.0})
    assert every(events, RunFinished)[0].outcome == "done"


async def test_a_pause_while_the_model_thinks_puts_its_action_to_the_person() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Decided) and event.step == 1:
            desk.steering.pause()
        if isinstance(event, ApprovalGiven):
            desk.steering.resume()

    person = FakePerson(approvals=[YES])
    events, desk = await run([CLICK, CLICK, DONE], watch, person=person)
    assert [event.reason for event in every(events, ApprovalAsked)] == ["you paused it"]
    assert len(desk.hand.done) == 2


async def test_single_steps_put_every_action_to_the_person() -> None:
    steering = Steering()
    steering.step()
    events, desk = await run([CLICK, CLICK, DONE], steering=steering, person=FakePerson(approvals=[YES, YES]))
    assert [event.reason for event in every(events, ApprovalAsked)] == ["you go step by step"] * 2
    assert len(desk.hand.done) == 2


@pytest.mark.parametrize("hold", ["you paused it", "you go step by step"])
async def test_what_was_allowed_for_good_is_put_to_a_person_who_holds_the_run(hold: str) -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Decided) and event.step == 2:
            if hold == "you go step by step":
                desk.steering.step()
            else:
                desk.steering.pause()
        if isinstance(event, ApprovalGiven):
            desk.steering.resume()

    person = FakePerson(approvals=[Approval(allowed=True, by="you", always=True), Approval(allowed=False, by="you")])
    script = [act("open", text="files"), act("open", text="files"), DONE]
    events, desk = await run(script, watch, approve="ask", person=person)
    assert [event.by for event in every(events, ApprovalGiven)] == ["you", "you"]
    assert len(person.asked) == 2
    assert desk.hand.done == [OpenApp("files")]


async def test_a_changed_action_is_carried_out_in_place_of_the_models_and_the_model_is_told() -> None:
    other: Action[DesktopPoint] = Click(DesktopPoint(7, 9))
    person = FakePerson(approvals=[Approval(allowed=True, by="you", instead=other)])
    events, desk = await run([CLICK, DONE], approve="ask", person=person)
    assert desk.hand.done == [other]
    assert every(events, Acted)[0].target == other
    assert every(events, ApprovalGiven)[0].instead == other
    assert any("changed your action: click at 7,9" in text for text in texts(desk.endpoint.requests[1], "user"))


async def test_what_the_person_says_reaches_the_model_with_its_next_request() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Acted):
            desk.steering.tell("use the other window")

    events, desk = await run([CLICK, DONE], watch)
    assert every(events, PersonSaid) == [PersonSaid(2, "use the other window")]
    assert any("The person says: “use the other window”." in text for text in texts(desk.endpoint.requests[1], "user"))


async def test_what_the_person_says_before_the_first_step_reaches_the_model_too() -> None:
    steering = Steering()
    steering.tell("be quick")
    _, desk = await run([DONE], steering=steering)
    assert any("The person says: “be quick”." in text for text in texts(desk.endpoint.requests[0], "user"))


async def test_an_action_decided_before_the_person_took_over_is_not_carried_out() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Decided) and event.step == 1:
            desk.steering.user_acted("moved the pointer")
        if isinstance(event, Paused):
            later(desk.steering.resume)

    person = FakePerson()
    events, desk = await run([CLICK, CLICK, DONE], watch, person=person)
    assert person.asked == every(events, ApprovalAsked) == every(events, ApprovalGiven) == [], "it will not be done"
    assert every(events, UserActed) == [UserActed(2, "moved the pointer")]
    assert [event.step for event in every(events, Acted)] == [2]
    assert any("look again" in text for text in texts(desk.endpoint.requests[1], "user"))


async def test_a_question_is_withdrawn_when_the_person_takes_over_and_nobody_allowed_anything() -> None:
    class Busy(FakePerson):
        withdrawn = False

        async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
            self.asked.append((action, question.reason))
            later(lambda: desks[0].steering.user_acted("clicked at 1,1"))
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.withdrawn = True
                raise
            return YES

    desks: list[Desk] = []

    def watch(event: Event, desk: Desk) -> None:
        desks[:] = [desk]
        if isinstance(event, Paused):
            later(desk.steering.resume)

    person = Busy()
    events, desk = await run([act("open", text="files"), DONE], watch, approve="ask", person=person)
    assert (len(person.asked), person.withdrawn) == (1, True)
    assert (every(events, ApprovalGiven), desk.hand.done) == ([], [])
    assert [(event.step, event.why) for event in every(events, Dropped)] == [(1, "overtaken")]


async def test_a_stop_ends_a_paused_run_at_once() -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Paused):
            later(lambda: desk.stop.stop("enough"))

    steering = Steering()
    steering.pause()
    events, desk = await run([CLICK, DONE], watch, steering=steering)
    assert every(events, RunFinished)[0].outcome == "stopped"
    assert desk.hand.done == []


async def test_what_was_allowed_for_the_rest_of_the_run_is_not_asked_again_in_it() -> None:
    person = FakePerson(approvals=[Approval(allowed=True, by="you", always=True)])
    script = [act("open", text="files"), act("open", text="files"), DONE]
    events, desk = await run(script, approve="ask", person=person)
    assert len(person.asked) == 1
    assert [event.by for event in every(events, ApprovalGiven)] == [
        "you",
        "you, before: opening files, for the rest of the run",
    ]
    assert desk.hand.done == [OpenApp("files"), OpenApp("files")]


async def test_what_was_allowed_in_one_window_is_asked_again_in_another() -> None:
    places = [Place("Mousepad", "", window=1), Place("Mousepad", "", window=2)]

    def knows(action: Action[DesktopPoint]) -> Situation:
        return Situation(focused=places.pop(0)) if isinstance(action, TypeText) else UNKNOWN

    person = FakePerson(approvals=[Approval(allowed=True, by="you", always=True), YES])
    script = [act("type", text="a"), act("type", text="b"), DONE]
    await run(script, approve="ask", person=person, surroundings=FakeSurroundings(knows))
    assert len(person.asked) == 2


async def test_what_an_action_goes_to_is_told_by_name_when_it_is_asked_about_and_when_it_is_done() -> None:
    def knows(action: Action[DesktopPoint]) -> Situation:
        words = "Keep" if [*points_of(action)] == [DesktopPoint(1, 1)] else "Delete"
        return Situation(under=Place("Thunar", "Documents"), words=words)

    changed = Approval(allowed=True, by="you", instead=Click(DesktopPoint(1, 1)))
    person = FakePerson(approvals=[YES, changed])
    events, _ = await run([CLICK, CLICK, DONE], approve="ask", person=person, surroundings=FakeSurroundings(knows))
    assert [event.aim for event in every(events, ApprovalAsked)] == [Aim(("“Delete”",), "Documents", app="Thunar")] * 2
    assert [event.aim.names for event in every(events, Acted)] == [("“Delete”",), ("“Keep”",)]
    assert every(events, ApprovalGiven)[1].instead_aim == Aim(("“Keep”",), "Documents", app="Thunar")


@pytest.mark.parametrize(("aside", "told"), [((15, 3), "Delete"), ((40, 3), None), ((0, 12), None)])
async def test_only_words_that_the_point_lies_on_are_what_an_action_goes_to_where_no_element_is_told(
    aside: tuple[int, int], told: str | None
) -> None:
    def knows(action: Action[DesktopPoint]) -> Situation:
        [point] = points_of(action)
        middle = DesktopPoint(point.x + aside[0], point.y + aside[1])
        return Situation(under=Place("Thunar", "Documents"), words="Delete", words_at=middle)

    events, _ = await run([CLICK, DONE], person=FakePerson(approvals=[YES]), surroundings=FakeSurroundings(knows))
    described = next(event.described for event in every(events, Acted))
    assert (described and described.element.name) == told
    if described is not None:
        assert (described.element.window, described.element.app) == ("Documents", "Thunar")
        assert described.element.source == "words"


@pytest.mark.parametrize("style", ["reference", "desktop"])
async def test_whatever_the_record_says_was_told_is_in_the_request_in_every_style(style: str) -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, StepFinished) and event.step == 2:
            desk.steering.tell("use the other window")

    answers = [
        Approval(allowed=False, by="you"), Approval(allowed=False, by="you", note="the menu"),
        Approval(allowed=False, by="you", skip=True), Approval(allowed=True, by="you", instead=TypeText("ls")),
    ]  # fmt: skip
    script = [*(act("type", text=f"sudo rm {number}\n") for number in range(4)), DONE]
    settings = {"options": {"style": style}, "history": "sliding"}
    events, desk = await run(script, watch, approve="risky", person=FakePerson(approvals=answers), settings=settings)
    sent = "\n".join(texts(desk.endpoint.requests[-1], "user"))
    told = [event.note for event in every(events, StepFinished)[:-1] if event.note]
    assert len(told) == 4
    assert [note for note in told if note not in sent] == []
    assert "The person says: “use the other window”." in sent


async def test_the_reference_style_adds_no_remarks_of_its_own() -> None:
    script = [CLICK, CLICK, DONE]
    screen = FakeScreen()
    options = {"style": "reference"}
    events, _ = await run(
        script, screen=screen, hand=FakeHand(screen, changes=False), settings={"options": options, "history": "sliding"}
    )
    assert [event.note for event in every(events, StepFinished)] == [None, None, None]
