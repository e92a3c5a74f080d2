"""The loop: see, think, act; an async stream of typed events.

The stop switch is raced against every wait, so a stop never has to sit out a model's answer or a settling screen. The
loop ends in exactly one way: with a `RunFinished`, after everything held down was released.
"""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
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
from agent.families.base import Call, Decision, ParseFailure
from agent.geometry import DesktopPoint, GridPoint
from agent.model.client import Usage
from agent.notes import Note
from agent.run.consent import Consent
from agent.run.events import (
    Acted,
    ApprovalGiven,
    Decided,
    Event,
    Observed,
    Outcome,
    Paused,
    Resumed,
    RunFinished,
    StepFinished,
    Told,
    UserActed,
)
from agent.run.guard import LoopGuard
from agent.run.history import History, Past
from agent.run.observe import Eye, Observation
from agent.run.race import Race
from agent.run.settings import RunSettings
from agent.run.think import Mind, Thought
from agent.run.worker import Worker
from agent.safety.stop import StopSwitch
from agent.screen.settle import Settled, unchanged
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
    """One run. Iterate `events()` once."""

    def __init__(self, settings: RunSettings, parts: Parts) -> None:
        self._settings = settings
        self._parts = parts
        self._guard = LoopGuard(settings.guard)
        self._eye_worker = Worker("eye")
        self._hand_worker = Worker("hand")
        self._tally = _Tally()
        self._race = Race(parts.stop)

    async def events(self) -> AsyncIterator[Event]:
        """The events of the run; the last one is `RunFinished`."""
        end = _End("failed", ExitStatus.NOT_DONE, "The run ended without a reason.")
        self._set_alarm(self._settings.max_seconds)
        try:
            async for event in self._steps():
                yield event
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
        yield RunFinished(end.outcome, end.status, end.message, self._tally.steps, seconds, self._tally.usage)

    async def _steps(self) -> AsyncIterator[Event]:
        settled: Settled | None = None
        while True:
            self._check_budgets()
            self._tally.steps += 1
            step = self._tally.steps
            async for intervention in self._gate(step):
                yield intervention
                settled = None  # whatever the person did meanwhile is to be seen
            seen = await self._see(settled)
            yield Observed(
                step, seen.image, seen.viewport, seen.tokens, seen.fingerprint.digest, dict(seen.milliseconds)
            )
            decision: Decision | None = None
            async for item in self._think(step, seen):
                if isinstance(item, Decision):
                    decision = item
                else:
                    yield item
            assert decision is not None
            settled = None  # a screen seen before a person or a tool answered is no longer true
            async for event in self._carry_out(step, seen, decision):
                if isinstance(event, Settled):
                    settled = event
                else:
                    yield event

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

    async def _gate(self, step: int) -> AsyncIterator[Event]:
        """Before a step: wait while paused, and take in what the person said and did."""
        steering, mind = self._parts.consent.steering, self._parts.mind
        if steering.paused:
            yield Paused(step, steering.paused)
            async with self._off_the_clock():
                await self._race(steering.resumed())
            yield Resumed(step)
        for what in steering.take_acts():
            yield UserActed(step, what)
            mind.tell(str(Note("acted", what)))
        for text in steering.take_told():
            yield Told(step, text)
            mind.tell(str(Note("said", text)))

    async def _see(self, settled: Settled | None) -> Observation:
        eye = self._parts.eye
        if settled is None:
            return await self._race(self._eye_worker.call(eye.look))
        return await self._race(self._eye_worker.call(eye.observe, settled))

    async def _think(self, step: int, seen: Observation) -> AsyncIterator[Event | Decision]:
        items = self._parts.mind.decide(step, seen)
        try:
            while (item := await self._race(anext(items, None))) is not None:
                if not isinstance(item, Thought):
                    yield item
                    continue
                self._tally.add(item.usage)
                yield self._decided(step, seen, item)
                if isinstance(item.result, Decision):
                    yield item.result
                    return
                if item.last:
                    raise _End(
                        "unparsable",
                        ExitStatus.NOT_DONE,
                        f"The model's answers cannot be carried out: {item.result.message}.",
                    )
        finally:
            await _close(items)

    def _decided(self, step: int, seen: Observation, thought: Thought) -> Decided:
        began = time.perf_counter()
        result = thought.result
        if isinstance(result, ParseFailure):
            return Decided(
                step, thought.raw, result.thought, None, None, None, result, thought.usage, thought.milliseconds
            )
        target = map_points(result.action, seen.viewport.to_desktop)
        milliseconds = thought.milliseconds | {"map": (time.perf_counter() - began) * 1000}
        return Decided(
            step, thought.raw, result.thought, result.call, result.action, target, None, thought.usage, milliseconds
        )

    async def _carry_out(self, step: int, seen: Observation, decision: Decision) -> AsyncIterator[Event | Settled]:
        action: Action[GridPoint] = decision.action
        verdict = self._guard.observe(describe(action), seen.fingerprint, waiting=isinstance(action, Wait))
        if verdict == "stop":
            raise _looping(action, self._settings.dry_run)
        notes = [Note("repeated")] if verdict == "nudge" else []
        reply: str | None = None
        tool_result: str | None = None
        changed: bool | None = None
        milliseconds: dict[str, float] = {}
        match action:
            case Finish() | Answer():
                yield StepFinished(step, None, None, None, {})
                raise _ending(action)
            case AskUser(question):
                async with self._off_the_clock():
                    reply = await self._race(self._parts.person.ask(question)) or str(Note("nobody"))
            case CallTool(name):
                tool_result = f"There is no tool named {name}."
            case _:
                target = map_points(action, seen.viewport.to_desktop)
                refusal: list[Note] = []
                if isinstance(action, TOUCHING):
                    asked = self._parts.consent.ask(
                        step, target, self._settings.dry_run, self._race, self._eye_worker, self._off_the_clock
                    )
                    async for event in asked:
                        yield event
                        if not isinstance(event, ApprovalGiven):
                            continue
                        if not event.allowed:
                            refusal = [Note("refused"), *([Note("said", event.note)] if event.note else [])]
                        elif event.instead is not None:
                            target = event.instead
                            notes.append(Note("changed", describe(target)))
                    if not refusal and self._parts.consent.steering.acted:
                        refusal = [Note("taken_over")]
                if not refusal:
                    try:
                        acted = await self._act(step, target)
                    except StoppedError:
                        yield self._cut_off(step, target)
                        raise
                    yield acted
                    settled, changed = await self._settle(seen, action, acted)
                    milliseconds = {"act": acted.milliseconds, "settle": settled.seconds * 1000}
                    yield settled
                    notes.extend(self._notes(action, acted, changed))
                notes.extend(refusal)
        note = " ".join(map(str, notes)) or None
        self._remember(seen, decision, reply, tool_result, note)
        yield StepFinished(step, changed, note, reply or tool_result, milliseconds)

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
        call = Call(decision.call.name, dict(decision.call.arguments))
        self._parts.history.add(Past(decision.thought, call, seen.image, seen.tokens, reply, tool_result, note))

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


async def _close(items: AsyncIterator[object]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        with suppress(RuntimeError):  # it is still ending, because a stop cancelled it and its server is slow to let go
            await close()
