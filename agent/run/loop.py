"""The loop: see, think, act; every event goes to one sink.

The stop switch is raced against every wait, so a stop never has to sit out a model's answer or a settling screen. The
loop ends in exactly one way: with a `RunFinished`, after everything held down was released.
"""

import asyncio
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.actions import Answer, Finish, Wait, describe, map_points
from agent.families.base import Decision, ParseFailure, PastStep
from agent.notes import Note
from agent.run import events
from agent.run.actor import Reading
from agent.run.context import RunContext
from agent.run.loop_detector import LoopDetector
from agent.run.observe import Observation
from agent.run.performer import Performed, Performer
from agent.run.race import Race
from agent.run.settings import RunSettings
from agent.run.sink import Emit, Sink, SinkFailedError
from agent.run.worker import Worker
from agent.screen.settle import Settled
from foundation.chat_stream import Answer as ModelAnswer
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus, MaiError, StoppedError

DRY_RUN_ENDS = "Dry run: the model repeats itself, because the screen does not show what its actions would change."
#: How long a hand that was stopped may take to let go before the loop goes on without it, in seconds.
_LET_GO_TIMEOUT = 3.0


class _End(Exception):  # noqa: N818 -- not an error: the run is over
    def __init__(self, outcome: events.Outcome, status: ExitStatus, message: str) -> None:
        super().__init__(message)
        self.outcome: events.Outcome = outcome
        self.status = status
        self.message = message


class _OutOfTimeError(MaiError):
    def __init__(self) -> None:
        super().__init__("The time is up.")


