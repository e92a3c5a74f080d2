"""Carries out one task in this process: sandbox, preparation, state before, run, state after, all recorded.

Verdicts are made only from this record (`states.json` in the run's bundle). To prove a task's judge, shell commands
reach the expected state without the agent's tools.
"""

import asyncio
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import psutil
from pydantic import BaseModel

from agent.console.printers import JsonPrinter
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.desktop.programs import marked
from agent.evals.tasks.judge import State
from agent.evals.tasks.looker import StateReader
from agent.evals.tasks.task import EvalTask, Person
from agent.events import run_events as events
from agent.events.as_json import to_json
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.run.control import Steering
from agent.safety.policy import Approval, Question
from agent.safety.stop import StopSwitch, stop_signals
from agent.workplace import Workplace
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError
from foundation.files import cannot_write, write_atomically
from foundation.printing import put_json, remark
from foundation.stray_output import stray_output_kept

STATES = "states.json"
#: Seconds for a program to show its window.
_WINDOW_S = 25.0
#: Seconds between the end of a run and the look at the state: programs write settings and files late.
_GRACE_S = 1.0
#: A change that no task asks for: a judge that does not see it is broken.
_UNASKED = "nobody asked for this.txt"


class NoHandError(Exception):
    """No commands follow from the expected state: the task must have `by_hand`."""


def by_hand(task: EvalTask, before: State) -> list[str]:
    """Return the commands of `by_hand`, or commands derived from the expected state. Raises NoHandError."""
    if task.by_hand:
        return task.by_hand
    expect = task.expect
    if expect.tree or not all(_ids(pattern, before) for pattern in expect.windows):
        raise NoHandError("it expects windows or controls that are not there, and has no by_hand")
    if expect.outputs:
        raise NoHandError("no command can be derived from its expected output, and it has no by_hand")
    commands = [
        _setting(name, value if isinstance(value, str) else value[-1]) for name, value in expect.settings.items()
    ]
    commands += [_file(paths.split("|")[0], wanted) for paths, wanted in expect.files.items()]
    commands += [f"wmctrl -ic {window}" for pattern in expect.no_windows for window in _ids(pattern, before)]
    if expect.active:
        commands += [f"wmctrl -ia {window}" for window in _ids(expect.active, before)]
    if expect.clipboard is not None:
        commands.append(f"printf %s {quote(expect.clipboard)} | xclip -i -selection clipboard")
    return commands


def _ids(pattern: str, before: State) -> list[str]:
    return [window for window, shown in before.windows.items() if re.search(pattern, shown)]


def _setting(name: str, value: str) -> str:
    """Return the command that sets a setting. A new property of xfconf gets the type that its value looks like."""
    kind, first, *rest = name.split(" ", 2)
    if value.startswith("/") or not rest or kind == "kde":
        raise NoHandError(f"no value follows from {name} = {value!r}, and it has no by_hand")
    if kind == "gsettings":
        return f"gsettings set {quote(first)} {quote(rest[0])} {quote(value)}"
    query = f"xfconf-query -c {quote(first)} -p {quote(rest[0])}"
    if not value:
        return f"{query} -r"
    kinds = {"true|false": "bool", r"-?\d+": "int", r"-?\d*\.\d+": "double"}
    made = next((kind for pattern, kind in kinds.items() if re.fullmatch(pattern, value)), "string")
    return f"{query} -s {quote(value)} || {query} -n -t {made} -s {quote(value)}"


def _file(path: str, wanted: object) -> str:
    name = quote(path)
    if wanted is False:
        return f"rm -r {name}"
    folder = quote(path.rpartition("/")[0] or ".")
    if wanted is True:
        is_file = "." in path and not path.endswith("/")
        return f"mkdir -p {folder} && touch {name}" if is_file else f"mkdir -p {name}"
    if not isinstance(wanted, str):
        raise NoHandError(f"no text follows from what {path} is to hold, and it has no by_hand")
    return f"mkdir -p {folder} && printf '%s\\n' {quote(wanted)} > {name}"


