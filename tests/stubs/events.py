"""The events of a plausible run, made by hand."""

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stubs.endpoint import act

from agent.console.printers import JsonPrinter
from agent.core.actions import Click, Finish, map_points
from agent.core.geometry import Region, Size, Viewport
from agent.events.run_events import (
    Acted,
    Decided,
    Event,
    ModelDelta,
    ModelInUse,
    Observed,
    RunFinished,
    RunStarted,
    StepFinished,
    Warned,
)
from agent.families.base import Decision
from agent.families.registry import get_family
from agent.record.bundle import Recorder
from agent.record.redactor import Redactor
from agent.screen.encode import EncodedImage
from foundation.chat_stream import Answer, Usage
from foundation.errors import ExitStatus

VIEW = Viewport(Region(100, 50, 800, 600), Size(1600, 1200))
PICTURE = EncodedImage(b"\x89PNG" + bytes(3000), "png", Size(800, 608))


def started(instruction: str = "open settings", **options: Any) -> RunStarted:
    facts: dict[str, Any] = {
        "models": {"actor": ModelInUse("endpoint", "MAI-UI-8B", "mai-ui", "http://127.0.0.1:1/v1")},
        "style": "desktop", "dry_run": False, "approve": "risky", "sandbox": False,
        "viewport": VIEW, "bundle": "",
    }  # fmt: skip
    return RunStarted(instruction, **facts | options)


def step(number: int, answer: str = "", thought: str = "I click.") -> list[Event]:
    """The events of one step that ends with an action."""
    answer = answer or act("click", thought, coordinate=[100 + number, 250])
    decision = get_family("mai-ui").parse(Answer(answer), (PICTURE.size,))
    assert isinstance(decision, Decision)
    target = map_points(decision.actions[0], VIEW.to_desktop)
    usage = Usage(100, 20, 60)
    events: list[Event] = [
        Observed(number, (PICTURE,), VIEW, 475, "abcd", {"capture": 2.0, "fit": 3.0}),
        ModelDelta(number, answer),
        Decided(number, answer, decision.thought, decision.calls[:1], decision.actions[:1], (target,), None, usage,
                {"model": 500.0}),
    ]  # fmt: skip
    if isinstance(decision.actions[0], Click):
        events.append(Acted(number, target, executed=True, dry_run=False, detail="click", error=None, milliseconds=30))
    changed = None if isinstance(decision.actions[0], Finish) else True
    return [*events, StepFinished(number, changed, None, None, {"act": 30.0})]


def finished(message: str = "The task is done.", steps: int = 2) -> RunFinished:
    return RunFinished("done", ExitStatus.DONE, message, steps, 12.3, Usage(200, 40, 120))


def run_of(steps: int) -> list[Event]:
    """A whole run."""
    events: list[Event] = [started(), Warned("a remark")]
    for number in range(1, steps + 1):
        events.extend(step(number))
    return [*events, finished(steps=steps)]


def record(
    runs: Path, events: Sequence[Event], instruction: str = "open settings", redactor: Redactor | None = None
) -> Path:
    """The bundle of these events."""
    recorder = Recorder(runs, instruction, redactor)
    for event in events:
        recorder.handle(event)
    recorder.close()
    return recorder.path


def printed(printer: type[JsonPrinter], events: Iterable[Event]) -> str:
    """What a printer makes of these events."""
    out = io.StringIO()
    prints = printer(out)
    for event in events:
        prints.handle(event)
    return out.getvalue()
