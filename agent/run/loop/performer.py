"""Carries out the actions of a decision in order. Each is checked by the policy, and its effect is observed."""

import asyncio
import re
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
    Click,
    KeyDown,
    KeyUp,
    LongPress,
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
from agent.core.geometry import DesktopPoint, GridPoint, Region
from agent.core.notes import Note
from agent.desktop.protocol.hand import ActionFailedError
from agent.events.fates import Why
from agent.events.run_events import Acted, Dropped, Emit, Warned
from agent.families.base import Decision
from agent.run.loop.consent import Consent
from agent.run.loop.context import RunContext, ToolFailedError
from agent.run.loop.held_keys import HeldKeys
from agent.run.observing.observe import Observation, Observer
from agent.safety.addresses import facts_of
from agent.safety.naming import Aim, aim_of, named
from agent.safety.sentence import Sentence
from agent.safety.situation import UNKNOWN, Situation
from agent.screen.nearby import Described, described_at, described_field
from agent.screen.outline import Element, Outline
from agent.screen.settle import CELL, Settled, unchanged
from foundation.chat_stream import Answer
from foundation.errors import MaiError

#: Seconds within which a takeover is noticed: `agent.desktop.x11.watches` first waits until applications no longer
#: move the pointer after an action, then until the pointer rests.
_NOTICED_WITHIN = 1.0
#: The least width of a letter, and height of a line, in desktop units.
_LETTER, _LINE = 6, 16
#: Actions without a visible effect.
_UNSEEN = (Wait, KeyDown, KeyUp, ButtonDown, ButtonUp)


@dataclass(slots=True)
class Turn:
    """A decision, and what becomes of it."""

    step: int
    seen: Observation
    decision: Decision
    targets: Sequence[Action[DesktopPoint]]  # its actions, in desktop coordinates
    answer: Answer  # the answer that was parsed
    emit: Emit
    notes: list[Note] = field(default_factory=list)  # for the model, about the decision
    reply: str | None = None  # the person's
    tool_result: str | None = None  # the tool's
    pictures: tuple[bytes, ...] = ()  # files that the tool returned
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

    def drop(self, index: int, why: Why, target: Action[DesktopPoint] | None = None, note: Note | None = None) -> bool:
        """Report that an action is not done, and note why for the model. Return False: no action may follow."""
        self.notes += [note] if note else []
        self.emit(Dropped(self.step, target or self.targets[index], why, index=index))
        return False

    def void(self, index: int, why: Why, target: Action[DesktopPoint], note: Note) -> bool:
        """Drop an action as `drop` does, and have the screen captured again."""
        self.settled = None
        return self.drop(index, why, target, note)


@dataclass(slots=True)
class _Attempt:
    """One action that may be done."""

    index: int
    target: Action[DesktopPoint]
    judged: Action[DesktopPoint] | None  # the action in the policy's terms; None if it only releases something
    situation: Situation = UNKNOWN
    aim: Aim = Aim()  # noqa: RUF009 -- frozen

    def set_situation(self, situation: Situation) -> None:
        """Set what is known of the action's target."""
        self.situation, self.aim = situation, aim_of(self.target, situation)


