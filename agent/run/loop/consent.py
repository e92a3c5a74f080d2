"""Checks an action against the policy, and asks a person if the policy or the person requires it."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from functools import partial

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.events.run_events import ApprovalAsked, ApprovalGiven, Warned
from agent.events.sink import Emit
from agent.run.control.race import Race
from agent.run.control.steering import Steering
from agent.run.control.worker import Worker
from agent.safety.naming import aim_of
from agent.safety.policy import EARLIER, Approval, Approver, Grants, Policy, Question
from agent.safety.situation import UNKNOWN, Situation, Surroundings


@dataclass(frozen=True, slots=True)
class Consent:
    """Who decides about an action, and with what information."""

    policy: Policy  # the rules
    approver: Approver  # asks the person
    steering: Steering = field(default_factory=Steering)  # whether the person wants to approve the next action
    surroundings: Surroundings | None = None  # inspects the desktop for the policy; None if nothing can
    grants: Grants = field(default_factory=Grants)  # what the person allowed for the rest of this run

    def question(self, judged: Action[DesktopPoint], situation: Situation, objection: str = "") -> Question | None:
        """Return the question to ask about an action; None if it may go ahead.

        `judged` is the action in the policy's terms. An `objection` from the model's own service always goes to the
        person.
        """
        found = self.policy.question(judged, situation)
        if objection:
            return _with_objection(found, objection, situation)
        return found if found is not None else self._held(situation)

    def _held(self, situation: Situation) -> Question | None:
        """Return the question of a person who paused the run or steps through it; None if nobody does."""
        reason, held_by = self.steering.hold, self.steering.held_by
        if not reason:
            return None
        return Question(reason, "", "step" if held_by == "step" else "paused", situation=situation)

    def would_ask(self, question: Question, *, dry_run: bool) -> bool:
        """Return whether a person will be asked: on hold always, otherwise without a grant and outside a dry run."""
        return bool(self.steering.hold) or not (dry_run or self.grants.allow(question))

    async def ask(
        self,
        step: int,
        index: int,
        target: Action[DesktopPoint],
        question: Question | None,
        dry_run: bool,
        emit: Emit,
        race: Race,
        worker: Worker,
        situation: Situation,
    ) -> tuple[Approval | None, Situation]:
        """Ask about an action. Return the approval, and the situation at the action's final target.

        Without a question, nothing is emitted. A dry run asks nobody, but reports the question. The approval is None if
        the person took over instead of answering: the question is withdrawn, because the screen has changed since the
        decision.
        """
        held = self.steering.hold
        question = question or self._held(situation)  # the person may have paused the run meanwhile
        if question is None:
            return Approval(allowed=True, by="policy"), situation
        emit(ApprovalAsked(step, target, question.reason, question.scope, index=index, aim=aim_of(target, situation)))
        began = time.perf_counter()
        if not held and self.grants.allow(question):
            given = Approval(allowed=True, by=f"{EARLIER}: {question.scope}")
        elif dry_run and not held:
            given = Approval(allowed=True, by="dry run")
        else:
            answer = await race.for_person(self._answer(target, question))
            if answer is None:
                return None, situation
            given = answer
            if given.allowed and given.always:
                self.grants.add(question)
        took = (time.perf_counter() - began) * 1000
        told = partial(
            ApprovalGiven, step, given.allowed, given.by, given.note, given.always, given.instead, took,
            index=index, answer=given.answer,
        )  # fmt: skip
        if given.instead is None:
            emit(told())
            return given, situation
        # The reasons belong to the model's action. The person's replacement may go elsewhere, and has its own reasons.
        situation = await self.look(given.instead, race, worker, emit)
        asked_anew = self.policy.question(given.instead, situation)
        reason = "" if asked_anew is None else asked_anew.reason
        emit(told(instead_aim=aim_of(given.instead, situation), instead_reason=reason))
        return given, situation

    async def _answer(self, target: Action[DesktopPoint], question: Question) -> Approval | None:
        """Return the person's answer; None if they took over first."""
        answering = asyncio.ensure_future(self.approver.approve(target, question))
        taking_over = asyncio.ensure_future(self.steering.taken_over())
        try:
            await asyncio.wait({answering, taking_over}, return_when=asyncio.FIRST_COMPLETED)
            return await answering if answering.done() else None
        finally:
            taking_over.cancel()
            if not answering.done():
                answering.cancel()
                await asyncio.wait({answering}, timeout=0.2)

    async def look(self, target: Action[DesktopPoint], race: Race, worker: Worker, emit: Emit) -> Situation:
        """Return what is known of an action's target, found out on the worker; less if the policy judges nothing.

        Warn at once if information that the rules need was lost.
        """
        if self.surroundings is None:
            return UNKNOWN
        if self.policy.mode == "never":
            return await self.glance(target, race, worker)
        situation = await race(worker.call(self.surroundings.of, target))
        for sentence in self.surroundings.news():
            emit(Warned(sentence))
        return situation

    async def pointer(self, race: Race, worker: Worker) -> DesktopPoint | None:
        """Return where the pointer is; None if the desktop does not say."""
        return None if self.surroundings is None else await race(worker.call(self.surroundings.pointer))

    async def did(self, target: Action[DesktopPoint], race: Race, worker: Worker) -> None:
        """Record an action that was carried out. Later actions are judged by it, too."""
        if self.surroundings is not None and self.policy.mode != "never":
            await race(worker.call(self.surroundings.did, target))

    async def glance(self, target: Action[DesktopPoint], race: Race, worker: Worker) -> Situation:
        """Return only what the action would hit, and in which window."""
        if self.surroundings is None:
            return UNKNOWN
        return await race(worker.call(self.surroundings.glance, target))


def _with_objection(question: Question | None, objection: str, situation: Situation) -> Question:
    """Add the objection of the model's service to a question. It can only be allowed once."""
    reason = f"the model's own service wants you to agree: {objection}"
    if question is None:
        return Question(reason, "", "service", reasons=(reason,), situation=situation)
    reasons = (reason, *(question.reasons or (question.reason,)))
    return replace(question, reason="; ".join(reasons), scope="", asker="service", reasons=reasons)
