"""A desktop for Python programs: every action is a run, with policy, record, receipt and evidence."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, get_args

from agent.api.results import Look, NotDoneError, NotSeenError, Result, Step, check_role, check_text
from agent.conductor import Run
from agent.core.actions import Button
from agent.core.changes import Change
from agent.core.keys import UnknownKeyError
from agent.core.keys import chord as keys_of
from agent.events.run_events import Acted, Decided, Event, Receipt
from agent.literal.client import literal_engine
from agent.literal.goals import Choose, Click, Close, Goal, Open, Press, SetValue, Target, Toggle, Type
from agent.options import RunOptions
from agent.recipes.files import load_recipe
from agent.record.bundle import Recorder
from agent.record.read import read_bundle
from agent.record.redactor import Redactor
from agent.record.undo_run import RunUndo
from agent.run.control import Worker
from agent.run.loop.context import Person
from agent.run.observing.outliner import Eye
from agent.safety.stop import REASONS, StopSwitch, stop_signals
from agent.sandbox.desktop import Sandbox
from agent.screen.ocr import reading_languages
from agent.screen.outline import Element
from agent.workplace import Workplace
from foundation.errors import MaiError, UsageError

__tracebackhide__ = True  # pytest shows the test's own lines
#: Outcomes of a single action that was carried out. A click has no evidence: the caller checks the effect.
_CARRIED_OUT = ("done", "unverified")
#: Seconds between two looks while something is expected.
_POLL = 0.15
#: Elements listed when an expected one is missing.
_MOST_LISTED = 15


class AsyncDesktop:
    """A desktop to look at and act on; an async context manager.

    `person` makes, from a run's stop switch, the person who approves the run's actions and answers its questions.
    `tell` receives messages about starts. `on_event` receives every event of every run.
    """

    _open: "ClassVar[AsyncDesktop | None]" = None  # the desktop that this process uses

    def __init__(
        self,
        options: RunOptions,
        person: Callable[[StopSwitch], Person],
        tell: Callable[[str], None],
        on_event: Callable[[Event], None],
    ) -> None:
        self._options, self._person, self._on_event = options, person, on_event
        self._workplace = Workplace(options, tell, None)
        self._stop = StopSwitch()
        self.run: Run | None = None  # the latest run
        self.recorder: Recorder | None = None  # of that run
        self._looking = Worker("eye")
        self._eye: Eye | None = None
        self._turn = asyncio.Lock()
        self._running: asyncio.Future[Result] | None = None
        self.closed = False
        self.bundles: list[Path] = []  # the records of its runs, oldest first

    async def __aenter__(self) -> Self:
        self._claim()
        try:
            await asyncio.to_thread(self._workplace.desk, self._stop)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End what runs, close the connections, and end a sandbox. Nothing can be done with it afterwards."""
        self.closed = True
        AsyncDesktop._open = None if AsyncDesktop._open is self else AsyncDesktop._open
        self._stop.stop("the desktop is closed")
        with suppress(Exception):
            await self._ended()
        try:
            if self._eye is not None:
                await self._looking.call(self._eye.close)
        finally:  # also if the display is gone
            self._eye = None
            self._looking.end(lambda: None)
            await asyncio.to_thread(self._workplace.__exit__)

    def stop(self, reason: str = "the program asked for it") -> None:
        """Stop the run under way at once, from any thread. Its result has the outcome "stopped"."""
        self._stop.stop(reason)

    def check_open(self) -> None:
        """Raise UsageError if the desktop is closed, or this program uses another one."""
        if self.closed:
            raise UsageError("This desktop is closed.", "Use it inside its `with` block, or open another one.")
        if AsyncDesktop._open not in (None, self):  # the display is chosen for the whole process
            raise UsageError("This program uses a desktop already.", "Close that one first, or use another process.")

    def _claim(self) -> None:
        """Make this object the program's only desktop until it is closed. Raises UsageError, as `check_open`."""
        self.check_open()
        AsyncDesktop._open = self

    @property
    def sandbox(self) -> Sandbox:
        """The throw-away desktop. Raises UsageError on the person's own."""
        self._claim()
        sandbox = self._workplace.desk(self._stop).sandbox
        if sandbox is None:
            raise UsageError("This is the person's own desktop.", "Open a throw-away one: mai_agent.sandbox().")
        return sandbox

    async def do(self, instruction: str) -> Result:
        """Do what a sentence says, with the chosen engine. Raises MaiError if the run cannot begin."""
        _check_named("The instruction", instruction)
        return await self._run(instruction, None)

    async def repeat(self, name: str, /, **values: str | float) -> Result:
        """Do a recipe again with these values of its parameters. Raises UsageError for a missing or wrong recipe."""
        _check_named("The recipe", name)
        recipe, texts = load_recipe(name), {key: str(value) for key, value in values.items()}
        instruction, goal = recipe.with_values(texts)
        return await self._run(instruction, [goal], recipe.secrets(texts))

    async def undo(self, result: Result) -> tuple[str, ...]:
        """Put back the settings and files that a run changed. Return what stays changed, in words.

        Raises UsageError: nothing was recorded that could be undone.
        """
        self.check_open()
        if not isinstance(result, Result):
            raise UsageError("What to undo is not the result of a run.", "Pass what `do` or `click` returned.")
        if result.bundle is None:
            raise UsageError("This run was not recorded.")
        async with self._turn:
            await self._ended()
            return await asyncio.to_thread(_undone, result.bundle)

    async def look(self) -> Look:
        """Return the screen now. Raises EnvironmentLacksError; UsageError if the desktop is closed."""
        self._claim()
        return await self._looking.call(self._look)

    async def find(self, name: str, role: str = "", window: str = "") -> Element | None:
        """Return the best element of a name that is on the screen now; None if there is none. See `Look.find_all`."""
        return (await self.look()).find(name, role, window)

    async def expect(self, name: str, role: str = "", window: str = "", within: float = 5.0) -> Element:
        """Wait until an element of a name is on the screen, and return it. Raises NotSeenError after `within` s."""
        seen = await self._look_until(lambda look: look.find(name, role, window) is not None, within)
        if (found := seen.find(name, role, window)) is None:
            description = f"{role or 'element'} “{name}”"
            there = seen.listed(_MOST_LISTED, role)
            raise NotSeenError(f"No {description} appeared within {within:g} s; there: {there}")
        return found

    async def expect_gone(self, name: str, role: str = "", window: str = "", within: float = 5.0) -> None:
        """Wait until no element of a name is on the screen. Raises NotSeenError after `within` seconds."""
        seen = await self._look_until(lambda look: look.find(name, role, window) is None, within)
        if (found := seen.find(name, role, window)) is not None:
            raise NotSeenError(f"{found.words} is still there after {within:g} s")

    async def _look_until(self, reached: Callable[[Look], bool], within: float) -> Look:
        """Return the first look that is `reached`, or the last one when the time is up."""
        if not isinstance(within, int | float):
            raise UsageError(f"The time to wait is a {type(within).__name__}.", "Give seconds: within=3.")
        end = time.monotonic() + within
        while not reached(seen := await self.look()) and time.monotonic() < end:
            await asyncio.sleep(_POLL)
        return seen

    async def click(
        self, name: str, role: str = "", window: str = "", *, button: Button = "left", count: int = 1
    ) -> Result:
        """Click an element by its name. Raises NotDoneError, for example if it is not on the screen; UsageError."""
        _check_named("What to click", name)
        check_text("The window", window)
        check_role(role)
        if button not in get_args(Button) or count not in (1, 2):
            raise UsageError(f"There is no click with {button!r} and count {count!r}.", "left, middle, right; 1 or 2.")
        return await self._act(f"click {name!r}", Click(Target(name, role, inside=window), button, count))

    async def type(self, text: str, into: str = "", *, replace: bool = False) -> Result:
        """Type text where the keyboard focus is, or into a named field. Raises NotDoneError, UsageError."""
        _check_named("What to type", text)
        if "\0" in text:
            raise UsageError("No keyboard types a null character.", "Leave it out.")
        check_text("The field", into)
        where = f" into {into!r}" if into else ""
        return await self._act(f"type {text!r}{where}", Type(text, Target(into) if into else None, replace))

    async def press(self, chord: str) -> Result:
        """Press keys, such as "ctrl+s". Raises NotDoneError, and UsageError for an unknown key."""
        _check_named("What to press", chord)
        try:
            keys = keys_of(chord)
        except UnknownKeyError as error:
            raise UsageError(f"{error}.", 'Write keys like "ctrl+s".') from error
        return await self._act(f"press {chord}", Press(keys))

    async def open(self, name: str) -> Result:
        """Start an application, or open a file of the home. Raises NotDoneError, UsageError."""
        _check_named("What to open", name)
        return await self._act(f"open {name!r}", Open(name))

    async def close_window(self, title: str = "") -> Result:
        """Close the front window, or the one of that title. Raises NotDoneError, UsageError."""
        check_text("The title", title)
        return await self._act(f"close {title!r}" if title else "close the window", Close(title))

    async def set(self, control: str, value: "str | bool | float") -> Result:
        """Switch a control on or off, set its number, or choose one of its values. Raises NotDoneError."""
        _check_named("What to set", control)
        target = Target(control)
        goal: Goal
        match value:
            case bool():
                goal = Toggle(target, value)
            case str():
                goal = Choose(value, target)
            case int() | float():
                goal = SetValue(target, float(value))
            case _:
                raise UsageError(f"A control cannot be set to a {type(value).__name__}.", "True, a text or a number.")
        return await self._act(f"set {control!r} to {value!r}", goal)

    async def _act(self, words: str, *goals: Goal) -> Result:
        result = await self._run(words, goals)
        if result.outcome not in _CARRIED_OUT:
            raise NotDoneError(result)
        return result

    async def _run(self, instruction: str, goals: Sequence[Goal] | None, secrets: Sequence[str] = ()) -> Result:
        self._claim()
        async with self._turn:
            await self._ended()
            self._stop = stop = StopSwitch()
            self.run, self.recorder = Run(instruction, stop), None
            with stop_signals(stop):
                self._running = asyncio.ensure_future(self._carry_out(self.run, goals, secrets))
                try:
                    result = await asyncio.shield(self._running)
                except asyncio.CancelledError:
                    stop.stop("the caller cancelled it")  # the run stops at once and releases held keys and buttons
                    await self._ended()
                    raise
        # A signal is meant for the whole program, even if it comes when the run is over.
        number = next((number for number, reason in REASONS.items() if reason == stop.reason), None)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        if number is not None:
            raise SystemExit(128 + number)
        return result

    async def _ended(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _carry_out(self, run: Run, goals: Sequence[Goal] | None, secrets: Sequence[str]) -> Result:
        stop = run.stop
        mask = Redactor(secrets=secrets).text
        engine = None if goals is None else literal_engine(self._options.engine, mask, goals)
        job = await asyncio.to_thread(self._workplace.job, run.instruction, stop, engine, secrets)
        self.recorder = job.recorder
        self.bundles.append(job.recorder.path)
        thought = ""
        steps: list[Step] = []
        changes: tuple[Change, ...] = ()

        def show(event: Event) -> None:
            nonlocal thought, changes
            match event:
                case Decided():
                    thought = event.thought
                case Acted():
                    steps.append(Step(event.step, thought, event.detail, event.executed, event.error or ""))
                case Receipt():
                    changes = event.changes
            self._on_event(event)

        try:
            ended = await job.carry_out(self._person(stop), stop, show, run.steering)
            return Result(
                run.instruction, ended.outcome, ended.message, tuple(steps), changes, ended.evidence, ended.verified,
                ended.seconds, job.recorder.path,
            )  # fmt: skip
        finally:
            job.recorder.close()
            await asyncio.to_thread(job.write_report, lambda _: None)

    def _look(self) -> Look:
        if self._eye is None:
            self._eye = self._open_eye()
        frame, outline = self._eye.look()
        return Look(frame.image, outline.elements, outline.windows, outline.lacks)

    def _open_eye(self) -> Eye:
        desk, options = self._workplace.desk(self._stop), self._options
        languages, _ = reading_languages(os.environ if desk.environ is None else desk.environ)
        desktop = desk.open_desktop(self._stop, options.monitor, desk.environ)
        return Eye(desktop, languages, ours=not options.sandbox)


def _undone(bundle: Path) -> tuple[str, ...]:
    undoing = RunUndo(read_bundle(bundle))
    left = [(one.item, one.words) for one in undoing.carry_out() if not one.done]
    left += [(item, item.words) for item in undoing.items if item.verdict != "undo" and item.leaves_something]
    return tuple(f"{item.change.what}: {words}" for item, words in left)


def _check_named(what: str, text: object) -> None:
    check_text(what, text)
    if not text:
        raise UsageError(f"{what} is empty.")


P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[AsyncDesktop, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Desktop", P], T]:
    @wraps(method)
    def wait(self: "Desktop", /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._desktop.check_open()
        return self._wait(method, self._desktop, *args, **kwargs)

    return wait


class Desktop:
    """`AsyncDesktop` for programs without an event loop; a context manager. Every call blocks."""

    do = _waiting(AsyncDesktop.do)
    repeat = _waiting(AsyncDesktop.repeat)
    undo = _waiting(AsyncDesktop.undo)
    look = _waiting(AsyncDesktop.look)
    find = _waiting(AsyncDesktop.find)
    expect = _waiting(AsyncDesktop.expect)
    expect_gone = _waiting(AsyncDesktop.expect_gone)
    click = _waiting(AsyncDesktop.click)
    type = _waiting(AsyncDesktop.type)
    press = _waiting(AsyncDesktop.press)
    open = _waiting(AsyncDesktop.open)
    close_window = _waiting(AsyncDesktop.close_window)
    set = _waiting(AsyncDesktop.set)

    def __init__(self, desktop: AsyncDesktop) -> None:
        self._desktop = desktop
        self._runner = asyncio.Runner()
        self._use = threading.Lock()

    def __enter__(self) -> Self:
        self._desktop.check_open()
        self._wait(self._desktop.__aenter__)
        return self

    def _wait(self, method: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        with suppress(RuntimeError):  # no event loop runs, as required
            asyncio.get_running_loop()
            raise UsageError("An event loop runs here, and this would block it.", "Use async_desktop or async_sandbox.")
        if not self._use.acquire(blocking=False):
            raise UsageError("Another thread uses this desktop now.", "Use it from one thread.")
        try:
            return self._runner.run(method(*args, **kwargs))
        except (MaiError, NotSeenError) as error:  # our own frames tell the caller nothing
            raise error.with_traceback(None)  # noqa: B904 -- it is the same error
        finally:
            self._use.release()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs, close the connections, and end a sandbox; nothing if that was done."""
        if not self._desktop.closed:
            with self._runner:
                self._runner.run(self._desktop.close())

    def stop(self) -> None:
        """Stop the run under way at once, from any thread. Its result has the outcome "stopped"."""
        self._desktop.stop()

    @property
    def bundles(self) -> list[Path]:
        """The records of its runs, oldest first."""
        return self._desktop.bundles

    @property
    def sandbox(self) -> Sandbox:
        """The throw-away desktop. Raises UsageError on the person's own."""
        return self._desktop.sandbox
