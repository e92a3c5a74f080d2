"""The loop: see, think, act. Every event goes to one sink.

Each wait races against the stop switch, so a stop never waits for a model's answer or a settling screen. The loop
always ends with a `RunFinished`, after everything held down was released.
"""

import asyncio
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.core.actions import (
    ENDING,
    Absent,
    Answer,
    EndAction,
    Finish,
    KeyDown,
    KeyUp,
    Move,
    Remember,
    Wait,
    describe,
    map_points,
    shorten,
)
from agent.core.notes import Note, NoteKind
from agent.events import run_events as events
from agent.events.run_events import Emit, HandedBack, HandedOver, Outcome, SinkFailedError
from agent.evidence.claims import Claims, Verdict
from agent.families.base import Decision, ParseFailure, PastStep
from agent.run.control import Worker
from agent.run.loop.context import RunContext
from agent.run.loop.fallback import DecidingModels
from agent.run.loop.performer import Performer, Turn
from agent.run.loop.witness_worker import Watch
from agent.run.models.actor import Reading
from agent.run.observing.observe import Observation
from agent.screen.outline import Element
from agent.screen.settle import Settled
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus, MaiError, StoppedError
from foundation.printing import counted

#: Seconds for asking what changed: at the end of a run, after a stop, and at every step.
_LOOK, _LOOK_STOPPED, _LOOK_EACH_STEP = 3.0, 0.8, 0.5
#: Of these, seconds for settings to be written: at the end of a run, and after a stop.
_SETTLE, _SETTLE_STOPPED = 1.0, 0.35
#: Seconds until a model's claim is checked again, because programs write their settings with a delay.
_LATE = 0.7
#: Seconds for a stopped hand to release everything, before the loop continues without it.
_LET_GO_TIMEOUT = 3.0


DRY_RUN_ENDS = "Dry run: the model repeats itself, because the screen does not show what its actions would change."
DRY_RUN_TOUCHES_NOTHING = "Dry run: nothing was touched."


@dataclass(eq=False)
class RunEnd(Exception):  # noqa: N818 -- not an error: the run is over
    """Ends the run, unless another model takes over."""

    outcome: Outcome
    status: ExitStatus
    message: str  # for the person
    verdict: Verdict = Verdict()  # noqa: RUF009 -- frozen
    stuck: str = ""  # why the active model is stuck, as a clause


class _OutOfTimeError(MaiError):
    def __init__(self) -> None:
        super().__init__("The time is up.")


