"""The terminal application with a conductor that only notes what it is asked, and a clock that stands still."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from PIL import Image
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from agent.conductor import ApprovalWanted, Report, Run, RunBegan
from agent.core.actions import Action, Click, TypeText
from agent.core.actions import to_json as action_json
from agent.core.geometry import DesktopPoint, Grid, GridPoint, Region, Size, Viewport
from agent.events import run_events as events
from agent.families.base import Call
from agent.options import RunOptions
from agent.record.bundle import Recorder
from agent.safety.naming import aim_of
from agent.safety.policy import Approval, Question
from agent.screen.encode import EncodedImage, encode
from agent.settings import Settings
from agent.tui.app import MaiApp
from agent.tui.remembered import Memory
from agent.tui.screens.run import RunScreen
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus

SNAPSHOTS = Path(__file__).parents[1] / "tui" / "snapshots"
VIEWPORT = Viewport(Region(0, 0, 960, 540), Size(960, 540))
POINT = DesktopPoint(3.0, 4.0)
INSTRUCTION = "open settings and enable dark mode"
#: Seconds: a little longer than a key must be alone to be an answer.
ALONE = 0.3
CLICK: Action[DesktopPoint] = Click(DesktopPoint(412, 233))
SUDO = TypeText("sudo rm -rf /\n")
RISK = ("the text looks like a command that changes the system (rule “commands”)", "typing in xfce4-terminal")


class FakeConductor:
    """Takes runs up and does nothing about them."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.status: int | None = None
        self.recorder: Recorder | None = None
        self.started: list[str] = []
        self.stopped: list[str] = []

    def start(self, instruction: str) -> Run:
        self.started.append(instruction)
        self.run = Run(instruction)
        return self.run

    def stop(self, reason: str) -> None:
        self.stopped.append(reason)
        if self.run is not None:
            self.run.stop.stop(reason)

    def close(self, seconds: float) -> bool:
        return True


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """One application under test, and the events of a run to feed it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.conductor = FakeConductor()
        self.answers: list[Approval] = []
        self.conductor.recorder = Recorder(folder / "recorded", INSTRUCTION)
        self.bundle = self.conductor.recorder.path

    def app(self, instruction: str | None = INSTRUCTION, **options: Any) -> MaiApp:
        values = {"instruction": instruction, "dry_run": False, "sandbox": True, "runs": self.folder / "runs"}
        app = MaiApp(
            RunOptions(settings=Settings(), **(values | options)),
            self.conductor,
            Memory(),
            self.clock,  # type: ignore[arg-type]
        )
        app.animation_level = "none"
        return app

    @asynccontextmanager
    async def shows(
        self, *reports: Report, size: tuple[int, int] = (80, 24), **options: Any
    ) -> AsyncIterator[Pilot[int]]:
        """The application, to which a run that began has reported this."""
        async with self.app(**options).run_test(size=size) as pilot:
            await self.feed(pilot, *self.begins(), *reports)
            yield pilot

    async def feed(self, pilot: Pilot[int], *reports: Report) -> None:
        """What a run reports."""
        while pilot.app._options.instruction and not self.conductor.started:  # type: ignore[attr-defined]
            await pilot.pause(0.01)
        for report in reports:
            self.report(pilot, report)
        await pilot.pause()
        await pilot.pause()

    def report(self, pilot: Pilot[int], report: Report) -> None:
        """Record a report and show it, as a run does."""
        if isinstance(report, events.Event):
            self.conductor.recorder.handle(report)
        pilot.app.report(report)  # type: ignore[attr-defined]

    @property
    def run(self) -> Run:
        """The run that was taken up last."""
        assert self.conductor.run is not None
        return self.conductor.run

    # Events of a run

    def begins(self) -> list[Report]:
        started = events.RunStarted(
            INSTRUCTION, {"actor": events.ModelInUse("literal", "mai-agent-literal", "mai-ui", "http://127.0.0.1:1/v1")},
            "desktop", False, "risky", True, VIEWPORT, str(self.bundle),
        )  # fmt: skip
        return [RunBegan(INSTRUCTION, 50), started]

    def sees(self, step: int) -> list[Report]:
        seen = events.Observed(step, (_image(),), VIEWPORT, 510, f"digest-{step}", {"capture": 2.0, "encode": 30.0})
        return [seen]

    def decides(self, step: int, *actions: Action[DesktopPoint], thought: str = "That is next.") -> list[Report]:
        raw = f'<thinking>{thought}</thinking><tool_call>{{"step": {step}}}</tool_call>'
        grid: Any = Click(GridPoint(1.0, 2.0, Grid(1000, 1000)))
        usage, milliseconds = Usage(1200, 40, 600), {"model": 400.0, "parse": 1.0}
        calls, written = (Call("computer", {}),) * len(actions), (grid,) * len(actions)
        return [events.Decided(step, raw, thought, calls, written, actions, None, usage, milliseconds)]

    def does(self, step: int, action: Action[DesktopPoint], error: str | None = None) -> list[Report]:
        return [
            events.Acted(step, action, error is None, False, "", error, 12.0),
            events.StepFinished(step, True, None, None, {"act": 12.0, "settle": 300.0}),
        ]

    def step(self, step: int, action: Action[DesktopPoint]) -> list[Report]:
        return [*self.sees(step), *self.decides(step, action), *self.does(step, action)]

    def asks(
        self, step: int, action: Action[DesktopPoint], reason: str, scope: str, index: int = 0, **known: Any
    ) -> list[Report]:
        question = Question(reason, scope, **known)
        wanted = ApprovalWanted(action, question, self.answers.append)
        aim = aim_of(action, question.situation)
        return [events.ApprovalAsked(step, action, reason, scope, index=index, aim=aim), wanted]

    def asked(self, step: int, action: Action[DesktopPoint], reason: str, scope: str, **known: Any) -> list[Report]:
        """A step up to the question about its action."""
        return [*self.sees(step), *self.decides(step, action), *self.asks(step, action, reason, scope, **known)]

    def ends(self, steps: int, message: str = "Dark mode is on.") -> list[Report]:
        return [events.RunFinished("done", ExitStatus.DONE, message, steps, 12.3, Usage(4800, 160, 2400))]


def _image() -> EncodedImage:
    return encode(Image.new("RGB", (960, 544), (40, 60, 80)), "png", 85)


async def settled(pilot: Pilot[int]) -> None:
    """Until what was asked for is read and shown: twice without anything under way, and the screen as it was."""
    before = ""
    for _ in range(50):
        with suppress(WorkerCancelled):  # a later question may replace an earlier one
            await pilot.app.workers.wait_for_complete()
        await pilot.pause(0.05)
        if shown(pilot) == before and not len(pilot.app.workers):
            return
        before = shown(pilot)


def write_run(runs: Path, name: str, steps: int, **meta: object) -> Path:
    """Write the bundle of a finished run below a folder."""
    folder = runs / name
    (folder / "screens").mkdir(parents=True)
    values = {"instruction": "open settings", "outcome": "done", "status": 0, "steps": steps, "seconds": 2.5,
              "started": "2026-11-21T09:00:00.000+00:00", "message": "It is open.", "engine": "literal",
              "family": "mai-ui"}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(values | meta))
    viewport = {"left": 0, "top": 0, "width": 960, "height": 540, "captured_width": 960, "captured_height": 540}
    lines = [
        {"step": number, "at": number * 1.0, "before": [],
         "image": {"file": f"screens/{number:04d}.png", "width": 960, "height": 544},
         "viewport": viewport, "answers": [{"raw": "<answer>", "failure": None}], "thought": f"thought {number}",
         "target": action_json(Click(POINT)), "approval": None, "fate": "done",
         "detail": "click at 3,4", "error": None, "milliseconds": {"model": 400.0, "act": 10.0},
         "tokens": {"prompt": 10, "completion": 5, "cached": None}}
        for number in range(1, steps + 1)
    ]  # fmt: skip
    (folder / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def run_screen(pilot: Pilot[int]) -> RunScreen:
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen)
    return screen


def shown(pilot: Pilot[int]) -> str:
    """The screen as text."""
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def matches(pilot: Pilot[int], name: str) -> None:
    """Compare the screen with a snapshot; UPDATE_SNAPSHOTS=1 writes it anew."""
    found, file = shown(pilot), SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8"), f"{name} looks otherwise now:\n{found}"
