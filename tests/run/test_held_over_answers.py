"""Keys and buttons that a run holds down over several actions: what the hand is told, and when they are let go."""

import asyncio
from typing import Any

import pytest
from stubs.desk import Desk, FakeHand, FakePerson, FakeScreen, FakeSurroundings, every, notes
from stubs.desk import run as run_on
from stubs.endpoint import DONE, act, silent, texts
from stubs.several import Several

from agent.core.actions import (
    Action,
    ButtonDown,
    Click,
    Drag,
    KeyDown,
    KeyUp,
    Move,
    PressKeys,
    Scroll,
    TypeText,
    VisitPage,
)
from agent.core.geometry import DesktopPoint
from agent.desktop.input.hand import DryRunHand
from agent.desktop.protocol.hand import ActionFailedError
from agent.events.run_events import Acted, ApprovalAsked, Event, Observed, RunFinished
from agent.run.loop import held_keys as holding
from agent.safety.policy import Approval

YES = Approval(allowed=True, by="you")
DOWN, UP = act("key_down", keys="ctrl"), act("key_up", keys="ctrl")
CLICK = act("click", coordinate=[500, 500])
PRESS = act("left_mouse_down", coordinate=[500, 500])


class Hand(FakeHand):
    """Notes when it was told to let go, too."""

    def __init__(self, screen: FakeScreen) -> None:
        super().__init__(screen)
        self.told: list[str] = []

    def perform(self, action: Action[DesktopPoint]) -> str:
        self.told.append(type(action).__name__)
        return super().perform(action)

    def lift(self) -> None:
        self.told.append("lift")

    def release_all(self) -> None:
        self.told.append("release")


async def run(script: list[Any], watch: Any = lambda *_: None, **options: Any) -> tuple[list[Event], Desk]:
    screen = FakeScreen()
    return await run_on(script, watch, screen=screen, hand=Hand(screen), **options)


async def test_keys_are_down_for_the_actions_of_later_answers_and_up_while_the_model_thinks() -> None:
    events, desk = await run([DOWN, CLICK, UP, CLICK, DONE])
    down, click, up, plain = desk.hand.done
    assert down == KeyDown(("ctrl",))
    assert click == Click(click.point, held=("ctrl",))
    assert up == KeyUp(("ctrl",))
    assert plain == Click(click.point)
    assert desk.hand.told == ["KeyDown", "lift", "Click", "lift", "KeyUp", "Click"]
    assert notes(events)[:3] == [None, None, None]
    assert [event.target for event in every(events, Acted)] == desk.hand.done


async def test_within_an_answer_keys_stay_down_and_others_than_modifiers_end_with_it() -> None:
    words = Several(hold=KeyDown(("space", "shift")), right=PressKeys(("right",)), a=KeyDown(("a",)))
    script = [act("type", text="hold right x"), act("type", text="a right"), DONE]
    events, desk = await run(script, family=words)
    assert desk.hand.told == ["KeyDown", "PressKeys", "TypeText", "lift", "KeyDown", "PressKeys", "lift", "lift"]
    assert desk.hand.done[1:3] == [PressKeys(("shift", "space", "right")), TypeText("x")]
    assert notes(events)[:2] == ["What you held down (space) was let go.", "What you held down (a) was let go."]


async def test_what_is_held_is_let_go_when_an_action_fails_and_the_model_is_told() -> None:
    def fail(action: Action[DesktopPoint]) -> str | None:
        if isinstance(action, Click):
            raise ActionFailedError("it moved")
        return None

    screen = FakeScreen()
    hand = Hand(screen)
    hand.behave = fail
    events, desk = await run_on([DOWN, CLICK, CLICK, DONE], screen=screen, hand=hand)
    assert "release" in hand.told
    assert "What you held down (ctrl) was let go." in (notes(events)[1] or "")
    assert "What you held down (ctrl) was let go." in texts(desk.endpoint.requests[2])[-1]
    acted = every(events, Acted)
    assert acted[1].target == Click(acted[1].target.point, held=("ctrl",))  # type: ignore[union-attr]
    assert acted[2].target == Click(acted[1].target.point)  # type: ignore[union-attr]


async def test_a_person_is_asked_about_the_chord_with_nothing_down() -> None:
    downs: list[list[str]] = []
    person = FakePerson(approvals=[YES])
    script = [act("key_down", keys="alt"), act("key", keys="F4"), DONE]

    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, ApprovalAsked):
            downs.append(list(desk.hand.told))

    events, desk = await run(script, watch, approve="risky", person=person)
    (asked,) = every(events, ApprovalAsked)
    assert "close" in asked.reason
    assert person.asked[0][0] == PressKeys(("alt", "f4"))
    assert downs == [["KeyDown", "lift", "lift"]]
    assert desk.hand.done[-1] == PressKeys(("alt", "f4"))


