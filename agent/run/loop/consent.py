"""Checks an action against the policy, and asks a person if the policy or the person requires it."""

import asyncio
import time
from dataclasses import replace
from functools import partial

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.events.run_events import ApprovalAsked, ApprovalGiven, Warned
from agent.run.loop.context import RunContext
from agent.safety.naming import aim_of
from agent.safety.policy import EARLIER, Approval, Question
from agent.safety.situation import Situation


class Consent:
    """Decides about the actions of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._policy, self._steering, self._grants = context.policy, context.steering, context.grants
        self._surroundings = context.surroundings
        self._dry_run = context.own.settings.dry_run

    def question(self, judged: Action[DesktopPoint], situation: Situation, objection: str = "") -> Question | None:
        """Return the question to ask about an action; None if it may go ahead.

        `judged` is the action in the policy's terms. An `objection` from the model's own service always goes to the
        person.
        """
        found = self._policy.question(judged, situation)
        if objection:
            return _with_objection(found, objection, situation)
        return found if found is not None else self._held(situation)

    def _held(self, situation: Situation) -> Question | None:
        """Return the question of a person who paused the run or steps through it; None if nobody does."""
        reason, held_by = self._steering.hold, self._steering.held_by
        if not reason:
            return None
        return Question(reason, "", "step" if held_by == "step" else "paused", situation=situation)

    def would_ask(self, question: Question) -> bool:
        """Return whether a person will be asked: on hold always, otherwise without a grant and outside a dry run."""
        return bool(self._steering.hold) or not (self._dry_run or self._grants.allow(question))

    async def ask(
        self, step: int, index: int, target: Action[DesktopPoint], question: Question | None, situation: Situation
    ) -> tuple[Approval | None, Situation]:
        """Ask about an action. Return the approval, and the situation at the action's final target.

        Without a question, nothing is emitted. A dry run asks nobody, but reports the question. The approval is None if
        the person took over instead of answering: the question is withdrawn, because the screen has changed since the
        decision.
        """
        emit, held = self._context.emit, self._steering.hold
        question = question or self._held(situation)  # the person may have paused the run meanwhile
        if question is None:
            return Approval(allowed=True, by="policy"), situation
        emit(ApprovalAsked(step, target, question.reason, question.scope, index=index, aim=aim_of(target, situation)))
        began = time.perf_counter()
        if not held and self._grants.allow(question):
            approval = Approval(allowed=True, by=f"{EARLIER}: {question.scope}")
        elif self._dry_run and not held:
            approval = Approval(allowed=True, by="dry run")
        else:
            answer = await self._context.race.for_person(self._answer(target, question))
            if answer is None:
                return None, situation
            approval = answer
            if approval.allowed and approval.always:
                self._grants.add(question)
        took = (time.perf_counter() - began) * 1000
        make_event = partial(
            ApprovalGiven, step, approval.allowed, approval.by, approval.note, approval.always, approval.instead, took,
            index=index, answer=approval.answer,
        )  # fmt: skip
        if approval.instead is None:
            emit(make_event())
            return approval, situation
        # The reasons belong to the model's action. The person's replacement may go elsewhere, and has its own reasons.
        situation = await self.look(approval.instead)
        asked_anew = self._policy.question(approval.instead, situation)
        reason = "" if asked_anew is None else asked_anew.reason
        emit(make_event(instead_aim=aim_of(approval.instead, situation), instead_reason=reason))
        return approval, situation

    async def _answer(self, target: Action[DesktopPoint], question: Question) -> Approval | None:
        """Return the person's answer; None if they took over first."""
        answering = asyncio.ensure_future(self._context.approver.approve(target, question))
        taking_over = asyncio.ensure_future(self._steering.taken_over())
        try:
            await asyncio.wait({answering, taking_over}, return_when=asyncio.FIRST_COMPLETED)
            return await answering if answering.done() else None
        finally:
            taking_over.cancel()
            if not answering.done():
                answering.cancel()
                await asyncio.wait({answering}, timeout=0.2)

    async def look(self, target: Action[DesktopPoint]) -> Situation:
        """Return what is known of an action's target; only what it would hit if the policy judges nothing.

        Warn at once if information that the rules need was lost.
        """
        if self._policy.mode == "never":
            return await self._context.on_screen(self._surroundings.glance, target)
        situation = await self._context.on_screen(self._surroundings.of, target)
        for sentence in self._surroundings.news():
            self._context.emit(Warned(sentence))
        return situation

    async def did(self, target: Action[DesktopPoint]) -> None:
        """Record an action that was carried out. Later actions are judged by it, too."""
        if self._policy.mode != "never":
            await self._context.on_screen(self._surroundings.did, target)


def _with_objection(question: Question | None, objection: str, situation: Situation) -> Question:
    """Add the objection of the model's service to a question. It can only be allowed once."""
    reason = f"the model's own service wants you to agree: {objection}"
    if question is None:
        return Question(reason, "", "service", reasons=(reason,), situation=situation)
    reasons = (reason, *(question.reasons or (question.reason,)))
    return replace(question, reason="; ".join(reasons), scope="", asker="service", reasons=reasons)
