"""Carries out the actions of a decision in order. Each is checked by the policy, and its effect is observed."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from agent.core.actions import (
    ENDING,
    TOUCHING,
    TYPING,
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
    at_pointer,
    describe,
    missing_point,
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
from agent.screen.nearby import Described, described_at, described_field
from agent.screen.outline import Element, Outline
from agent.screen.settle import CELL, Settled, unchanged
from foundation.errors import MaiError

#: Seconds after which a takeover has been noticed: `agent.desktop.input.takeover` first waits for what applications do
#: to the pointer after an action, then for a pointer that still moves.
_NOTICED_WITHIN = 1.0
#: Actions without a visible effect.
_UNSEEN = (Wait, KeyDown, KeyUp, ButtonDown, ButtonUp)


@dataclass(slots=True)
class Performed:
    """The result of a decision."""

    notes: list[Note]  # for the model, about the decision
    reply: str | None = None  # the person's
    tool_result: str | None = None  # the tool's
    changed: bool | None = None  # whether the screen changed; None if it was not touched
    settled: Settled | None = None  # the screen afterwards; None to capture it again
    milliseconds: dict[str, float] = field(default_factory=dict)  # by stage
    in_vain: bool = False  # an action failed, or had no visible effect
    incomplete: bool = False  # an action was not carried out, nor those after it
    agreed: bool = False  # a person accepted the objection of the model's service

    @property
    def note(self) -> str | None:
        """Return the notes as one text."""
        return " ".join(map(str, self.notes)) or None


@dataclass(frozen=True, slots=True)
class _Turn:
    """A decision while it is carried out."""

    step: int
    seen: Observation
    decision: Decision
    targets: Sequence[Action[DesktopPoint]]  # its actions, in desktop coordinates
    done: Performed
    emit: Emit

    def drop(self, index: int, why: Why, target: Action[DesktopPoint] | None = None) -> None:
        """Report that an action is not done."""
        self.emit(Dropped(self.step, target or self.targets[index], why, index=index))

    def overtaken(self, index: int, target: Action[DesktopPoint]) -> None:
        """Drop an action because the person took over after it was decided."""
        self.done.settled = None
        self.done.notes.append(Note("taken_over"))
        self.drop(index, "overtaken", target)


@dataclass(slots=True)
class _Attempt:
    """One action that may be done."""

    index: int
    target: Action[DesktopPoint]
    judged: Action[DesktopPoint] | None  # the action in the policy's terms; None if it only ends something
    situation: Situation = UNKNOWN
    elements: tuple[Element, ...] = ()
    aim: Aim = Aim()  # noqa: RUF009 -- frozen

    def goes_to(self, situation: Situation) -> None:
        """Set what is known of the action's target."""
        self.situation, self.elements, self.aim = situation, situation.elements, aim_of(self.target, situation)