class Loop:
    """One run. Call `run` once."""

    def __init__(self, context: RunContext) -> None:
        self._settings = settings = context.own.settings
        self._context = context
        self._began = time.monotonic()
        self._step = 0
        self._usage = Usage(0, 0, 0)
        self._race = context.race
        self._models = DecidingModels(context)
        self._performer = Performer(context, lambda: self._models.now.observer)
        self._open = False  # a step has begun and is not finished
        self._watch = Watch(None if settings.dry_run else context.open_witness)
        self._claims = Claims(settings.instruction)
        self._doubted = False  # the model was told once that its claim is not confirmed
        self._receipt: events.Receipt | None = None  # the receipt for the verdict at the end
        self._closed = False  # a request that is slow to cancel emits nothing after the end
        self._failure: SinkFailedError | None = None

    async def run(self, emit: Emit) -> events.RunFinished:
        """Run to the end. Give every event to `emit`, on this thread; the last one is returned, too.

        Raises Exception: what `emit` raised. Nothing is held down then.
        """

        def receive(event: events.Event) -> None:
            if self._failure is not None:  # a run must not go on unseen
                raise self._failure
            if self._closed:
                return
            self._claims.handle(event)
            self._models.handle(event)
            match event:
                case events.Observed():
                    self._open = True
                case events.StepFinished():
                    self._open = False
                case events.Consulted():
                    self._usage += event.usage
            try:
                emit(event)
            except Exception as error:
                self._failure = SinkFailedError(error)
                raise self._failure from error

        self._receive = receive
        self._context.emit = self._emit
        self._watch.begin()
        self._race.limit(self._settings.max_seconds, _OutOfTimeError())
        try:
            try:
                end = await self._until_it_ends()
            finally:
                self._race.end()
                self._performer.end()
                await self._let_go()
            self._emit(await self._last_look(end))
        except SinkFailedError as failure:
            raise failure.error from failure
        finally:
            self._watch.end()
        seconds = time.monotonic() - self._began
        finished = events.RunFinished(
            end.outcome, end.status, end.message, self._step, seconds, self._usage,
            end.verdict.evidence, end.verdict.verified,
        )  # fmt: skip
        self._closed = True
        emit(finished)
        return finished

    async def _until_it_ends(self) -> RunEnd:
        try:
            await self._steps()
        except RunEnd as reached:
            return reached
        except _OutOfTimeError:
            limit = f"the limit of {self._settings.max_seconds:.0f} seconds (--max-seconds)"
            return RunEnd("out_of_budget", ExitStatus.NOT_DONE, f"The task is not done, and {limit} is reached.")
        except StoppedError as error:
            return RunEnd("stopped", ExitStatus.STOPPED, str(error))
        except MaiError as error:
            return RunEnd("failed", error.exit_status, str(error))
        except Exception as error:  # a bug of ours: end the run as usual, recorded and with nothing held down
            frame = traceback.extract_tb(error.__traceback__)[-1]
            bug = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
            return RunEnd("failed", ExitStatus.NOT_DONE, f"mai-agent itself made a mistake: {bug}. Please report it.")
        return RunEnd("failed", ExitStatus.NOT_DONE, "The run ended without a reason.")

    async def _steps(self) -> None:
        settled: Settled | None = None
        while True:
            self._check_budgets()
            self._step = step = self._step + 1
            if await self._gate(step):
                settled = None  # the person may have changed the screen meanwhile
            try:
                done = await self._one_step(step, settled)
            except RunEnd as end:
                if not end.stuck or self._over_budget() or not await self._models.change(step + 1, end.stuck):
                    raise
                settled = None
                continue
            other = await self._models.change(step + 1, self._models.finished(done))
            settled = None if other else done.settled  # the other model has its own rules for seeing the screen

    def _emit(self, event: events.Event) -> None:
        """Emit an event. Close the open step first if another model takes over in its middle."""
        if self._open and isinstance(event, HandedOver | HandedBack):
            self._receive(events.StepFinished(self._step, None, None, None, {}))
        self._receive(event)

    async def _one_step(self, step: int, settled: Settled | None) -> Turn:
        """Carry out one step: see, think, act."""
        try:
            seen = await self._see(settled)
            boxes = seen.boxes if self._context.own.actor.names_elements else {}
            digest = seen.fingerprint.digest
            self._emit(events.Observed(step, seen.images, seen.viewport, seen.tokens, digest, seen.milliseconds, boxes))
            turn = await self._think(step, seen)
        except MaiError as error:
            if not self._models.on_fallback or self._context.stop.stopped:
                raise
            raise RunEnd("failed", error.exit_status, str(error), stuck=str(error)) from error
        # A reply of a person or a tool may change the screen: then the result has no settled screen.
        return await self._carry_out(turn)

    async def _gate(self, step: int) -> bool:
        """Wait while paused, and collect what the person said and did. Return whether anything happened."""
        steering, actor = self._context.steering, self._models.now.actor
        paused = steering.paused
        if paused:
            self._emit(events.Paused(step, paused))
            await self._race.for_person(steering.resumed())
            self._emit(events.Resumed(step))
        acts, texts = steering.take_acts(), steering.take_told()
        for act in acts:
            self._emit(events.UserActed(step, act))
            actor.tell(str(Note("acted", act)))
        for text in texts:
            self._emit(events.PersonSaid(step, text))
            actor.tell(str(Note("said", text)))
        return bool(paused or acts or texts)

    async def _see(self, settled: Settled | None) -> Observation:
        member = self._models.now
        looking = member.observer.look if settled is None else partial(member.observer.observe, settled)
        seen = await self._context.on_screen(looking)
        if member.actor.wants_outline and not member.elsewhere and self._step > 1:
            receipt = await self._race(self._watch.look(_LOOK_EACH_STEP))
            seen = replace(seen, changes=tuple(replace(change, undo=None) for change in receipt.changes))
        return seen

    async def _think(self, step: int, seen: Observation) -> Turn:
        """Ask until an answer can be parsed, or the attempts are used up."""
        tried: list[Reading] = []
        while True:
            reading = await self._race(self._models.now.actor.ask(step, seen, tried, self._emit))
            self._usage += reading.answer.usage
            decided = self._decided(step, seen, reading)
            self._emit(decided)
            if isinstance(reading.result, Decision):
                self._claims.saw(seen.outline)  # the outline may have been taken while the model thought
                return Turn(step, seen, reading.result, decided.targets, reading.answer, self._emit)
            tried.append(reading)
            if len(tried) > self._settings.parse_retries:
                problem = f"answers cannot be carried out: {reading.result.message}"
                raise RunEnd("unparsable", ExitStatus.NOT_DONE, f"The model's {problem}.", stuck=f"its {problem}")

    def _decided(self, step: int, seen: Observation, reading: Reading) -> events.Decided:
        began = time.perf_counter()
        result, answer = reading.result, reading.answer
        decided = partial(
            events.Decided, step, reading.raw, result.thought, usage=answer.usage, answer=answer,
            by=self._models.now.role, model=answer.model,
        )  # fmt: skip
        if isinstance(result, ParseFailure):
            return decided((), (), (), result, milliseconds=reading.milliseconds)
        targets = tuple(map_points(action, seen.viewport.to_desktop) for action in result.actions)
        milliseconds = reading.milliseconds | {"map": (time.perf_counter() - began) * 1000}
        return decided(result.calls, result.actions, targets, None, milliseconds=milliseconds, doubt=result.doubt)

    async def _carry_out(self, turn: Turn) -> Turn:
        """Carry out a decision. `settled` of the result is None if the screen must be captured again."""
        decision, seen = turn.decision, turn.seen
        words = "; ".join(map(describe, decision.actions))
        waiting = all(isinstance(action, Wait | KeyDown | KeyUp | Remember) for action in decision.actions)
        verdict = self._models.detector.observe(words, seen.fingerprint, waiting=waiting)
        if verdict == "stop":
            raise looping(words, self._settings.dry_run)
        turn.notes += [Note("repeated")] if verdict == "nudge" and self._settings.remarks else []
        left_out: NoteKind = "first_only" if len(decision.calls) == 1 else "left_out"
        turn.notes += [Note(left_out, str(decision.left_out))] if decision.left_out else []
        ending = next((action for action in decision.actions if isinstance(action, ENDING)), None)
        await self._race(self._watch.ready())
        await self._performer.perform(turn)
        turn.notes += [Note("unread", decision.unread)] if decision.unread and not turn.incomplete else []
        if self._models.now.errors_hidden:
            turn.notes = [Note("failed", "it failed") if note.kind == "failed" else note for note in turn.notes]
        if ending is not None and not turn.incomplete and (end := await self._judge(ending, turn)) is not None:
            self._emit(events.StepFinished(turn.step, turn.changed, turn.note, None, turn.milliseconds))
            if end.outcome == "gave_up" and not self._models.on_fallback:
                end.stuck = "it gives up"
            raise end
        past = PastStep(
            decision.thought, decision.calls, seen.images, user_reply=turn.reply, tool_result=turn.tool_result,
            note=turn.note, answer=turn.answer, outline=seen.outline, changes=seen.changes, agreed=turn.agreed,
        )  # fmt: skip
        now = self._models.now
        now.actor.history.add(past, seen.tokens)
        files = () if now.elsewhere else turn.pictures
        pictures = await self._context.on_screen(now.observer.pictures, files) if files else ()
        now.actor.show(pictures, len(turn.pictures))
        reply = turn.reply or turn.tool_result
        self._emit(events.StepFinished(turn.step, turn.changed, turn.note, reply, turn.milliseconds))
        return turn

    async def _judge(self, ending: EndAction, turn: Turn) -> RunEnd | None:
        """Judge the claimed end of the run, and return the actual end.

        Return None if the model must look again, because its claim is not confirmed.
        """
        own = self._models.now.settings.own_engine
        if not isinstance(ending, Finish) or not ending.success or self._settings.dry_run:
            return ending_of(ending)
        judge = partial(self._claims.judge_own, ending) if own else self._claims.judge
        receipt = await self._race(self._watch.look(_LOOK, _SETTLE))
        verdict = judge(receipt, await self._there())
        if verdict.doubt and verdict.verified is None and self._claims.did_something:
            await self._race(asyncio.sleep(_LATE))
            receipt = await self._race(self._watch.look(_LOOK, _SETTLE))
            verdict = judge(receipt, await self._there())
        if not verdict.doubt:
            self._receipt = receipt
            return RunEnd("done", ExitStatus.DONE, ending.message or "The task is done.", verdict)
        if not own and not self._doubted and not self._over_budget():
            self._doubted = True
            turn.notes.append(Note("doubted", verdict.doubt))
            turn.settled = None  # capture again: the screen may differ now
            return None
        self._receipt = receipt
        message = ending.message or "It could not be confirmed that the task is done."
        if not own:
            claim = f" It says: {ending.message}" if ending.message else ""
            message = f"The model says that the task is done, but {verdict.doubt}.{claim}"
        elif ending.verified is not False:  # the engine's message is written for a success
            message = f"It is not confirmed that the task is done: {verdict.doubt}. {ending.message}".rstrip()
        return RunEnd("unverified", ExitStatus.NOT_DONE, message, replace(verdict, verified=False))

    async def _there(self) -> list[Element]:
        """Return the current elements at the places that the run touched last."""
        glance = self._context.surroundings.glance
        places = [await self._context.on_screen(glance, Move(place)) for place in self._claims.places]
        return [one for place in places for one in place.elements]

    async def _last_look(self, end: RunEnd) -> events.Receipt:
        if self._settings.dry_run:
            return events.Receipt(remarks=(DRY_RUN_TOUCHES_NOTHING,), watched=False)
        if self._receipt is not None:
            return self._receipt
        stopped = end.outcome == "stopped"
        return await self._watch.look(*((_LOOK_STOPPED, _SETTLE_STOPPED) if stopped else (_LOOK, _SETTLE)))

    def _check_budgets(self) -> None:
        self._context.stop.check()
        if over := self._over_budget():
            raise RunEnd("out_of_budget", ExitStatus.NOT_DONE, f"The task is not done, and {over} is reached.")

    def _over_budget(self) -> str:
        """Name the limit that is reached; "" for none."""
        settings, used = self._settings, (self._usage.prompt or 0) + (self._usage.completion or 0)
        if self._step >= settings.max_steps:
            return f"the limit of {counted(settings.max_steps, 'step')} (--max-steps)"
        if settings.max_tokens is not None and used >= settings.max_tokens:
            return f"the limit of {settings.max_tokens} tokens (--max-tokens)"
        return ""

    async def _let_go(self) -> None:
        """Release everything and close, without waiting for calls that hang."""
        context = self._context
        closings: tuple[tuple[Worker, Callable[[], None]], ...] = (
            (context.acting, context.hand.close),
            (context.observing, self._models.close),
        )
        calls = [asyncio.ensure_future(worker.call(close)) for worker, close in closings]
        done, late = await asyncio.wait(calls, timeout=_LET_GO_TIMEOUT)
        for call in done:
            call.exception()  # closing fails on a lost display; nothing can be done about it
        for call in late:
            call.cancel()
        for worker, _ in closings:
            worker.end()


def looping(actions: str, dry_run: bool) -> RunEnd:
    """Return the end of a run whose model repeats itself."""
    if dry_run:
        return RunEnd("done", ExitStatus.DONE, DRY_RUN_ENDS)
    does = "repeats itself without effect"
    return RunEnd("looping", ExitStatus.NOT_DONE, f"The model {does}: {actions}.", stuck=f"it {does}")


def ending_of(action: EndAction) -> RunEnd:
    """Return the end that a model asks for."""
    match action:
        case Answer(text):
            return RunEnd("done", ExitStatus.DONE, text)
        case Absent(target):
            subject = shorten(target) if target else "What was asked for"
            return RunEnd("gave_up", ExitStatus.NOT_DONE, f"{subject} is not on the screen, the model says.")
        case Finish(success=True, message=message):
            return RunEnd("done", ExitStatus.DONE, message or "The task is done.")
        case Finish(message=message):
            return RunEnd("gave_up", ExitStatus.NOT_DONE, message or "The model gave up on the task.")