class Loop:
    """One run. Call `run` once."""

    def __init__(self, settings: RunSettings, context: RunContext) -> None:
        self._settings = settings
        self._context = context
        self._detector = LoopDetector(settings.loop_rule)
        self._observing, self._acting = Worker("observer"), Worker("hand")
        self._began = time.monotonic()
        self._step = 0
        self._usage = Usage(0, 0, 0)
        self._race = Race(context.stop)
        self._performer = Performer(settings, context, self._race, self._observing, self._acting)

    async def run(self, emit: Emit) -> events.RunFinished:
        """Carry the run out and give every event to `emit`, on this thread; the last one is returned too.

        Raises Exception: what `emit` raised; nothing is held down any more.
        """
        self._sink = Sink(emit)
        self._race.limit(self._settings.max_seconds, _OutOfTimeError())
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
            self._race.end()
            await self._let_go()
        seconds = time.monotonic() - self._began
        finished = events.RunFinished(end.outcome, end.status, end.message, self._step, seconds, self._usage)
        self._sink.close(finished)
        return finished

    async def _steps(self) -> None:
        settled: Settled | None = None
        while True:
            self._check_budgets()
            self._step = step = self._step + 1
            if await self._gate(step):
                settled = None  # whatever the person did meanwhile is to be seen
            seen = await self._see(settled)
            self._sink.emit(
                events.Observed(
                    step, seen.images, seen.viewport, seen.tokens, seen.fingerprint.digest, seen.milliseconds
                )
            )
            decision, answer = await self._think(step, seen)
            # A screen seen before a person or a tool answered is no longer true.
            settled = await self._carry_out(step, seen, decision, answer)

    async def _gate(self, step: int) -> bool:
        """Before a step: wait while paused, and take in what the person said and did; whether there was any of it."""
        steering, actor = self._context.consent.steering, self._context.actor
        paused, before = steering.paused, self._sink.count
        if paused:
            self._sink.emit(events.Paused(step, paused))
            await self._race.for_person(steering.resumed())
            self._sink.emit(events.Resumed(step))
        for what in steering.take_acts():
            self._sink.emit(events.UserActed(step, what))
            actor.tell(str(Note("acted", what)))
        for text in steering.take_told():
            self._sink.emit(events.PersonSaid(step, text))
            actor.tell(str(Note("said", text)))
        return self._sink.count > before

    async def _see(self, settled: Settled | None) -> Observation:
        observer = self._context.observer
        if settled is None:
            return await self._race(self._observing.call(observer.look))
        return await self._race(self._observing.call(observer.observe, settled))

    async def _think(self, step: int, seen: Observation) -> tuple[Decision, ModelAnswer]:
        """Ask until an answer can be read, or the tries are used up."""
        tried: list[Reading] = []
        while True:
            reading = await self._race(self._context.actor.ask(step, seen, tried, self._sink.emit))
            self._usage += reading.answer.usage
            self._sink.emit(self._decided(step, seen, reading))
            if isinstance(reading.result, Decision):
                return reading.result, reading.answer
            tried.append(reading)
            if len(tried) > self._settings.parse_retries:
                message = f"The model's answers cannot be carried out: {reading.result.message}."
                raise _End("unparsable", ExitStatus.NOT_DONE, message)

    def _decided(self, step: int, seen: Observation, reading: Reading) -> events.Decided:
        began = time.perf_counter()
        result, answer = reading.result, reading.answer
        decided = partial(events.Decided, step, reading.raw, result.thought, usage=answer.usage, answer=answer)
        if isinstance(result, ParseFailure):
            return decided((), (), (), result, milliseconds=reading.milliseconds)
        targets = tuple(map_points(action, seen.viewport.to_desktop) for action in result.actions)
        milliseconds = reading.milliseconds | {"map": (time.perf_counter() - began) * 1000}
        return decided(result.calls, result.actions, targets, None, milliseconds=milliseconds)

    async def _carry_out(self, step: int, seen: Observation, decision: Decision, answer: ModelAnswer) -> Settled | None:
        """Do what was decided; the screen as it settled after it, None where it is to be looked at anew."""
        words = "; ".join(map(describe, decision.actions))
        waiting = all(isinstance(action, Wait) for action in decision.actions)
        verdict = self._detector.observe(words, seen.fingerprint, waiting=waiting)
        if verdict == "stop":
            raise _looping(words, self._settings.dry_run)
        done = Performed([Note("repeated")] if verdict == "nudge" else [])
        ending = next((action for action in decision.actions if isinstance(action, Finish | Answer)), None)
        before = decision.actions if ending is None else decision.actions[: decision.actions.index(ending)]
        await self._performer.perform(step, seen, before, done, self._sink.emit)
        if ending is not None and not done.incomplete:
            self._sink.emit(events.StepFinished(step, done.changed, done.note, None, done.milliseconds))
            raise _ending(ending)
        past = PastStep(
            decision.thought, decision.calls, seen.images, user_reply=done.reply, tool_result=done.tool_result,
            note=done.note, answer=answer,
        )  # fmt: skip
        self._context.history.add(past, seen.tokens)
        self._sink.emit(
            events.StepFinished(step, done.changed, done.note, done.reply or done.tool_result, done.milliseconds)
        )
        return done.settled

    def _check_budgets(self) -> None:
        self._context.stop.check()
        settings, used = self._settings, (self._usage.prompt or 0) + (self._usage.completion or 0)
        over = None
        if self._step >= settings.max_steps:
            over = f"the limit of {settings.max_steps} steps (--max-steps)"
        elif settings.max_tokens is not None and used >= settings.max_tokens:
            over = f"the limit of {settings.max_tokens} tokens (--max-tokens)"
        if over is not None:
            raise _End("out_of_budget", ExitStatus.NOT_DONE, f"The task is not done, and {over} is reached.")

    async def _let_go(self) -> None:
        """Release everything and close, without waiting for what hangs."""
        context = self._context
        closings: tuple[tuple[Worker, Callable[[], None]], ...] = (
            (self._acting, context.hand.close),
            (self._observing, context.observer.close),
        )
        calls = [asyncio.ensure_future(worker.call(close)) for worker, close in closings]
        done, late = await asyncio.wait(calls, timeout=_LET_GO_TIMEOUT)
        for call in done:
            call.exception()  # a display that is gone refuses to be closed; there is nothing left to do about it
        for call in late:
            call.cancel()
        for worker, _ in closings:
            worker.end()


def _looping(actions: str, dry_run: bool) -> _End:
    if dry_run:
        return _End("done", ExitStatus.DONE, DRY_RUN_ENDS)
    return _End("looping", ExitStatus.NOT_DONE, f"The model repeats itself without effect: {actions}.")


def _ending(action: Finish | Answer) -> _End:
    match action:
        case Answer(text):
            return _End("done", ExitStatus.DONE, text)
        case Finish(True, message):
            return _End("done", ExitStatus.DONE, message or "The task is done.")
        case Finish(_, message):
            return _End("gave_up", ExitStatus.NOT_DONE, message or "The model gave up on the task.")