async def test_a_person_is_not_asked_with_a_button_down() -> None:
    move = act("mouse_move", coordinate=[900, 900])
    person = FakePerson(approvals=[YES])
    events, desk = await run([PRESS, move, DONE], approve="ask", person=person)
    assert [type(action) for action in desk.hand.done] == [ButtonDown]
    assert desk.hand.told == ["ButtonDown", "release"]
    assert "use one drag" in (notes(events)[1] or "")
    assert "What you held down (the left button) was let go." in (notes(events)[1] or "")


def stop_when_released(desk: Desk) -> None:
    async def look() -> None:
        while "release" not in desk.hand.told:
            await asyncio.sleep(0.02)
        desk.stop.stop("seen")

    desk.looking = asyncio.ensure_future(look())  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["pause", "takeover"])
async def test_a_button_is_let_go_while_the_model_thinks_when_the_person_wants_the_computer(how: str) -> None:
    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Observed) and event.step == 2:
            if how == "pause":
                desk.steering.pause()
            else:
                desk.steering.user_acted("pressed keys")
            stop_when_released(desk)

    events, desk = await run([PRESS, silent(), DONE], watch)
    assert desk.hand.told == ["ButtonDown", "release"]
    assert every(events, RunFinished)[0].outcome == "stopped"


async def test_a_button_after_which_nothing_comes_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "HELD_AT_MOST", 0.0)

    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, Observed) and event.step == 2:
            stop_when_released(desk)

    _, desk = await run([PRESS, silent(), DONE], watch)
    assert desk.hand.told == ["ButtonDown", "release"]


async def test_a_move_with_a_button_down_is_judged_as_the_drag_that_it_is() -> None:
    around = FakeSurroundings()
    up = act("left_mouse_up", coordinate=[900, 900])
    _, desk = await run([PRESS, up, CLICK, DONE], approve="risky", surroundings=around)
    start, end = desk.hand.done[0].point, desk.hand.done[1].point
    assert around.judged == [Click(start), Drag(start, end), Click(start)]


def wheel(**where: Any) -> str:
    return act("scroll", pixels=-5, **where).replace("mobile_use", "computer_use")


@pytest.mark.parametrize(
    ("pointer", "dry_run", "first", "second"),
    [
        (DesktopPoint(3, 4), False, DesktopPoint(3, 4), DesktopPoint(3, 4)),  # the person may have moved it
        (None, False, None, DesktopPoint(128, 128)),
        (None, True, None, DesktopPoint(128, 128)),
        (DesktopPoint(3, 4), True, DesktopPoint(3, 4), DesktopPoint(128, 128)),  # nothing moved the real one
    ],
)
async def test_what_names_no_point_is_judged_and_done_where_the_pointer_is(
    pointer: DesktopPoint | None, dry_run: bool, first: DesktopPoint | None, second: DesktopPoint
) -> None:
    click = act("left_click").replace("mobile_use", "computer_use")
    script = [wheel(), act("mouse_move", coordinate=[500, 500]), wheel(), click, DONE]
    around, settings = FakeSurroundings(pointer=pointer), {"dry_run": dry_run}
    hand = {"hand": DryRunHand()} if dry_run else {}
    options = {"family": "qwen3-vl", "approve": "risky", "surroundings": around, "settings": settings, **hand}
    events, _ = await run_on(script, **options)
    told = [event.target for event in every(events, Acted)]
    [moved] = [action for action in told if isinstance(action, Move)]
    second = moved.point if second == DesktopPoint(128, 128) else second
    assert told == [Scroll(first, 0, 5), moved, Scroll(second, 0, 5), Click(second)]
    assert around.judged == told


async def test_a_page_that_the_instruction_names_is_visited_and_another_is_asked_about() -> None:
    pages = [act("visit_url", url="https://example.org/a"), act("visit_url", url="https://other.org/"), DONE]
    person = FakePerson(approvals=[YES])
    _, desk = await run(pages, approve="risky", person=person, instruction="look at example.org")
    assert [action for action, _ in person.asked] == [VisitPage("https://other.org/")]
    assert desk.hand.done == [VisitPage("https://example.org/a"), VisitPage("https://other.org/")]


async def test_a_note_stays_with_the_model_and_touches_nothing() -> None:
    events, desk = await run([act("remember", fact="it is 4"), DONE])
    assert desk.hand.told == []
    assert every(events, Acted) == []
    assert notes(events)[0] is None
