"""A desk without a display: a screen of coloured boxes, a hand that changes it, a person who answers."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image, ImageDraw
from stubs.endpoint import Checks, FakeEndpoint, say

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint, Size, Viewport
from agent.desktop.protocol.hand import Rest
from agent.events.run_events import Event, RunFinished, StepFinished
from agent.families.base import Family
from agent.families.registry import get_family
from agent.model.asking import ModelClient, Patience
from agent.model.clients import ChatClient
from agent.model.endpoint import Endpoint, Limits, ServerKind
from agent.record.bundle import Recorder
from agent.record.redactor import Redactor
from agent.run.control import Steering
from agent.run.loop.context import RunContext, Tools
from agent.run.loop.loop import Loop
from agent.run.models.actor import Actor
from agent.run.models.assemble import DecidingModel
from agent.run.models.history import History, answer_tokens, most_images
from agent.run.models.resolve_point import PointModel, TargetFinder, Zoom
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observer
from agent.safety.policy import Approval, ApproveMode, Grants, Policy, Question
from agent.safety.situation import UNKNOWN, Situation
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from agent.screen.outline import Outline
from agent.screen.settle import SettleRule
from foundation.endpoints import normalize_url
from foundation.images import ImageRule

E = TypeVar("E")
SIZE = Size(256, 256)
#: Small numbers, so that tests do not wait; what they mean is tested with the screen's room.
SETTLE = SettleRule(quiet=0.02, cap=0.1, poll=0.005)
HURRIED = Patience(connect=2, first_token=20, between_tokens=20, notice=20, retries=1, backoff=0.01)


def _small(family: Family) -> ImageRule:
    """A family's image rule with images that are soon made."""
    return family.facts.image.capped(max(1_000_000, family.facts.image.min_pixels))


class FakeScreen:
    """Shows `marks` as boxes; every change of the number changes several cells."""

    def __init__(self) -> None:
        self.marks = 0
        self.closed = False
        self.grabs = 0
        self.trouble: Exception | None = None
        self.holding: threading.Event | None = None  # a grab waits for it

    def grab(self) -> Frame:
        self.grabs += 1
        if self.holding is not None:
            self.holding.wait(20)
        if self.trouble is not None:
            raise self.trouble
        image = Image.new("RGB", (SIZE.width, SIZE.height), "white")
        draw = ImageDraw.Draw(image)
        for bit in range(16):
            if self.marks >> bit & 1:
                left, top = bit % 4 * 64, bit // 4 * 64
                draw.rectangle((left, top, left + 63, top + 63), fill="black")
        return Frame(image, Viewport.of_image(SIZE), 0.0)

    def close(self) -> None:
        self.closed = True


