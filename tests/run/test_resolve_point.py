"""Where a decision goes: places found by a grounder, a closer look, what is doubted."""

import json
from typing import Any

import pytest
from stubs.desk import SIZE, Desk, FakePerson, every, run
from stubs.endpoint import DONE, Behaviour, act, pictures, say, texts

from agent.core.actions import Click, Drag, Scroll
from agent.core.geometry import DesktopPoint, Region
from agent.events.run_events import ApprovalAsked, Consulted, Decided, Event, RunFinished, Warned
from agent.safety.policy import Approval
from agent.screen.outline import Element, Outline, ShownWindow


def plan(**call: Any) -> Behaviour:
    return say(json.dumps({"thought": "Next.", **call}))


def ground(x: float, y: float) -> Behaviour:
    return say(f'<answer>{{"coordinate": [{x}, {y}]}}</answer>')


def acts(action: str, **arguments: Any) -> Behaviour:
    return say(act(action, **arguments))


OVER = say(DONE)
ALL_DONE = plan(action="terminate", status="success")


def button(number: int, name: str, left: int, source: Any = "tree", **more: Any) -> Element:
    return Element(number, "push button", name, Region(left, 100, 60, 40), source=source, **more)


class TestPlannerAndGrounder:
    async def test_a_planner_names_the_place_and_a_grounder_finds_it(self) -> None:
        script = [plan(action="right_click", target="the Save button"), ALL_DONE]
        events, desk = await run(script, grounds=[ground(500, 250)], family="planner")
        assert desk.hand.done == [Click(DesktopPoint(128, 64), "right")]
        (asked,) = desk.grounder.requests
        assert "the Save button" in texts(asked, "user")[0]
        assert len(pictures(asked)) == 1
        (found,) = every(events, Consulted)
        assert (found.role, found.model, found.why) == ("grounder", "MAI-UI-2B", "ground")
        assert (found.asked, found.point, found.absent) == ("the Save button", DesktopPoint(128, 64), False)
        assert every(events, RunFinished)[0].usage.prompt >= 0

    async def test_both_ends_of_a_drag_are_found(self) -> None:
        script = [plan(action="drag", target="the file", to="the trash"), ALL_DONE]
        _, desk = await run(script, grounds=[ground(250, 250), ground(750, 500)], family="planner")
        assert desk.hand.done == [Drag(DesktopPoint(64, 64), DesktopPoint(192, 128))]

    async def test_what_needs_no_place_asks_no_grounder(self) -> None:
        script = [plan(action="scroll", direction="down", amount=3), ALL_DONE]
        _, desk = await run(script, grounds=[], family="planner")
        assert desk.hand.done == [Scroll(None, 0, 3)]
        assert desk.grounder.requests == []

    async def test_a_place_that_is_not_found_goes_back_to_the_planner(self) -> None:
        script = [plan(action="click", target="the moon"), plan(action="click", target="the sun"), ALL_DONE]
        events, desk = await run(script, grounds=[say("I see no moon."), ground(500, 500)], family="planner")
        assert desk.hand.done == [Click(DesktopPoint(128, 128))]
        assert "“the moon” is not found on the screen" in texts(desk.endpoint.requests[1], "user")[-1]
        assert [event.point is None for event in every(events, Consulted)] == [True, False]

    async def test_without_a_grounder_a_named_place_is_no_click(self) -> None:
        events, desk = await run([plan(action="click", target="the moon")] * 3, family="planner")
        assert desk.hand.done == []
        assert "no grounder" in every(events, RunFinished)[0].message


