"""The loop: see, think, act; every event goes to one sink.

The stop switch is raced against every wait, so a stop never has to sit out a model's answer or a settling screen. The
loop ends in exactly one way: with a `RunFinished`, after everything held down was released.
"""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from agent.actions import (
    TOUCHING,
    Action,
    Answer,
    AskUser,
    CallTool,
    Finish,
    OpenApp,
    Wait,
    describe,
    map_points,
)
from agent.desktop.hand import ActionFailedError, Hand
from agent.families.base import Decision, ParseFailure
from agent.geometry import DesktopPoint, GridPoint
from agent.notes import Note
from agent.run.consent import Consent
from agent.run.events import (
    Acted,
    Decided,
    Observed,
    Outcome,
    Paused,
    PersonSaid,
    Resumed,
    RunFinished,
    StepFinished,
    UserActed,
)
from agent.run.guard import LoopGuard
from agent.run.history import History, Past
from agent.run.observe import Eye, Observation
from agent.run.race import Race
from agent.run.settings import RunSettings
from agent.run.sink import Emit, Sink, SinkFailedError
from agent.run.think import Mind, Thought
from agent.run.worker import Worker
from agent.safety.stop import StopSwitch
from agent.screen.settle import Settled, unchanged
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus, MaiError, StoppedError

DRY_RUN_ENDS = "Dry run: the model repeats itself, because the screen does not show what its actions would change."
#: How long a hand that was stopped may take to let go before the loop goes on without it, in seconds.
_LET_GO_TIMEOUT = 3.0


class Person(Protocol):
    """Whom the model can ask."""

    async def ask(self, question: str) -> str | None:
        """The reply; None when nobody is there."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything the loop works with; each behind a protocol or replaceable by a fake."""

    eye: Eye
    hand: Hand
    mind: Mind
    history: History
    consent: Consent
    person: Person
    stop: StopSwitch


@dataclass(slots=True)
class _Tally:
    began: float = field(default_factory=time.monotonic)
    steps: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def add(self, usage: Usage) -> None:
        self.prompt += usage.prompt or 0
        self.completion += usage.completion or 0
        self.cached += usage.cached or 0

    @property
    def usage(self) -> Usage:
        return Usage(self.prompt, self.completion, self.cached)


@dataclass(slots=True)
class _Done:
    """What came of a decision.

    Args:
        notes: what the model is told about it.
        reply: of the person.
        tool_result: of a tool.
        changed: whether the screen did; None where nothing was done to it.
        settled: the screen after it.
        milliseconds: of its stages.
    """

    notes: list[Note]
    reply: str | None = None
    tool_result: str | None = None
    changed: bool | None = None
    settled: Settled | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)


class _End(Exception):  # noqa: N818 -- not an error: the run is over
    def __init__(self, outcome: Outcome, status: ExitStatus, message: str) -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome
        self.status = status
        self.message = message


class _OutOfTimeError(MaiError):
    def __init__(self) -> None:
        super().__init__("The time is up.")


