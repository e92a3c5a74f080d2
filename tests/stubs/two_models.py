"""Runs of two models on a made-up desktop: the run's own, and one that may take over."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

from PIL import Image
from stubs.desk import HURRIED, SETTLE, FakePerson, FakeScreen
from stubs.endpoint import DONE, Behaviour, FakeEndpoint, act, pictures, say
from stubs.made_up_desktop import MadeUpDesktop

from agent.core.geometry import Region
from agent.events.run_events import Decided, Event, RunFinished
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.models.settings import RunSettings
from agent.run.session import Request, run
from agent.safety.policy import Policy
from agent.safety.policy_rules.policy_file import Leaving
from agent.safety.stop import StopSwitch
from agent.screen.outline import Element, Outline
from foundation.endpoints import normalize_url

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
    """The accessibility tree of the made-up desktop. `hit` is what it reports at every point."""

    elements: tuple[Element, ...] = ()
    hit: Element | None = None

    def outline(self) -> Outline:
        return Outline(Region(0, 0, 256, 256).size, self.elements)

    def at(self, point: Any) -> Element | None:
        return self.hit

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
    hit: Element | None = None,
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
        desktop.open_elements = lambda: Tree(elements, hit)  # type: ignore[method-assign]
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