class FakeHand:
    """Remembers what it did, and changes the screen by it."""

    touches = True

    def __init__(self, screen: FakeScreen, changes: bool = True) -> None:
        self.done: list[Action[DesktopPoint]] = []
        self.closed = False
        self.rest = Rest()
        self.behave: Callable[[Action[DesktopPoint]], str | None] = lambda _: None
        self._screen = screen
        self._changes = changes

    def perform(self, action: Action[DesktopPoint]) -> str:
        detail = self.behave(action)
        self.done.append(action)
        if self._changes:
            self._screen.marks += 1
        return detail or "done"

    def lift(self) -> None:
        pass

    def release_all(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class FakePerson:
    """Answers questions, approvals and the program's own questions from lists."""

    def __init__(
        self, replies: Sequence[str | None] = (), approvals: Sequence[Approval] = (), permits: Sequence[bool] = ()
    ) -> None:
        self.permitted: list[str] = []
        self._permits = list(permits)
        self.questions: list[str] = []
        self.asked: list[tuple[Action[DesktopPoint], str]] = []
        self.before_reply: Callable[[], None] = lambda: None
        self._replies = list(replies)
        self._approvals = list(approvals)

    async def ask(self, question: str) -> str | None:
        self.questions.append(question)
        self.before_reply()
        return self._replies.pop(0)

    async def permit(self, question: str) -> bool:
        self.permitted.append(question)
        return self._permits.pop(0)

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        self.asked.append((action, question.reason))
        return self._approvals.pop(0)


class FakeSurroundings:
    """Tells what `knows` says of an action, and where the pointer is; remembers what was judged."""

    def __init__(
        self,
        knows: Callable[[Action[DesktopPoint]], Situation] = lambda _: UNKNOWN,
        pointer: DesktopPoint | None = None,
    ) -> None:
        self.judged: list[Action[DesktopPoint]] = []
        self._knows, self._pointer = knows, pointer

    def of(self, action: Action[DesktopPoint]) -> Situation:
        self.judged.append(action)
        return self._knows(action)

    glance = of

    def pointer(self) -> DesktopPoint | None:
        return self._pointer

    def did(self, action: Action[DesktopPoint]) -> None:
        pass

    def news(self) -> list[str]:
        return []


class FakeOutliner:
    """Gives outlines from a list."""

    def __init__(self, outlines: Sequence[Outline]) -> None:
        self._left = list(outlines)

    def take(self, frame: Frame) -> "Future[Outline]":
        taken: Future[Outline] = Future()
        taken.set_result(self._left.pop(0) if len(self._left) > 1 else self._left[0])
        return taken

    def close(self) -> None:
        pass


@dataclass
class Desk:
    """One run's parts, and the run."""

    endpoint: FakeEndpoint | None
    screen: FakeScreen = field(default_factory=FakeScreen)
    hand: Any = None
    person: FakePerson = field(default_factory=FakePerson)
    stop: StopSwitch = field(default_factory=StopSwitch)
    steering: Steering = field(default_factory=Steering)
    surroundings: FakeSurroundings = field(default_factory=FakeSurroundings)
    grants: Grants = field(default_factory=Grants)
    kind: ServerKind = "other"
    approve: ApproveMode = "never"
    limits: Limits = field(default_factory=Limits)
    settings: dict[str, Any] = field(default_factory=dict)
    family: Any = "mai-ui"  # its name, or one made up
    tools: Any = field(default_factory=Tools)
    instruction: str = "do the task"
    open_witness: Any = None
    grounder: FakeEndpoint | None = None  # finds places for a planner
    zoom: Zoom = "off"
    outlines: Any = None  # what the screen's elements are at each look; the last ones stay
    client: Any = None  # in place of one that asks the endpoint

    def _client(self) -> ModelClient:
        if self.client is not None:
            asked: ModelClient = self.client
            return asked
        assert self.endpoint is not None
        address = normalize_url(self.endpoint.url)
        return ChatClient(Endpoint(address, "", "MAI-UI-8B", self.kind, self.limits), HURRIED)

    def loop(self) -> tuple[Loop, ModelClient]:
        self.hand = self.hand or FakeHand(self.screen)
        family = get_family(self.family) if isinstance(self.family, str) else self.family
        settings = RunSettings(self.instruction, settle=SETTLE, **self.settings)
        client = self._client()
        outliner = None if self.outlines is None else FakeOutliner(self.outlines)
        see, rule = settings.see or "screenshot", _small(family)
        observer = Observer(self.screen, rule, "png", 85, outliner, see=see)  # type: ignore[arg-type]
        images = most_images(settings.history, family.facts, client.endpoint.kind)
        history = History(settings.history, self.limits, answer_tokens(family, self.limits.context), images)
        eye = PointModel("actor", client, family, rule)
        aiming = TargetFinder(eye, self.grounder_eye(), self.zoom)
        actor = Actor(client, family, history, settings, (), aiming)
        own = DecidingModel("actor", observer, actor, settings)
        context = RunContext(
            own, self.hand, Policy.load(self.approve), self.person, self.person, self.stop, self.surroundings,
            self.steering, self.grants, self.tools, self.open_witness,
        )  # fmt: skip
        return Loop(context), client

    def grounder_eye(self) -> PointModel | None:
        if self.grounder is None:
            return None
        family = get_family("mai-ui")
        where = Endpoint(normalize_url(self.grounder.url), "", "MAI-UI-2B", "other", Limits())
        return PointModel("grounder", ChatClient(where, HURRIED), family, _small(family))

    async def run(self, watch: Callable[[Event], None] = lambda _: None) -> list[Event]:
        """All events of the run; `watch` sees each as it comes."""
        loop, client = self.loop()
        found: list[Event] = []

        def receive(event: Event) -> None:
            found.append(event)
            watch(event)

        try:
            await loop.run(receive)
        finally:
            await client.aclose()
        return found


async def run(
    script: Sequence[Any],
    watch: Callable[[Event, Desk], None] = lambda *_: None,
    grounds: Sequence[Any] | None = None,
    checks: Checks | None = None,
    **options: Any,
) -> tuple[list[Event], Desk]:
    """The events of a run whose model gives these answers, texts or behaviours; `watch` sees each event as it comes.

    `grounds` are the answers of a grounder, where the run has one; `checks` is what the model's server refuses.
    """
    told, places = ([item if callable(item) else say(item) for item in each] for each in (script, grounds or ()))
    with FakeEndpoint(told, checks=checks) as endpoint, FakeEndpoint(places) as grounder:
        desk = Desk(endpoint, **(options if grounds is None else {"grounder": grounder, **options}))
        return await desk.run(lambda event: watch(event, desk)), desk


async def recorded(
    runs: Path, script: Sequence[Any], told: str = "do the task", redactor: Redactor | None = None, **options: Any
) -> Path:
    """The bundle of such a run."""
    recorder = Recorder(runs, told, redactor)
    await run(script, lambda event, _: recorder.handle(event), **options)
    recorder.close()
    return recorder.path


def every(events: Sequence[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def finish(events: Sequence[Event]) -> RunFinished:
    """The last event, which is the only one of its kind."""
    (finished,) = every(events, RunFinished)
    assert events[-1] is finished
    return finished


def notes(events: Sequence[Event]) -> list[str | None]:
    return [event.note for event in every(events, StepFinished)]