class ScriptedPerson:
    """Plays the person of a task, who is a `Person` of the run. `on_desktop` runs a shell command on the desktop."""

    def __init__(self, script: Person, stop: StopSwitch, on_desktop: Callable[[str], object]) -> None:
        self._script = script
        self._stop = stop
        self._on_desktop = on_desktop
        self.steering = Steering()
        self.stopped = False  # by the script
        self._before(1)

    def handle(self, event: events.Event) -> None:
        """Do what the task's person does before the next step."""
        if isinstance(event, events.StepFinished):
            self._before(event.step + 1)

    def _before(self, step: int) -> None:
        for doing in self._script.at:
            if doing.step != step:
                continue
            if doing.does:
                self._on_desktop(doing.does)
            if doing.say:
                self.steering.tell(doing.say)
            if doing.stops:
                self.stopped = True
                self._stop.stop("the person of the task stopped it")

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:  # noqa: ARG002 -- the protocol's
        """Approve all or nothing."""
        return Approval(allowed=self._script.approves, by="the person of the task")

    async def ask(self, question: str) -> str | None:
        """Return the reply that the task has for a question; None if it has none."""
        return next((reply for pattern, reply in self._script.answers.items() if re.search(pattern, question)), None)

    async def permit(self, question: str) -> bool:  # noqa: ARG002 -- the protocol's
        """Permit it if the person approves actions."""
        return self._script.approves


class States(BaseModel):
    """The record of one task: what it was, and the desktop before and after."""

    task: EvalTask
    home: str
    before: State
    after: State
    revealed: State | None = None  # after the task's `reveal`
    undone: State | None = None  # after `mai-agent undo`
    error: str = ""  # why undo, or the proof's change, could not be carried out
    harmed: State | None = None  # of a proof: after a change that nobody asked for
    receipt: list[dict[str, Any]] | None = None  # the changes that the run reported; null if it sent no receipt
    decide_s: list[float] = []  # seconds of each step from the look to the decision
    step_s: list[float] = []  # seconds of each whole step
    usage: dict[str, int | None] = {}  # tokens of the run: prompt, completion, cached


def carry_out(
    task: EvalTask, folder: Path, options: RunOptions, *, undo: bool = False, engine: Engine | None = None
) -> int:
    """Carry out a task and print the run's events as JSON. Return the run's exit status.

    `folder` contains the task's file; `engine` replaces the engine of the options, as the bench of recipes does. Raises
    MaiError: the desktop or the engine is missing, or the task cannot be prepared; then nothing is recorded.
    """
    stop, times = StopSwitch(), _Times()
    with stray_output_kept(), stop_signals(stop), Workplace(options, remark, None, offers=False) as workplace:
        stage = _Stage(task, folder, workplace, stop)
        stage.prepare()
        job = workplace.job(task.say, stop, engine)
        with closing(job.recorder):
            before = stage.looker.state()
            person = ScriptedPerson(task.person, stop, stage.looker.run)
            printer = JsonPrinter(redactor=job.recorder.redactor)
            watchers: list[Callable[[events.Event], None]] = [printer.handle, times.handle, person.handle]

            def show(event: events.Event) -> None:
                for watcher in watchers:
                    watcher(event)

            with stage.hung():
                finished = asyncio.run(job.carry_out(person, stop, show, person.steering))
            job.write_report(remark)
        if finished.status == ExitStatus.STOPPED and not person.stopped:
            return finished.status  # stopped from outside: there is no verdict on the task
        time.sleep(_GRACE_S)
        states = stage.record(before)
        states.receipt, states.usage = times.receipt, times.usage
        states.decide_s, states.step_s = times.decide_s, times.step_s
        if undo:
            states.error, states.undone = _undone(job.recorder.path), stage.looker.state()
        _write(job.recorder.path, states)
        return finished.status


def prove(task: EvalTask, folder: Path, options: RunOptions) -> int:
    """Reach the expected state by commands, then make an unwanted change. Record the states, and print as a run does.

    Raises MaiError, as `carry_out`.
    """
    stop, began = StopSwitch(), time.monotonic()
    bundle = options.runs / task.id
    with stray_output_kept(), stop_signals(stop), Workplace(options, remark, None, offers=False) as workplace:
        put_json({"event": "RunStarted", "bundle": str(bundle)})
        stage = _Stage(task, folder, workplace, stop)
        stage.prepare()
        before, error = stage.looker.state(), ""
        try:
            for command in by_hand(task, before):
                stage.looker.run(command)
                time.sleep(0.5)
        except NoHandError as lacking:
            error = str(lacking)
        time.sleep(_GRACE_S)
        states = stage.record(before)
        states.error = error
        (stage.looker.home / _UNASKED).touch()
        states.harmed = stage.looker.state()
        _write(bundle, states)
    put_json({
        "event": "RunFinished", "outcome": "done", "status": 0, "message": error or "done by hand", "steps": 0,
        "verified": None, "seconds": round(time.monotonic() - began, 2), "usage": {},
    })  # fmt: skip
    return ExitStatus.DONE


