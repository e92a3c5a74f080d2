"""A second model that takes over where the run's own is stuck, and what of the desktop it gets to see."""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stubs.desk import HURRIED, SETTLE, FakePerson, FakeScreen
from stubs.endpoint import DONE, Behaviour, Exchange, FakeEndpoint, act, pictures, say, texts
from stubs.made_up_desktop import MadeUpDesktop

from agent.geometry import Region
from agent.model.endpoint import Endpoint
from agent.model.engine import Engine
from agent.record.bundle import Recorder
from agent.record.read import find_bundle
from agent.record.redact import Redactor
from agent.run.events import Decided, Event, RunFinished, StepFinished, Warned
from agent.run.handing import HandedBack, HandedOver, ReliefAsked
from agent.run.loop_detector import LoopRule
from agent.run.session import Request, run
from agent.run.settings import RunSettings
from agent.safety.leaving import Leaving
from agent.safety.policy import Policy
from agent.safety.stop import StopSwitch
from agent.screen.outline import Element, Outline
from foundation.addresses import normalize_url

CLICK = say(act("click", coordinate=[700, 500]))
OTHER = say(act("click", coordinate=[800, 600]))
OVER = say(DONE)
GIVE_UP = say(act("terminate", "I cannot.", status="fail"))
GARBAGE = say("What?")
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
YES = {"screenshots": "yes"}
SECRET = "Tr0ub4dor&3x"


class Faraway(Endpoint):
    """The test's own endpoint, as if it were on another machine."""

    is_local = False  # type: ignore[assignment]
    host = "models.example"  # type: ignore[assignment]


class StillScreen(FakeScreen):
    """Nothing changes it."""

    def grab(self) -> Any:
        self.marks = 0
        return super().grab()


@dataclass
class Tree:
    """The accessibility tree of the made-up desktop."""

    elements: tuple[Element, ...] = ()

    def outline(self) -> Outline:
        return Outline(Region(0, 0, 256, 256).size, self.elements)

    def at(self, point: Any) -> None:
        return None

    def focused(self) -> None:
        return None

    def close(self) -> None:
        pass