class TestZoom:
    async def test_a_closer_look_asks_for_the_place_in_an_enlarged_crop_around_the_first_guess(self) -> None:
        script = [acts("click", coordinate=[250, 250], thought="I click the gear."), ground(500, 500), OVER]
        events, desk = await run(script, zoom="always")
        (found,) = every(events, Consulted)
        assert (found.role, found.why, found.asked) == ("actor", "zoom", "I click the gear.")
        # The guess is 64,64 of 256: the crop is the quarter around it, and its middle is where it was.
        assert desk.hand.done == [Click(DesktopPoint(64, 64))]
        assert len(pictures(desk.endpoint.requests[1])) == 1

    async def test_the_second_point_counts_and_is_one_of_the_whole_screen(self) -> None:
        script = [acts("click", coordinate=[999, 0], thought="I click the gear."), ground(250, 750), OVER]
        events, desk = await run(script, zoom="always")
        # The crop is moved into the screen: its left edge is 128, its top 0, and it is 128 wide and high.
        assert desk.hand.done == [Click(DesktopPoint(128 + 32, 96))]
        assert every(events, Decided)[0].targets == (Click(DesktopPoint(160, 96)),)

    async def test_a_closer_look_that_finds_nothing_leaves_the_first_guess(self) -> None:
        script = [acts("click", coordinate=[500, 500], thought="I click the gear."), say("no idea"), OVER]
        _, desk = await run(script, zoom="always")
        assert desk.hand.done == [Click(DesktopPoint(500 / 999 * 256, 500 / 999 * 256))]

    @pytest.mark.parametrize(
        ("zoom", "width", "looks"),
        [("auto", 60, 0), ("auto", 12, 1), ("off", 12, 0), ("always", 60, 1)],
    )
    async def test_auto_looks_again_only_where_the_guess_may_be_off(self, zoom: Any, width: int, looks: int) -> None:
        there = Element(1, "push button", "Gear", Region(100, 100, width, 60))
        script = [acts("click", coordinate=[410, 410], thought="I click the gear."), *[ground(500, 500)] * looks, OVER]
        events, _ = await run(script, zoom=zoom, outlines=[Outline(SIZE, (there,))])
        assert len(every(events, Consulted)) == looks

    @pytest.mark.parametrize(("told", "looks"), [("Editor", 1), ("Clock", 0)])
    async def test_beside_every_element_is_looked_at_again_only_in_a_window_that_tells_its_elements(
        self, told: str, looks: int
    ) -> None:
        there = Element(1, "push button", "Gear", Region(10, 10, 60, 60), window=told)
        outline = Outline(SIZE, (there,), (ShownWindow("Editor", "", Region(0, 0, 256, 256)),))
        script = [acts("click", coordinate=[700, 700], thought="I click it."), *[ground(500, 500)] * looks, OVER]
        events, _ = await run(script, zoom="auto", outlines=[outline])
        assert len(every(events, Consulted)) == looks

    async def test_a_click_of_which_nothing_is_said_is_not_looked_at_again(self) -> None:
        call = '<tool_call>{"name":"mobile_use","arguments":{"action":"click","coordinate":[5,5]}}</tool_call>'
        events, _ = await run([call, DONE], zoom="always")
        assert every(events, Consulted) == []


class TestDoubt:
    SAVE, CANCEL = button(1, "Save", 20, "both"), button(2, "Cancel", 150, "both")
    WRONG = staticmethod(plan(action="click", target="the Save button"))
    #: On “Cancel”, and on “Save”.
    ON_CANCEL, ON_SAVE = staticmethod(ground(700, 470)), staticmethod(ground(200, 470))

    async def insisting(self, *grounds: Behaviour, **more: Any) -> tuple[list[Event], Desk]:
        outline = Outline(SIZE, (self.SAVE, self.CANCEL))
        script = [self.WRONG, self.WRONG, ALL_DONE]
        return await run(script, grounds=grounds, family="planner", outlines=[outline], **more)

    async def test_a_point_on_something_else_goes_back_to_the_model_first(self) -> None:
        events, desk = await self.insisting(self.ON_CANCEL, self.ON_SAVE)
        assert [action.point.x < 100 for action in desk.hand.done] == [True]
        told = texts(desk.endpoint.requests[1], "user")[-1]
        assert "“the Save button”, and at that point is the push button “Cancel”" in told
        assert every(events, Decided)[0].failure.kind == "mismatch"

    async def test_a_model_that_insists_is_asked_about(self) -> None:
        person = FakePerson(approvals=[Approval(allowed=False, by="you")])
        events, desk = await self.insisting(self.ON_CANCEL, self.ON_CANCEL, person=person, approve="risky")
        assert desk.hand.done == []
        (asked,) = every(events, ApprovalAsked)
        assert "at that point is the push button “Cancel”" in asked.reason
        assert asked.scope == "", "it is never allowed for good"

    async def test_where_nobody_is_asked_it_is_said(self) -> None:
        events, desk = await self.insisting(self.ON_CANCEL, self.ON_CANCEL)
        assert len(desk.hand.done) == 1
        assert any("at that point is the push button “Cancel”" in event.message for event in every(events, Warned))

    async def test_a_model_that_quotes_the_name_in_its_thought_is_held_to_it(self) -> None:
        script = [acts("click", coordinate=[700, 470], thought='Now I click "Save".')] * 2 + [OVER]
        events, _ = await run(script, outlines=[Outline(SIZE, (self.SAVE, self.CANCEL))])
        assert every(events, Decided)[0].failure.kind == "mismatch"

    async def test_what_is_scrolled_to_need_not_lie_under_the_pointer(self) -> None:
        scroll = acts("scroll", coordinate=[700, 470], direction="down", thought='"Save" is further down.')
        _, desk = await run([scroll, OVER], outlines=[Outline(SIZE, (self.SAVE, self.CANCEL))])
        assert [type(action) for action in desk.hand.done] == [Scroll]