class Performer:
    """Carries out the actions of decisions. `observer` returns the observer of the active model."""

    def __init__(self, context: RunContext, observer: Callable[[], Observer]) -> None:
        self._context = context
        self._settings = context.own.settings
        self._race = context.race
        self._observer = observer
        self._consent = Consent(context)
        self._holding = HeldKeys(context)
        self._sentence = Sentence(self._settings.instruction)
        self._pointed: DesktopPoint | None = None  # where the last action left the pointer
        self._came = ""  # what had replaced the element at the last action's point

    async def perform(self, turn: Turn) -> None:
        """Carry out the actions in order until one is not done. Results go into the turn.

        An action that ends the run, and all after it, are left to the caller. Raises StoppedError: in the middle of an
        action, or while waiting.
        """
        decision = turn.decision
        if decision.doubt and self._context.policy.mode == "never":
            warning = f"The model insists: {decision.doubt}. Done anyway, as approvals are off."
            self._context.emit(Warned(warning))
        for index, action in enumerate(decision.actions):
            if isinstance(action, ENDING):
                break
            if not await self._one(turn, index, action):
                turn.incomplete = True
                left = range(index + 1, len(turn.targets))
                for later in left:
                    turn.drop(later, "left out")
                turn.notes += [Note("left_out", str(len(left)))] if left else []
                break
        await self._race(self._holding.lift())  # the person may type while the model thinks: with ctrl held, q quits
        turn.notes += self._holding.take_notes()

    def end(self) -> None:
        """Stop watching held keys at the end of the run."""
        self._holding.end()

    async def _one(self, turn: Turn, index: int, action: Action[GridPoint]) -> bool:
        """Carry out one action of any kind. Return whether the next one may follow."""
        match action:
            case AskUser(question):
                await self._holding.let_go()
                turn.reply, turn.settled = await self._race.for_person(self._context.person.ask(question)), None
                turn.notes += [] if turn.reply else [Note("nobody")]
                return False  # the next actions were decided without the reply
            case Remember():
                return True  # the model's own words stay in the history
            case CallTool(name) if name not in self._context.tools.names:
                error = f"there is no tool named {shorten(name)}"
                turn.notes.append(Note("failed", error))
                dry_run = self._settings.dry_run
                self._context.emit(Acted(turn.step, turn.targets[index], False, dry_run, "", error, 0.0, index=index))
                return False
        held = self._holding.held
        target = await self._placed(held.effective(turn.targets[index]))
        if self._changed_at(turn, index, points_of(turn.targets[index])):
            return turn.void(index, "left out", target, Note("target_changed"))
        attempt = _Attempt(index, target, held.judged(target))
        if index and self._context.hand.touches:  # give a takeover time to be noticed, as thinking does before index 0
            await self._race(asyncio.sleep(self._context.hand.rest.since + _NOTICED_WITHIN - time.monotonic()))
        judged = attempt.judged if isinstance(action, (*TOUCHING, CallTool)) else None
        may_be_done = judged is None or await self._may_be_done(turn, attempt, judged)
        return may_be_done and await self._do(turn, attempt, action)

    @staticmethod
    def _changed_at(turn: Turn, index: int, points: Sequence[DesktopPoint]) -> bool:
        """Whether earlier actions changed the screen at one of these points since the model saw it.

        The points of the earlier actions are left out, because they are expected to change.
        """
        settled = turn.settled
        if not index or settled is None or settled.frame.viewport != turn.seen.viewport:
            return False
        before = {point.rounded() for target in turn.targets[:index] for point in points_of(target)}
        changed = turn.seen.fingerprint.changed_cells(settled.fingerprint) - settled.restless
        new = [turn.seen.viewport.desktop_to_capture(point) for point in points if point.rounded() not in before]
        return any((int(point.y // CELL), int(point.x // CELL)) in changed for point in new)

    async def _placed(self, target: Action[DesktopPoint]) -> Action[DesktopPoint]:
        """Give an action without a point the pointer's position, so that it is judged there.

        The desktop reports the position; otherwise it is where the run moved the pointer last, as in a dry run.
        """
        if missing_point(target) is None:
            return target
        at = self._pointed
        if self._context.hand.touches or at is None:
            at = await self._context.on_screen(self._context.surroundings.pointer) or at
        return target if at is None else at_pointer(target, at)

    async def _may_be_done(self, turn: Turn, attempt: _Attempt, judged: Action[DesktopPoint]) -> bool:
        """Check an action with the policy and, if needed, the person, who may change it.

        Return whether it may be done.
        """
        index, target, steering = attempt.index, attempt.target, self._context.steering
        objection = "" if turn.agreed else turn.decision.objection
        if steering.acted:  # do not ask about an action that will not be done
            return turn.void(index, "overtaken", target, Note("taken_over"))
        attempt.set_situation(await self._look(judged, turn))
        came, self._came = self._came, _came(judged, attempt.situation)
        if self._came and self._came != came:
            return turn.void(index, "left out", target, Note("failed", f"{self._came} meanwhile: look again"))
        question = self._consent.question(judged, attempt.situation, objection)
        if question is not None and self._consent.would_ask(question) and not await self._free_hands(turn):
            return turn.drop(index, "left out", target)
        verdict, situation = await self._consent.ask(turn.step, index, target, question, attempt.situation)
        if verdict is not None and verdict.answer in ("refused", "skipped", "told"):
            # A person who is asked may do anything meanwhile.
            turn.void(index, verdict.answer, target, Note("skipped" if verdict.answer == "skipped" else "refused"))
            if verdict.note:  # if no person can be asked, mai-agent itself refuses
                is_ours = verdict.by == "mai-agent"
                turn.notes.append(Note("failed", verdict.note.rstrip(".")) if is_ours else Note("said", verdict.note))
            return False
        if verdict is not None:
            turn.agreed = turn.agreed or (bool(objection) and not self._settings.dry_run)
        if verdict is None or steering.acted:  # the person took over
            return turn.void(index, "overtaken", target, Note("taken_over"))
        if verdict.instead is not None:
            attempt.target, attempt.judged = verdict.instead, self._holding.held.judged(verdict.instead)
            attempt.set_situation(situation)
            turn.notes.append(Note("changed", describe(attempt.target)))
        return True

    async def _do(self, turn: Turn, attempt: _Attempt, action: Action[GridPoint]) -> bool:
        """Carry out an action and observe the effect. Return whether the next one may follow."""
        target = attempt.target
        acted = await self._act(turn, attempt)
        if attempt.judged is not None:  # later actions are judged by it, too
            self._sentence.did(attempt.judged, attempt.situation)
            await self._consent.did(attempt.judged)
        if acted.error is not None:
            await self._holding.let_go()
            turn.notes.append(Note("failed", acted.error))
        else:
            self._holding.did(target)
            self._pointed = next(reversed(points_of(target)), self._pointed)
            turn.notes += [Note("dry_run")] if acted.dry_run else []
        if isinstance(action, CallTool):
            turn.settled = None  # it may have changed the screen unobserved
            return False  # the next actions were decided without its result
        turn.settled = await self._settle(action)
        changed = not unchanged(turn.seen.fingerprint, turn.settled)
        no_effect = not (changed or acted.error or acted.dry_run or isinstance(action, _UNSEEN))
        turn.notes += [Note("no_effect")] if no_effect and self._settings.remarks else []
        turn.changed, turn.in_vain = changed, no_effect or acted.error is not None
        for name, took in (("act", acted.milliseconds), ("settle", turn.settled.seconds * 1000)):
            turn.milliseconds[name] = turn.milliseconds.get(name, 0.0) + took
        return acted.error is None

    async def _free_hands(self, turn: Turn) -> bool:
        """Release what is held before a person is asked. Return whether the action can still be done afterwards."""
        if self._holding.held.button is None:
            await self._race(self._holding.lift())
            return True
        await self._holding.let_go()  # the release drops or clicks; the approval covered only the drag so far
        turn.settled = None
        turn.notes.append(Note("needs_drag"))
        return False

    async def _look(self, judged: Action[DesktopPoint], turn: Turn) -> Situation:
        """Return what is known of an action's target, with what the person's instruction says about it."""
        situation = await self._consent.look(judged)
        if points := points_of(judged):
            seen = described_at(turn.seen.outline, points[-1])
            situation = replace(situation, described=seen.element if seen else None, doubt=turn.decision.doubt)
        if isinstance(judged, VisitPage):
            facts = facts_of(judged.url, self._settings.instruction)
        else:
            facts = self._sentence.facts(judged, situation)
        if (default := situation.default) is not None:
            press = Click(default.elements[-1].box.middle)
            default = replace(default, facts=default.facts | self._sentence.facts(press, default))
            situation = replace(situation, default=default)
        return replace(situation, facts=situation.facts | facts)

    async def _act(self, turn: Turn, attempt: _Attempt) -> Acted:
        """Carry out an action, or report what a dry run would do."""
        began = time.perf_counter()
        hand, target, words = self._context.hand, attempt.target, named(attempt.target, attempt.aim)
        acted = partial(
            Acted, turn.step, target, dry_run=not hand.touches, elements=attempt.situation.elements,
            index=attempt.index, aim=attempt.aim, described=_described(turn.seen.outline, attempt),
        )  # fmt: skip
        error: str | None = None
        detail = words if hand.touches else f"would {words}"
        try:
            if isinstance(target, CallTool):
                if hand.touches:
                    self._context.stop.check()
                    answer = await self._race(self._context.tools.call(target.name, target.arguments))
                    turn.tool_result, turn.pictures = answer.text, answer.pictures
            elif isinstance(target, Wait):
                await self._race(asyncio.sleep(target.seconds if hand.touches else 0))
            else:
                description = await self._race(self._context.acting.call(hand.perform, target))
                # A hand with nothing to add returns coordinates, which mean nothing to a person.
                detail = detail if description in (describe(target), f"would {describe(target)}") else description
        except (ActionFailedError, ToolFailedError) as failure:
            error = str(failure)
        except MaiError:  # a stop, the time limit, a lost display: it is unknown how much was done
            error = "stopped before it was finished; part of it may have happened"
            self._context.emit(acted(executed=False, detail="", error=error, milliseconds=0.0))
            raise
        milliseconds = (time.perf_counter() - began) * 1000
        result = acted(executed=hand.touches and error is None, detail=detail, error=error, milliseconds=milliseconds)
        self._context.emit(result)
        return result

    async def _settle(self, action: Action[GridPoint]) -> Settled:
        rule, stop = self._settings.settle, self._context.stop
        if isinstance(action, OpenApp | VisitPage):  # windows appear empty and are painted in several passes
            rule = replace(rule, quiet=rule.quiet * 2, cap=rule.cap * 2)
        elif isinstance(action, Wait):  # applications have had the time to react
            rule = replace(rule, quiet=rule.hint)
        return await self._context.on_screen(self._observer().watch, rule, lambda: stop.stopped)


def _described(outline: Outline | None, attempt: _Attempt) -> Described | None:
    """Return what an action goes to, before it: the field for its text, or the element or words at its point."""
    if isinstance(attempt.target, TYPING):
        return described_field(outline, attempt.aim.field)
    points = points_of(attempt.target)
    return (described_at(outline, points[-1]) or _words_at(points[-1], attempt.situation)) if points else None


def _came(action: Action[DesktopPoint], now: Situation) -> str:
    """Return what replaced the element at an action's point since the model saw the screen; "" for nothing.

    A name that differs in its digits only is the same thing: a clock, or a counter. A toolkit may report one thing in
    its outline and another at a point, so the same answer drops an action only once.
    """
    seen = now.described
    if seen is None or not now.elements or not isinstance(action, Click | LongPress):
        return ""
    names = seen.name, now.elements[-1].name
    first, second = (re.sub(r"\d+", "", " ".join(name.split())) for name in names)
    is_other = seen.role == now.elements[-1].role and first and second and first != second
    return f"“{names[1]}” came where “{names[0]}” was" if is_other else ""


def _words_at(point: DesktopPoint, seen: Situation) -> Described | None:
    """Return the words that a point lies on. Words beside it may belong to something else."""
    words = " ".join("".join(seen.words.splitlines()[-1:]).split())
    if seen.words_at is None or not words:
        return None
    wide = _LETTER * len(words)
    box = Region(round(seen.words_at.x - wide / 2), round(seen.words_at.y - _LINE / 2), wide, _LINE)
    title, app = ("", "") if seen.under is None or seen.under.backdrop else (seen.under.title, seen.under.app)
    element = Element(-1, "label", words, box, window=title, app=app, source="words")
    return Described(element) if box.contains(point) else None