def read_states(bundle: Path) -> States | None:
    """Return what was recorded in a bundle; None if nothing was, or an earlier version recorded it otherwise."""
    try:
        return States.model_validate_json((bundle / STATES).read_bytes())
    except (OSError, ValueError):
        return None


class _Stage:
    """The sandbox of a task, with what the task puts on it."""

    def __init__(self, task: EvalTask, folder: Path, workplace: Workplace, stop: StopSwitch) -> None:
        sandbox = workplace.desk(stop).sandbox
        assert sandbox is not None, "a task is given a sandbox"
        self._task = task
        self._folder = folder
        self._sandbox = sandbox
        self._stop = stop
        self.looker = StateReader(sandbox, task)

    def prepare(self) -> None:
        """Make files and settings and open the applications, as the task has them. Raises MaiError."""
        home, task = self.looker.home, self._task
        try:
            for name, text in task.files.items():
                path = home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir(exist_ok=True) if name.endswith("/") else path.write_text(text, encoding="utf-8")
            for name in task.pages:
                shutil.copy(self._folder / "pages" / name, home / name)
            for command in task.setup:
                self.looker.prepare(command)
            for command in task.open:
                self._open(command)
            for command in task.after:
                self.looker.run(command)
                time.sleep(0.3)
        except OSError as error:
            raise EnvironmentLacksError(f"The task {task.id!r} cannot be prepared ({error}).") from error
        self._settled()

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Suspend the processes that the task names, inside the context."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def record(self, before: State) -> States:
        """Return the record of `before` and the present state."""
        after, revealed = self.looker.state(), None
        if self._task.reveal:
            for command in self._task.reveal:
                self.looker.run(command)
            revealed = self.looker.state()
        home = str(self.looker.home)
        return States(task=self._task, home=home, before=before, after=after, revealed=revealed)

    def _open(self, command: str) -> None:
        shown, deadline = self.looker.windows(), time.monotonic() + _WINDOW_S
        self._sandbox.start("bash", "-c", command)
        while not self.looker.windows() - shown:
            self._stop.check()
            if time.monotonic() > deadline:
                raise EnvironmentLacksError(f"{command!r} showed no window.", "Is the program installed?")
            time.sleep(0.1)
        time.sleep(0.8)

    def _signal(self, number: int) -> None:
        for process in marked(self._sandbox.name) if self._task.paused else ():
            with suppress(psutil.Error):
                if process.name() in self._task.paused:
                    process.send_signal(number)

    def _settled(self) -> None:
        """Wait until settings and windows stay as they are: programs write some of theirs after their start."""
        last: tuple[dict[str, str], dict[str, str]] | None = None
        for _ in range(12):
            self._stop.check()
            time.sleep(0.4)
            state = self.looker.state()
            if (state.settings, state.windows) == last:
                return
            last = state.settings, state.windows


class _Times:
    """Collects the seconds of steps, the receipt, and the tokens."""

    def __init__(self) -> None:
        self.decide_s: list[float] = []
        self.step_s: list[float] = []
        self.receipt: list[dict[str, Any]] | None = None
        self.usage: dict[str, int | None] = {}
        self._looked = self._previous = 0.0

    def handle(self, event: events.Event) -> None:
        """Note what an event tells."""
        match event:
            case events.RunStarted():
                self._previous = event.at
            case events.Observed():
                self._looked = sum(event.milliseconds.values())
            case events.Decided():
                stages = (event.milliseconds.get(name, 0.0) for name in ("prompt", "model", "parse", "map"))
                self.decide_s.append(round((self._looked + sum(stages)) / 1000, 3))
            case events.StepFinished():
                self.step_s.append(round(event.at - self._previous, 3))
                self._previous = event.at
            case events.Receipt():
                self.receipt = to_json(event)["changes"]
            case events.RunFinished():
                self.usage = asdict(event.usage)


def _undone(bundle: Path) -> str:
    """Undo a run. Return what went wrong, "" for nothing."""
    from agent.record.read import read_bundle
    from agent.record.undo_run import RunUndo

    try:
        results = RunUndo(read_bundle(bundle)).carry_out()
    except MaiError as error:
        return str(error)
    time.sleep(_GRACE_S)
    return "; ".join(str(result.words) for result in results if not result.done)


def _write(bundle: Path, states: States) -> None:
    try:
        bundle.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(bundle / STATES, states.model_dump_json(exclude_defaults=True))
    except OSError as error:
        raise cannot_write(bundle, error) from error