class Performer:
    """Carries out the actions of decisions. `observer` returns the observer of the active model."""

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
        self._pointed: DesktopPoint | None = None  # where the last action left the pointer

    async def perform(
        self,
        step: int,
        seen: Observation,
        decision: Decision,
        targets: Sequence[Action[DesktopPoint]],
        done: Performed,
        emit: Emit,
    ) -> None:
        """Carry out the actions in order until one is not done. Results go into `done`.

        An action that ends the run, and all after it, are left to the caller. Raises StoppedError: in the middle of an
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
        await self._race(self._holding.lift())  # while the model thinks, a person may type: with ctrl down, q quits
        done.notes += self._holding.take_notes()

    def end(self) -> None:
        """Stop watching held keys at the end of the run."""
        self._holding.end()

    async def _one(self, turn: _Turn, index: int, action: Action[GridPoint]) -> bool:
        """Carry out one action of any kind. Return whether the next one may follow."""
        done = turn.done
        match action:
            case AskUser(question):
                await self._holding.let_go()
                done.reply, done.settled = await self._race.for_person(self._context.person.ask(question)), None
                done.notes += [] if done.reply else [Note("nobody")]
                return False  # the next actions were decided without the reply
            case Remember():
                return True  # the model's own words stay in the history
            case CallTool(name) if name not in self._context.tools.names:
                error = f"there is no tool named {shorten(name)}"
                done.notes.append(Note("failed", error))
                dry_run = self._settings.dry_run
                turn.emit(Acted(turn.step, turn.targets[index], False, dry_run, "", error, 0.0, index=index))
                return False
        held = self._holding.held
        target = await self._placed(held.effective(turn.targets[index]))
        if self._changed_at(turn, index, points_of(turn.targets[index])):
            done.settled = None
            done.notes.append(Note("target_changed"))
            turn.drop(index, "left out", target)
            return False
        attempt = _Attempt(index, target, held.judged(target))
        if index and self._context.hand.touches:  # between two answers, the thinking takes that long
            await self._race(asyncio.sleep(self._context.hand.rest.since + _NOTICED_WITHIN - time.monotonic()))
        judged = attempt.judged if isinstance(action, (*TOUCHING, CallTool)) else None
        may_be_done = judged is None or await self._may_be_done(turn, attempt, judged)
        return may_be_done and await self._do(turn, attempt, action)

    @staticmethod
    def _changed_at(turn: _Turn, index: int, points: Sequence[DesktopPoint]) -> bool:
        """Whether the actions before changed the screen at one of these points, since the model saw it.

        A point that one of these actions had, too, is expected to change.
        """
        settled = turn.done.settled
        if not index or settled is None or settled.frame.viewport != turn.seen.viewport:
            return False
        before = {point.rounded() for target in turn.targets[:index] for point in points_of(target)}
        changed = turn.seen.fingerprint.changed_cells(settled.fingerprint) - settled.restless
        new = [turn.seen.viewport.desktop_to_capture(point) for point in points if point.rounded() not in before]
        return any((int(point.y // CELL), int(point.x // CELL)) in changed for point in new)

    async def _placed(self, target: Action[DesktopPoint]) -> Action[DesktopPoint]:
        """Return an action that happens at the pointer with the pointer's place, so that it is judged there.

        That is where the desktop says, or else where the run moved it last, as in a dry run.
        """
        if missing_point(target) is None:
            return target
        consent, at = self._context.consent, self._pointed
        if self._context.hand.touches or at is None:
            at = await consent.pointer(self._race, self._observing) or at
        return target if at is None else at_pointer(target, at)

    async def _may_be_done(self, turn: _Turn, attempt: _Attempt, judged: Action[DesktopPoint]) -> bool:
        """Check an action with the policy and, if needed, the person, who may change it.

        Return whether it may be done.
        """
        consent, done, emit = self._context.consent, turn.done, turn.emit
        objection = "" if done.agreed else turn.decision.objection
        if consent.steering.acted:  # do not ask about an action that will not be done
            turn.overtaken(attempt.index, attempt.target)
            return False
        attempt.goes_to(await self._look(judged, turn, emit))
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
        if verdict is None or consent.steering.acted:  # the person took over
            turn.overtaken(attempt.index, attempt.target)
            return False
        if verdict.instead is not None:
            attempt.target, attempt.judged = verdict.instead, self._holding.held.judged(verdict.instead)
            attempt.goes_to(situation)
            done.notes.append(Note("changed", describe(attempt.target)))
        return True

    async def _do(self, turn: _Turn, attempt: _Attempt, action: Action[GridPoint]) -> bool:
        """Carry out an action and observe the effect. Return whether the next one may follow."""
        done, target = turn.done, attempt.target
        told = partial(
            Acted, turn.step, target, dry_run=not self._context.hand.touches, elements=attempt.elements,
            index=attempt.index, aim=attempt.aim, described=_described(turn.seen.outline, target, attempt.aim),
        )  # fmt: skip
        acted = await self._act(target, told, named(target, attempt.aim), done, turn.emit)
        if attempt.judged is not None:  # later actions are judged by it, too
            self._sentence.did(attempt.judged, attempt.situation)
            await self._context.consent.did(attempt.judged, self._race, self._observing)
        if acted.error is not None:
            await self._holding.let_go()
            done.notes.append(Note("failed", acted.error))
        else:
            self._holding.did(target)
            self._pointed = next(reversed(points_of(target)), self._pointed)
            done.notes += [Note("dry_run")] if acted.dry_run else []
        if isinstance(action, CallTool):
            done.settled = None  # it may have changed the screen unobserved
            return False  # the next actions were decided without its result
        done.settled = await self._settle(action, acted)
        changed = not unchanged(turn.seen.fingerprint, done.settled)
        no_effect = not (changed or acted.error or acted.dry_run or isinstance(action, _UNSEEN))
        done.notes += [Note("no_effect")] if no_effect and self._settings.remarks else []
        done.changed, done.in_vain = changed, no_effect or acted.error is not None
        for name, took in (("act", acted.milliseconds), ("settle", done.settled.seconds * 1000)):
            done.milliseconds[name] = done.milliseconds.get(name, 0.0) + took
        return acted.error is None

    async def _free_hands(self, done: Performed) -> bool:
        """Release what is held before a person is asked. Return whether the action can still be done afterwards."""
        if self._holding.held.button is None:
            await self._race(self._holding.lift())
            return True
        await self._holding.let_go()  # this drops or clicks; the approval only covered the drag so far
        done.settled = None
        done.notes.append(Note("needs_drag"))
        return False

    async def _look(self, judged: Action[DesktopPoint], turn: _Turn, emit: Emit) -> Situation:
        """Return what is known of an action's target, with what the person's instruction says about it."""
        situation = await self._context.consent.look(judged, self._race, self._observing, emit)
        if points := points_of(judged):
            seen = described_at(turn.seen.outline, points[-1])
            situation = replace(situation, described=seen.element if seen else None, doubt=turn.decision.doubt)
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
            elif not isinstance(target, Wait):  # the wait happens later, in `_settle`
                told = await self._race(self._acting.call(hand.perform, target))
                # A hand with nothing to add returns coordinates, which mean nothing to a person.
                detail = detail if told in (describe(target), f"would {describe(target)}") else told
        except (ActionFailedError, ToolFailedError) as failure:
            error = str(failure)
        except MaiError:  # a stop, the time limit, a lost display: it is unknown how much was done
            error = "stopped before it was finished; part of it may have happened"
            emit(acted(executed=False, detail="", error=error, milliseconds=0.0))
            raise
        milliseconds = (time.perf_counter() - began) * 1000
        result = acted(executed=hand.touches and error is None, detail=detail, error=error, milliseconds=milliseconds)
        emit(result)
        return result

    async def _settle(self, action: Action[GridPoint], acted: Acted) -> Settled:
        rule, stop = self._settings.settle, self._context.stop
        if isinstance(action, OpenApp | VisitPage):  # windows appear empty and are painted in several passes
            rule = replace(rule, quiet=rule.quiet * 2, cap=rule.cap * 2)
        if isinstance(action, Wait) and not acted.dry_run:
            await self._race(asyncio.sleep(action.seconds))
        return await self._race(self._observing.call(self._observer().watch, rule, lambda: stop.stopped))


def _described(outline: Outline | None, target: Action[DesktopPoint], aim: Aim) -> Described | None:
    """Return what an action goes to, of the outline before it: the element at its point, or the field for its text."""
    if isinstance(target, TYPING):
        return described_field(outline, aim.field)
    points = points_of(target)
    return described_at(outline, points[-1]) if points else None
