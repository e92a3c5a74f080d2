"""Carries out what was decided: the actions of one decision in order, each judged by the policy, and watched."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from agent.core.actions import (
    ENDING,
    TOUCHING,
    Action,
    AskUser,
    ButtonDown,
    ButtonUp,
    CallTool,
    KeyDown,
    KeyUp,
    OpenApp,
    Remember,
    VisitPage,
    Wait,
    describe,
    points_of,
    shorten,
)
from agent.core.geometry import DesktopPoint, GridPoint
from agent.core.notes import Note
from agent.desktop.protocol.hand import ActionFailedError
from agent.events.fates import Why
from agent.events.run_events import Acted, Dropped, Warned
from agent.events.sink import Emit
from agent.families.base import Decision
from agent.run.control.race import Race
from agent.run.control.worker import Worker
from agent.run.loop.context import RunContext, ToolFailedError
from agent.run.loop.held_keys import HeldKeys
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observation, Observer
from agent.safety.addresses import facts_of
from agent.safety.naming import Aim, aim_of, named
from agent.safety.sentence import Sentence
from agent.safety.situation import UNKNOWN, Situation
from agent.screen.outline import Element
from agent.screen.settle import Settled, unchanged
from foundation.errors import MaiError

#: Seconds of rest after which a takeover has been noticed: `agent.desktop.input.takeover` waits for what applications
#: do to the pointer after an action, then for a pointer that is on its way.
_NOTICED_WITHIN = 1.0
#: What changes nothing that could be seen.
_UNSEEN = (Wait, KeyDown, KeyUp, ButtonDown, ButtonUp)


@dataclass(slots=True)
class Performed:
    """What came of a decision."""

    notes: list[Note]  # what the model is told about it
    reply: str | None = None  # of the person
    tool_result: str | None = None  # of tools
    changed: bool | None = None  # whether the screen did; None where nothing was done to it
    settled: Settled | None = None  # the screen after it; None where it is to be looked at anew
    milliseconds: dict[str, float] = field(default_factory=dict)  # of its stages
    in_vain: bool = False  # an action failed, or changed nothing that could be seen
    incomplete: bool = False  # an action was not carried out, and so none after it
    agreed: bool = False  # a person agreed to what the model's service objected to

    @property
    def note(self) -> str | None:
        """The notes as one text."""
        return " ".join(map(str, self.notes)) or None


@dataclass(frozen=True, slots=True)
class _Turn:
    """One decision while it is carried out."""

    step: int
    seen: Observation
    decision: Decision
    targets: Sequence[Action[DesktopPoint]]  # its actions, on the desktop
    done: Performed
    emit: Emit

    def drop(self, index: int, why: Why, target: Action[DesktopPoint] | None = None) -> None:
        """Tell that an action is not done."""
        self.emit(Dropped(self.step, target or self.targets[index], why, index=index))

    def overtaken(self, index: int, target: Action[DesktopPoint]) -> None:
        """Drop an action that was decided before the person took over."""
        self.done.settled = None
        self.done.notes.append(Note("taken_over"))
        self.drop(index, "overtaken", target)


@dataclass(slots=True)
class _Attempt:
    """One action that may be done."""

    index: int
    target: Action[DesktopPoint]
    judged: Action[DesktopPoint] | None  # what it comes to; None for what only ends something
    situation: Situation = UNKNOWN
    elements: tuple[Element, ...] = ()
    aim: Aim = Aim()  # noqa: RUF009 -- frozen

    def goes_to(self, situation: Situation) -> None:
        """Take in what is known of the place that the action goes to."""
        self.situation, self.elements, self.aim = situation, situation.elements, aim_of(self.target, situation)


class Performer:
    """Carries out the actions of decisions; `observer` gives what looks at the screen for the model at work."""

    def __init__(
        self,
        settings: RunSettings,
        context: RunContext,
        race: Race,
        observing: Worker,
        acting: Worker,
        observer: Callable[[], Observer],
    ) -> None:
        self._settings = settings
        self._context = context
        self._race = race
        self._observing = observing
        self._acting = acting
        self._observer = observer
        self._holding = HeldKeys(context, acting)
        self._sentence = Sentence(settings.instruction)

    async def perform(
        self,
        step: int,
        seen: Observation,
        decision: Decision,
        targets: Sequence[Action[DesktopPoint]],
        done: Performed,
        emit: Emit,
    ) -> None:
        """Carry the actions out one after the other, until one is not; what comes of them goes into `done`.

        What ends the run, and all that stands after it, is left to the caller. Raises StoppedError: in the middle of an
        action, or while waiting.
        """
        turn = _Turn(step, seen, decision, targets, done, emit)
        if decision.doubt and self._context.consent.policy.mode == "never":
            emit(Warned(f"The model says it twice: {decision.doubt}. It is done all the same: nothing is asked."))
        for index, action in enumerate(decision.actions):
            if isinstance(action, ENDING):
                break
            if not await self._one(turn, index, action):
                done.incomplete = True
                for later in range(index + 1, len(targets)):
                    turn.drop(later, "left out")
                done.notes += [Note("left_out", str(left))] if (left := len(targets) - index - 1) else []
                break
        await self._race(self._holding.lift())  # a person who types while the model thinks would type ctrl+q
        done.notes += self._holding.take_notes()

    def end(self) -> None:
        """The run ends."""
        self._holding.end()

    async def _one(self, turn: _Turn, index: int, action: Action[GridPoint]) -> bool:
        """Carry out one action of any kind; whether the next one may follow."""
        done = turn.done
        match action:
            case AskUser(question):
                await self._holding.let_go()
                done.reply, done.settled = await self._race.for_person(self._context.person.ask(question)), None
                done.notes += [] if done.reply else [Note("nobody")]
                return False  # what follows was decided without the reply
            case Remember():
                return True  # it stays in the history, as the model wrote it
            case CallTool(name) if name not in self._context.tools.names:
                error = f"there is no tool named {shorten(name)}"
                done.notes.append(Note("failed", error))
                dry_run = self._settings.dry_run
                turn.emit(Acted(turn.step, turn.targets[index], False, dry_run, "", error, 0.0, index=index))
                return False
        held = self._holding.held
        target = held.effective(turn.targets[index])
        attempt = _Attempt(index, target, held.judged(target))
        if index and self._context.hand.touches:  # between two answers, the model's thinking gives that time
            await self._race(asyncio.sleep(self._context.hand.rest.since + _NOTICED_WITHIN - time.monotonic()))
        judged = attempt.judged if isinstance(action, (*TOUCHING, CallTool)) else None
        may_be_done = judged is None or await self._may_be_done(turn, attempt, judged)
        return may_be_done and await self._do(turn, attempt, action)

    async def _may_be_done(self, turn: _Turn, attempt: _Attempt, judged: Action[DesktopPoint]) -> bool:
        """Put an action to the policy, and to the person where that is needed; the person may change it."""
        consent, done, emit = self._context.consent, turn.done, turn.emit
        objection = "" if done.agreed else turn.decision.objection
        if consent.steering.acted:  # nobody is asked about what will not be done
            turn.overtaken(attempt.index, attempt.target)
            return False
        attempt.goes_to(await self._look(judged, turn.decision.doubt, emit))
        question = consent.question(judged, attempt.situation, objection)
        asks = question is not None and consent.would_ask(question, dry_run=self._settings.dry_run)
        if asks and not await self._free_hands(done):
            turn.drop(attempt.index, "left out", attempt.target)
            return False
        verdict, situation = await consent.ask(
            turn.step, attempt.index, attempt.target, question, self._settings.dry_run, emit, self._race,
            self._observing, attempt.situation,
        )  # fmt: skip
        if verdict is not None and verdict.answer in ("refused", "skipped", "told"):
            done.settled = None  # a person who is asked may do anything meanwhile
            done.notes.append(Note("skipped" if verdict.answer == "skipped" else "refused"))
            done.notes += [Note("said", verdict.note)] if verdict.note else []
            turn.drop(attempt.index, verdict.answer, attempt.target)
            return False
        if verdict is not None:
            done.agreed = done.agreed or (bool(objection) and not self._settings.dry_run)
        if verdict is None or consent.steering.acted:  # withdrawn
            turn.overtaken(attempt.index, attempt.target)
            return False
        if verdict.instead is not None:
            attempt.target, attempt.judged = verdict.instead, self._holding.held.judged(verdict.instead)
            attempt.goes_to(situation)
            done.notes.append(Note("changed", describe(attempt.target)))
        return True

    async def _do(self, turn: _Turn, attempt: _Attempt, action: Action[GridPoint]) -> bool:
        """Carry out an action, and watch what comes of it; whether the next one may follow."""
        done, target = turn.done, attempt.target
        told = partial(
            Acted, turn.step, target, dry_run=not self._context.hand.touches, elements=attempt.elements,
            index=attempt.index, aim=attempt.aim,
        )  # fmt: skip
        acted = await self._act(target, told, named(target, attempt.aim), done, turn.emit)
        if attempt.judged is not None:  # what comes next is judged by it, too
            self._sentence.did(attempt.judged, attempt.situation)
            await self._context.consent.did(attempt.judged, self._race, self._observing)
        if acted.error is not None:
            await self._holding.let_go()
            done.notes.append(Note("failed", acted.error))
        else:
            self._holding.did(target)
            done.notes += [Note("dry_run")] if acted.dry_run else []
        if isinstance(action, CallTool):
            done.settled = None  # it may have changed the screen, and nobody watched
            return False  # what follows was decided without its result
        done.settled = await self._settle(action, acted)
        changed = not unchanged(turn.seen.fingerprint, done.settled)
        no_effect = not (changed or acted.error or acted.dry_run or isinstance(action, _UNSEEN))
        done.notes += [Note("no_effect")] if no_effect and self._settings.remarks else []
        done.changed, done.in_vain = changed, no_effect or acted.error is not None
        for name, took in (("act", acted.milliseconds), ("settle", done.settled.seconds * 1000)):
            done.milliseconds[name] = done.milliseconds.get(name, 0.0) + took
        return acted.error is None

    async def _free_hands(self, done: Performed) -> bool:
        """Let go of what is held down, for a person is to be asked; whether the action may still be done after it."""
        if self._holding.held.button is None:
            await self._race(self._holding.lift())
            return True
        await self._holding.let_go()  # which is to drop, and may be to click: what was approved went as far as here
        done.settled = None
        done.notes.append(Note("needs_drag"))
        return False

    async def _look(self, judged: Action[DesktopPoint], doubt: str, emit: Emit) -> Situation:
        """What is known of the place that an action goes to, and what the person's sentence says of it."""
        situation = await self._context.consent.look(judged, self._race, self._observing, emit)
        if doubt and points_of(judged):
            return replace(situation, doubt=doubt)
        if isinstance(judged, VisitPage):
            said = facts_of(judged.url, self._settings.instruction)
        else:
            said = self._sentence.facts(judged, situation)
        return replace(situation, facts=situation.facts | said)

    async def _act(
        self, target: Action[DesktopPoint], acted: Callable[..., Acted], words: str, done: Performed, emit: Emit
    ) -> Acted:
        began = time.perf_counter()
        hand = self._context.hand
        error: str | None = None
        detail = words if hand.touches else f"would {words}"
        try:
            if isinstance(target, CallTool):
                if hand.touches:
                    self._context.stop.check()
                    done.tool_result = await self._race(self._context.tools.call(target.name, target.arguments))
            elif not isinstance(target, Wait):  # which is done by watching, afterwards
                told = await self._race(self._acting.call(hand.perform, target))
                # A hand that has nothing to add tells the coordinates, which a person cannot place.
                detail = detail if told in (describe(target), f"would {describe(target)}") else told
        except (ActionFailedError, ToolFailedError) as failure:
            error = str(failure)
        except MaiError:  # a stop, the end of the time, a display that is gone: nobody knows how much of it happened
            error = "stopped before it was finished; part of it may have happened"
            emit(acted(executed=False, detail="", error=error, milliseconds=0.0))
            raise
        milliseconds = (time.perf_counter() - began) * 1000
        result = acted(executed=hand.touches and error is None, detail=detail, error=error, milliseconds=milliseconds)
        emit(result)
        return result

    async def _settle(self, action: Action[GridPoint], acted: Acted) -> Settled:
        rule, stop = self._settings.settle, self._context.stop
        if isinstance(action, OpenApp | VisitPage):  # windows come up empty and are painted in several goes
            rule = replace(rule, quiet=rule.quiet * 2, cap=rule.cap * 2)
        if isinstance(action, Wait) and not acted.dry_run:
            await self._race(asyncio.sleep(action.seconds))
        return await self._race(self._observing.call(self._observer().watch, rule, lambda: stop.stopped))