@dataclass
class Ran:
    """A run of two models."""

    own: FakeEndpoint
    relief: FakeEndpoint
    events: list[Event] = field(default_factory=list)
    person: FakePerson = field(default_factory=FakePerson)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def who(self) -> list[str]:
        return [event.by for event in self.told(Decided)]

    @property
    def end(self) -> RunFinished:
        return self.told(RunFinished)[0]

    def picture(self, request: int = 0) -> Any:
        """The newest picture that the relief was sent."""
        url = pictures(self.relief.requests[request])[-1]["image_url"]["url"]
        return Image.open(BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")


async def go(
    own: Sequence[Behaviour],
    relief: Sequence[Behaviour],
    *,
    far: bool = False,
    leaving: dict[str, Any] | None = None,
    person: FakePerson | None = None,
    elements: tuple[Element, ...] = (),
    still: bool = False,
    windows: bool = True,
    instruction: str = "do the task",
    family: str = "mai-ui",
    steps: int = 5,
    stop: StopSwitch | None = None,
    watch: Callable[[Event], None] = lambda _: None,
    bundle: str = "",
    mask: Callable[[str], str] = lambda text: text,
    **settings: Any,
) -> Ran:
    def opened(*arguments: Any) -> MadeUpDesktop:
        desktop = MadeUpDesktop(*arguments)
        desktop.focus = "right"
        desktop.open_elements = lambda: Tree(elements)  # type: ignore[method-assign]
        if not windows:
            desktop.open_windows = lambda: None  # type: ignore[method-assign]
        if still:
            desktop.screen = StillScreen()
        return desktop

    with FakeEndpoint(own) as one, FakeEndpoint(relief) as other:
        ran = Ran(one, other, person=person or FakePerson())

        def emit(event: Event) -> None:
            ran.events.append(event)
            watch(event)

        kind = Faraway if far else Endpoint
        engines = {
            "actor": Engine("endpoint", Endpoint(normalize_url(one.url), "", "MAI-UI-8B")),
            "relief": Engine("endpoint", kind(normalize_url(other.url), "", "MAI-UI-8B")),
        }
        policy = replace(Policy.load("never"), leaving=Leaving.model_validate(leaving or {}))
        request = Request(
            RunSettings(instruction, settle=SETTLE, **settings), engines, policy, stop_key="none", sandbox=True,
            open_desktop=opened, families={"relief": family}, family="mai-ui", relief_steps=steps, bundle=bundle,
            mask=mask, patience=HURRIED, zoom="off",
        )  # fmt: skip
        await run(request, ran.person, stop or StopSwitch(), emit)
        return ran


class TestHandingOver:
    async def test_without_a_need_the_second_model_is_never_asked(self) -> None:
        ran = await go([CLICK, OVER], [])
        assert ran.relief.requests == []
        assert ran.told(HandedOver) == []

    async def test_a_model_that_gives_up_is_relieved(self) -> None:
        ran = await go([CLICK, GIVE_UP], [OTHER, OVER])
        (over,) = ran.told(HandedOver)
        assert (over.step, over.role, over.host, over.steps, over.allowed) == (3, "relief", "127.0.0.1", 5, "local")
        assert over.why == "it gives up"
        assert ran.who == ["actor", "actor", "relief", "relief"]
        assert ran.end.outcome == "done"
        assert ran.told(HandedBack) == []

    async def test_a_model_that_repeats_itself_is_relieved(self) -> None:
        rule = LoopRule(nudge_at=1, stop_at=2)
        ran = await go([CLICK, CLICK], [OVER], still=True, loop_rule=rule)
        assert ran.told(HandedOver)[0].why == "it repeats itself without effect"
        assert ran.end.outcome == "done"
        assert [event.step for event in ran.told(StepFinished)] == [1, 2, 3], "every step is over before the next"

    async def test_three_steps_that_change_nothing_are_enough(self) -> None:
        ran = await go([CLICK, OTHER, say(act("click", coordinate=[600, 600]))], [OVER], still=True)
        assert ran.told(HandedOver)[0].why == "3 steps in a row failed or changed nothing"
        assert ran.who == ["actor"] * 3 + ["relief"]

    async def test_two_steps_that_change_nothing_are_not(self) -> None:
        ran = await go([CLICK, OTHER, OVER], [], still=True)
        assert ran.told(HandedOver) == []

    async def test_answers_that_cannot_be_read_are_a_reason(self) -> None:
        ran = await go([GARBAGE] * 3, [OVER])
        assert ran.told(HandedOver)[0].why.startswith("its answers cannot be carried out")
        assert ran.end.outcome == "done"

    async def test_a_question_to_the_person_is_none(self) -> None:
        ran = await go([say(act("ask_user", text="Which one?")), OVER], [], person=FakePerson(["the first"]))
        assert ran.told(HandedOver) == []

    async def test_it_is_told_in_words_what_was_done(self) -> None:
        ran = await go([say(act("type", text="hello world")), GIVE_UP], [OVER])
        (said,) = [text for text in texts(ran.relief.requests[0], "user") if "did not get on" in text]
        assert "do the task" in said
        assert "hello world" in said
        assert len(pictures(ran.relief.requests[0])) == 1, "it has a history of its own"

    async def test_a_relief_that_gives_up_ends_the_run(self) -> None:
        ran = await go([GIVE_UP], [GIVE_UP])
        assert ran.end.outcome == "gave_up"
        assert ran.told(HandedBack) == []


class TestHandingBack:
    async def test_it_hands_back_after_its_steps_and_the_first_model_is_told_of_them(self) -> None:
        typing = say(act("type", text="from the other one"))
        ran = await go([CLICK, GIVE_UP, OVER], [typing, OTHER], steps=2)
        assert ran.who == ["actor", "actor", "relief", "relief", "actor"]
        (back,) = ran.told(HandedBack)
        assert (back.step, back.why) == (5, "its steps are used up")
        whole = "\n".join(texts(ran.own.requests[-1]))
        assert "Meanwhile another model did: “" in whole
        assert "from the other one" in whole

    async def test_a_relief_that_is_stuck_itself_hands_back_at_once(self) -> None:
        ran = await go([CLICK, GIVE_UP, OVER], [GARBAGE] * 3)
        assert ran.told(HandedBack)[0].why.startswith("it is stuck, too")
        assert ran.end.outcome == "done"

    async def test_a_relief_that_does_not_answer_hands_back(self) -> None:
        broken = [lambda exchange: exchange.respond(400, b'{"error": {"message": "no"}}')]
        ran = await go([CLICK, GIVE_UP, OVER], broken)
        assert len(ran.told(HandedBack)) == 1
        assert ran.end.outcome == "done"

    async def test_it_takes_over_twice_and_no_more(self) -> None:
        ran = await go([CLICK, GIVE_UP, GIVE_UP, GIVE_UP], [OTHER, CLICK], steps=1)
        assert len(ran.told(HandedOver)) == 2
        assert len(ran.told(HandedBack)) == 2
        assert ran.end.outcome == "gave_up"
        assert "Meanwhile another model did" in "\n".join(texts(ran.relief.requests[1]))

    async def test_a_stop_ends_it_while_it_works(self) -> None:
        stop = StopSwitch()

        def halt(exchange: Exchange) -> None:
            stop.stop("you said so")
            exchange.over.wait(20)

        ran = await go([GIVE_UP], [halt], stop=stop)
        assert ran.end.outcome == "stopped"
        assert ran.told(HandedBack) == []


class TestConsent:
    async def test_by_default_nothing_is_sent_to_another_machine_and_the_run_says_so(self) -> None:
        ran = await go([CLICK, GIVE_UP], [], far=True)
        assert ran.relief.requests == []
        assert ran.end.outcome == "gave_up"
        (said,) = [event.message for event in ran.told(Warned) if "is stuck" in event.message]
        assert "models.example may not take over" in said
        assert "[leaving]" in said

    async def test_a_person_is_asked_with_the_host_the_steps_and_the_first_picture(self, tmp_path: Path) -> None:
        person = FakePerson(permits=[True])
        recorder = Recorder(tmp_path, "do the task")
        ran = await go(
            [CLICK, GIVE_UP], [OVER], far=True, leaving={"screenshots": "ask"}, person=person,
            bundle=str(recorder.path), watch=recorder.handle,
        )  # fmt: skip
        (question,) = person.permitted
        preview = recorder.path / "leaving" / "0003.png"
        assert "models.example" in question
        assert "5 steps" in question
        assert str(preview) in question
        assert preview.is_file()
        assert ran.told(HandedOver)[0].allowed == "person"
        assert len(ran.relief.requests) == 1

    async def test_after_a_no_nothing_is_sent_and_nobody_is_asked_again(self) -> None:
        person = FakePerson(permits=[False])
        own = [CLICK, OTHER, CLICK, say(act("click", coordinate=[900, 900])), OTHER, CLICK, OVER]
        ran = await go(own, [], far=True, leaving={"screenshots": "ask"}, person=person, still=True)
        assert ran.relief.requests == []
        assert len(person.permitted) == 1
        assert len(ran.told(ReliefAsked)) == 1
        assert ran.end.outcome == "done", "a run that could go on by itself does"

    async def test_the_policy_may_say_yes_once_and_for_all(self) -> None:
        ran = await go([GIVE_UP], [OVER], far=True, leaving={"screenshots": "yes"})
        assert ran.told(HandedOver)[0].allowed == "policy"
        assert ran.told(HandedOver)[0].host == "models.example"
        assert ran.end.outcome == "done"

    async def test_a_relief_that_is_not_there_does_not_keep_the_run_from_beginning(self) -> None:
        ran = await go([OVER], [], far=True, leaving={"screenshots": "yes"}, family="no such family")
        assert any("No other model can take over" in event.message for event in ran.told(Warned))
        assert ran.end.outcome == "done"


class TestWhatLeaves:
    async def test_a_hidden_window_and_a_hidden_region_are_black_in_what_is_sent(self) -> None:
        leaving = YES | {"hide": [{"app": "^editor$"}], "regions": [[0, 0, 32, 32]]}
        ran = await go([GIVE_UP], [OTHER, OVER], far=True, leaving=leaving)
        for request in (0, 1):
            sent = ran.picture(request)
            assert sent.getpixel((10, 10)) == BLACK, "the region"
            assert sent.getpixel((40, 200)) == WHITE, "the other window"
            assert sent.getpixel((150, 230)) == BLACK, "the hidden window"

    async def test_for_a_model_on_this_machine_nothing_is_hidden(self) -> None:
        ran = await go([GIVE_UP], [OVER], leaving={"hide": [{"app": "editor"}], "regions": [[0, 0, 32, 32]]})
        assert ran.picture().getpixel((10, 10)) == WHITE
        assert ran.picture().getpixel((150, 230)) == WHITE

    async def test_what_is_in_the_bundle_is_what_was_sent(self, tmp_path: Path) -> None:
        recorder = Recorder(tmp_path, "do the task")
        ran = await go(
            [GIVE_UP], [OVER], far=True, leaving=YES | {"hide": [{"title": "untitled"}]},
            bundle=str(recorder.path), watch=recorder.handle,
        )  # fmt: skip
        url = pictures(ran.relief.requests[0])[-1]["image_url"]["url"]
        kept = (recorder.path / "screens" / "0002.png").read_bytes()
        assert base64.b64decode(url.partition(",")[2]) == kept

    async def test_their_elements_and_the_windows_are_not_told_of(self) -> None:
        elements = (
            Element(1, "push button", "Visible", Region(10, 150, 40, 20), app="Term", window="mai-agent"),
            Element(2, "push button", "Of the editor", Region(100, 150, 40, 20), app="Editor", window="Untitled"),
            Element(3, "push button", "In the region", Region(20, 20, 40, 20), app="Term", window="mai-agent"),
            Element(4, "push button", "Untitled - Editor", Region(10, 200, 40, 20), app="Panel", window="panel"),
        )
        leaving = YES | {"hide": [{"app": "editor"}], "regions": [[0, 0, 32, 32]]}
        over = say('{"thought": "t", "action": "done", "answer": "ok"}')
        ran = await go([GIVE_UP, GIVE_UP], [over] * 3, far=True, leaving=leaving, elements=elements, family="generic")
        whole = json.dumps(ran.relief.requests[0])
        assert "Visible" in whole
        for hidden in ("Of the editor", "In the region", "Untitled"):
            assert hidden not in whole

    async def test_a_field_for_passwords_is_black(self) -> None:
        field = Element(1, "password text", "Password", Region(100, 100, 60, 20), value="swordfish")
        ran = await go([GIVE_UP], [OVER], far=True, leaving=YES, elements=(field,))
        assert ran.picture().getpixel((130, 110)) == BLACK
        assert ran.picture().getpixel((130, 140)) == WHITE

    async def test_what_was_done_in_a_hidden_window_is_not_told(self) -> None:
        typing = say(act("type", text="dear diary"))
        leaving = YES | {"hide": [{"app": "editor"}]}
        ran = await go([typing, GIVE_UP], [OVER], far=True, leaving=leaving)
        whole = json.dumps(ran.relief.requests[0])
        assert "dear diary" not in whole
        assert "that you are not shown" in whole

    async def test_no_text_that_is_sent_holds_a_secret(self) -> None:
        mask = Redactor(secrets=[SECRET]).text
        own = [say(act("type", text=SECRET)), GIVE_UP]
        again = say(act("type", f"I type {SECRET}.", text=SECRET))
        ran = await go(own, [again, OVER], far=True, leaving=YES, mask=mask, instruction=f"log in with {SECRET} please")
        assert len(ran.relief.requests) == 2
        for request in ran.relief.requests:
            assert SECRET not in json.dumps(request)
            assert "[redacted" in json.dumps(request)

    async def test_where_windows_are_to_be_hidden_and_nobody_tells_of_them_nothing_is_sent(self) -> None:
        leaving = YES | {"hide": [{"app": "editor"}]}
        ran = await go([GIVE_UP], [], far=True, leaving=leaving, windows=False)
        assert ran.relief.requests == []
        assert ran.end.outcome == "gave_up"
        assert any("may not see the screen" in event.message for event in ran.told(Warned))


async def test_the_record_says_who_decided_what(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "do the task")
    await go([CLICK, GIVE_UP, OVER], [OTHER], steps=1, bundle=str(recorder.path), watch=recorder.handle)
    steps = find_bundle(tmp_path, recorder.path.name).steps
    assert [step.by for step in steps] == ["actor", "actor", "relief", "actor"]
    assert [one.words for one in steps[2].before] == ["MAI-UI-8B at 127.0.0.1 takes over for 1 step: it gives up"]
    assert [one.words for one in steps[3].before] == ["handed back: its steps are used up"]
    assert steps[2].how == ["decided by the relief"]


@pytest.mark.parametrize(
    "wrong", [{"hide": [{}]}, {"screenshots": "maybe"}, {"regions": [[0, 0, 0, 1]]}, {"hidden": []}]
)
def test_what_may_leave_is_written_in_one_way(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Leaving.model_validate(wrong)


def test_nothing_leaves_by_default() -> None:
    assert Policy.load("risky").leaving.screenshots == "never"