class Loop:
    """One run. Call `run` once."""

    def __init__(self, settings: RunSettings, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._guard = LoopGuard(settings.guard)
        self._eye_worker = Worker("eye")
        self._hand_worker = Worker("hand")
        self._tally = _Tally()
        self._race = Race(parts.stop)

    async def run(self, emit: Emit) -> RunFinished:
        """Carry the run out and give every event to `emit`, on this thread; the last one is returned too.

        Raises:
            Exception: what `emit` raised; nothing is held down any more.
        """
        self._sink = Sink(emit)
        self._set_alarm(self._settings.max_seconds)
        try:
            await self._steps()
            end = _End("failed", ExitStatus.NOT_DONE, "The run ended without a reason.")
        except SinkFailedError as failure:
            raise failure.error from failure
        except _End as reached:
            end = reached
        except _OutOfTimeError:
            limit = f"the limit of {self._settings.max_seconds:.0f} seconds (--max-seconds)"
            end = _End("out_of_budget", ExitStatus.NOT_DONE, f"The task is not done, and {limit} is reached.")
        except StoppedError as error:
            end = _End("stopped", ExitStatus.STOPPED, str(error))
        except MaiError as error:
            end = _End("failed", error.exit_status, str(error))
        except Exception as error:  # a mistake of ours: the run ends like any other, with its record and nothing held
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            end = _End("failed", ExitStatus.NOT_DONE, f"mai-agent itself made a mistake: {what}. Please report it.")
        finally:
            self._alarm.cancel()
            await self._let_go()
        seconds = time.monotonic() - self._tally.began
        finished = RunFinished(end.outcome, end.status, end.message, self._tally.steps, seconds, self._tally.usage)
        self._sink.close(finished)
        return finished

    async def _steps(self) -> None:
        settled: Settled | None = None
        while True:
            self._check_budgets()
            self._tally.steps += 1
            step = self._tally.steps
            if await self._gate(step):
                settled = None  # whatever the person did meanwhile is to be seen
            seen = await self._see(settled)
            self._sink.emit(
                Observed(
                    step, (seen.image,), seen.viewport, seen.tokens, seen.fingerprint.digest, dict(seen.milliseconds)
                )
            )
            decision = await self._think(step, seen)
            # A screen seen before a person or a tool answered is no longer true.
            settled = await self._carry_out(step, seen, decision)

    def _set_alarm(self, seconds: float) -> None:
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._parts.stop.fail, _OutOfTimeError())

    @asynccontextmanager
    async def _off_the_clock(self) -> AsyncIterator[None]:
        """While a person is waited for, their time is not the run's."""
        left = self._alarm.when() - asyncio.get_running_loop().time()
        self._alarm.cancel()
        try:
            yield
        finally:
            self._set_alarm(max(0.0, left))

    async def _gate(self, step: int) -> bool:
        """Before a step: wait while paused, and take in what the person said and did; whether there was any of it."""
        steering, mind = self._parts.consent.steering, self._parts.mind
        paused, before = steering.paused, self._sink.count
        if paused:
            self._sink.emit(Paused(step, paused))
            async with self._off_the_clock():
                await self._race(steering.resumed())
            self._sink.emit(Resumed(step))
        for what in steering.take_acts():
            self._sink.emit(UserActed(step, what))
            mind.tell(str(Note("acted", what)))
        for text in steering.take_told():
            self._sink.emit(PersonSaid(step, text))
            mind.tell(str(Note("said", text)))
        return self._sink.count > before

    async def _see(self, settled: Settled | None) -> Observation:
        eye = self._parts.eye
        if settled is None:
            return await self._race(self._eye_worker.call(eye.look))
        return await self._race(self._eye_worker.call(eye.observe, settled))

    async def _think(self, step: int, seen: Observation) -> Decision:
        """Ask until an answer can be read, or the tries are used up."""
        tried: list[Thought] = []
        while True:
            thought = await self._race(self._parts.mind.think(step, seen, tried, self._sink.emit))
            self._tally.add(thought.answer.usage)
            self._sink.emit(self._decided(step, seen, thought))
            if isinstance(thought.result, Decision):
                return thought.result
            tried.append(thought)
            if len(tried) > self._settings.parse_retries:
                message = f"The model's answers cannot be carried out: {thought.result.message}."
                raise _End("unparsable", ExitStatus.NOT_DONE, message)

    def _decided(self, step: int, seen: Observation, thought: Thought) -> Decided:
        began = time.perf_counter()
        result, answer = thought.result, thought.answer
        if isinstance(result, ParseFailure):
            return Decided(
                step, thought.raw, result.thought, (), (), (), result, answer.usage, thought.milliseconds, answer=answer
            )
        targets = tuple(map_points(action, seen.viewport.to_desktop) for action in result.actions)
        milliseconds = thought.milliseconds | {"map": (time.perf_counter() - began) * 1000}
        return Decided(
            step, thought.raw, result.thought, result.calls, result.actions, targets, None, answer.usage, milliseconds,
            answer=answer,
        )  # fmt: skip

    async def _carry_out(self, step: int, seen: Observation, decision: Decision) -> Settled | None:
        """Do what was decided; the screen as it settled after it, None where it is to be looked at anew."""
        action: Action[GridPoint] = decision.actions[0]
        verdict = self._guard.observe(describe(action), seen.fingerprint, waiting=isinstance(action, Wait))
        if verdict == "stop":
            raise _looping(action, self._settings.dry_run)
        done = _Done([Note("repeated")] if verdict == "nudge" else [])
        match action:
            case Finish() | Answer():
                self._sink.emit(StepFinished(step, None, None, None, {}))
                raise _ending(action)
            case AskUser(question):
                async with self._off_the_clock():
                    done.reply = await self._race(self._parts.person.ask(question)) or str(Note("nobody"))
            case CallTool(name):
                done.tool_result = f"There is no tool named {name}."
            case _:
                await self._touch(step, seen, action, done)
        note = " ".join(map(str, done.notes)) or None
        self._remember(seen, decision, done.reply, done.tool_result, note)
        self._sink.emit(StepFinished(step, done.changed, note, done.reply or done.tool_result, done.milliseconds))
        return done.settled

    async def _touch(self, step: int, seen: Observation, action: Action[GridPoint], done: "_Done") -> None:
        """Carry out one action on the desktop, if it may be, and watch what comes of it."""
        target = map_points(action, seen.viewport.to_desktop)
        if isinstance(action, TOUCHING):
            verdict = await self._parts.consent.ask(
                step, target, self._settings.dry_run, self._sink.emit, self._race, self._eye_worker,
                self._off_the_clock,
            )  # fmt: skip
            if not verdict.allowed:
                done.notes += [Note("refused"), *([Note("said", verdict.note)] if verdict.note else [])]
                return
            if verdict.instead is not None:
                target = verdict.instead
                done.notes.append(Note("changed", describe(target)))
            if self._parts.consent.steering.acted:
                done.notes.append(Note("taken_over"))
                return
        try:
            acted = await self._act(step, target)
        except StoppedError:
            self._sink.emit(self._cut_off(step, target))
            raise
        self._sink.emit(acted)
        done.settled, done.changed = await self._settle(seen, action, acted)
        done.milliseconds = {"act": acted.milliseconds, "settle": done.settled.seconds * 1000}
        done.notes.extend(self._notes(action, acted, done.changed))

    async def _act(self, step: int, target: Action[DesktopPoint]) -> Acted:
        began = time.perf_counter()
        hand = self._parts.hand
        error: str | None = None
        detail = describe(target)
        if not isinstance(target, Wait):  # waiting is done by watching, below
            try:
                detail = await self._race(self._hand_worker.call(hand.perform, target))
            except ActionFailedError as failure:
                error = str(failure)
        return Acted(
            step,
            target,
            executed=hand.touches and error is None,
            dry_run=not hand.touches,
            detail=detail,
            error=error,
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def _cut_off(self, step: int, target: Action[DesktopPoint]) -> Acted:
        """What the record says of an action that a stop ended: nobody knows how much of it happened."""
        error = "stopped before it was finished; part of it may have happened"
        touches = self._parts.hand.touches
        return Acted(step, target, executed=False, dry_run=not touches, detail="", error=error, milliseconds=0.0)

    async def _settle(self, seen: Observation, action: Action[GridPoint], acted: Acted) -> tuple[Settled, bool]:
        rule, stop = self._settings.settle, self._parts.stop
        if isinstance(action, OpenApp):  # windows come up empty and are painted in several goes
            rule = replace(rule, quiet=rule.quiet * 2, cap=rule.cap * 2)
        if isinstance(action, Wait) and not acted.dry_run:
            await self._race(asyncio.sleep(action.seconds))
        settled = await self._race(self._eye_worker.call(self._parts.eye.watch, rule, lambda: stop.stopped))
        return settled, not unchanged(seen.fingerprint, settled)

    @staticmethod
    def _notes(action: Action[GridPoint], acted: Acted, changed: bool) -> list[Note]:
        if acted.error is not None:
            return [Note("failed", acted.error)]
        if acted.dry_run:
            return [Note("dry_run")]
        return [] if changed or isinstance(action, Wait) else [Note("no_effect")]

    def _remember(
        self, seen: Observation, decision: Decision, reply: str | None, tool_result: str | None, note: str | None
    ) -> None:
        self._parts.history.add(
            Past(decision.thought, decision.calls, seen.image, seen.tokens, reply, tool_result, note)
        )

    def _check_budgets(self) -> None:
        self._parts.stop.check()
        settings, tally = self._settings, self._tally
        over = None
        if tally.steps >= settings.max_steps:
            over = f"the limit of {settings.max_steps} steps (--max-steps)"
        elif settings.max_tokens is not None and tally.prompt + tally.completion >= settings.max_tokens:
            over = f"the limit of {settings.max_tokens} tokens (--max-tokens)"
        if over is not None:
            raise _End("out_of_budget", ExitStatus.NOT_DONE, f"The task is not done, and {over} is reached.")

    async def _let_go(self) -> None:
        """Release everything and close, without waiting for what hangs."""
        parts = self._parts
        closings: tuple[tuple[Worker, Callable[[], None]], ...] = (
            (self._hand_worker, parts.hand.close),
            (self._eye_worker, parts.eye.close),
        )
        calls = [asyncio.ensure_future(worker.call(close)) for worker, close in closings]
        done, late = await asyncio.wait(calls, timeout=_LET_GO_TIMEOUT)
        for call in done:
            call.exception()  # a display that is gone refuses to be closed; there is nothing left to do about it
        for call in late:
            call.cancel()
        for worker, _ in closings:
            worker.end()


def _looping(action: Action[GridPoint], dry_run: bool) -> _End:
    if dry_run:
        return _End("done", ExitStatus.DONE, DRY_RUN_ENDS)
    return _End("looping", ExitStatus.NOT_DONE, f"The model repeats itself without effect: {describe(action)}.")


def _ending(action: Finish | Answer) -> _End:
    match action:
        case Answer(text):
            return _End("done", ExitStatus.DONE, text)
        case Finish(True, message):
            return _End("done", ExitStatus.DONE, message or "The task is done.")
        case Finish(_, message):
            return _End("gave_up", ExitStatus.NOT_DONE, message or "The model gave up on the task.")
