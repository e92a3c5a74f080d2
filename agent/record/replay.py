"""Runs the decisions of a bundle again through parser, coordinate mapping and policy, without a model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agent.core.actions import Action, at_pointer, map_points, missing_point, points_of
from agent.core.actions import to_json as action_json
from agent.core.geometry import DesktopPoint, NamedPoint, Region, Size
from agent.events.fates import Fate
from agent.families.base import Family, ParseFailure
from agent.families.planner.family import Planner
from agent.families.registry import get_family
from agent.record.read import Bundle
from agent.record.records import read_action
from agent.record.redactor import is_masked
from agent.record.step_record import ActionRecord, StepRecord
from agent.safety.input_history import InputHistory
from agent.safety.policy import Policy
from agent.safety.sentence import Sentence
from agent.safety.situation import Situation
from agent.screen.outline import Element, Outline
from foundation.errors import UsageError

#: Why a decision with a masked text is not replayed: the mask must not be typed in its place.
_MASKED = "its text was masked when the run was recorded"


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A replayed action of a decision, or a decision without actions."""

    step: int
    thought: str = ""
    target: Action[DesktopPoint] | None = None  # in desktop units; None if it cannot be replayed
    failure: str | None = None  # why the answer cannot be replayed
    reason_to_ask: str | None = None  # why the policy would ask a person
    same: bool = True  # whether the action equals the action that the model proposed in the run
    fate: Fate = "broken off"  # what became of the proposed action
    changed: Action[DesktopPoint] | None = None  # the person's change of it, which was carried out
    changed_words: str = ""  # the person's change in words
    changed_reason: str | None = None  # why the policy would ask about the change
    hit: str = ""  # what the carried-out action hit, in words; "" if unknown


def replay_as_recorded(bundle: Bundle) -> Iterator[ReplayedStep]:
    """Replay the decisions of a bundle with its own family and its own policy. Raises UsageError."""
    return replay(bundle, get_family(bundle.run.family or ""), Policy.load(bundle.run.approve or "risky"))


def replay(bundle: Bundle, family: Family, policy: Policy) -> Iterator[ReplayedStep]:
    """Yield the replayed decisions of a bundle, in order. Raises UsageError if a step is damaged."""
    history, sentence = InputHistory(), Sentence(bundle.run.instruction or "")
    for step in bundle.steps:
        if step.step is None or step.viewport is None:
            number = "?" if step.step is None else step.step
            raise UsageError(f"Step {number} of {bundle.path} is damaged.", "Its other steps can be shown.")
        if not step.answers:
            yield ReplayedStep(step.step, failure="the run ended before the model answered")
            continue
        model = bundle.run.models.get(step.by)  # another model may have decided in place of the run's own
        read_by = family if step.by == "actor" else get_family((model.family if model else None) or "")
        yield from _replay_answer(step, ReplayedStep(step.step), read_by, policy, history, sentence)


def _replay_answer(
    step: StepRecord, blank: ReplayedStep, family: Family, policy: Policy, history: InputHistory, sentence: Sentence
) -> Iterator[ReplayedStep]:
    assert step.viewport is not None
    last = step.answers[-1]
    sent = tuple(Size(image.width, image.height) for image in step.images) or (Size(1, 1),)
    outline = _outline(step)
    result = family.plan(last.answer) if isinstance(family, Planner) else family.parse_seen(last.answer, sent, outline)
    blank = replace(blank, thought=result.thought)
    if isinstance(result, ParseFailure):
        masked = is_masked(last.model_dump())
        yield replace(blank, failure=_MASKED if masked else result.message, same=masked or step.target is None)
        return
    actions: tuple[Any, ...] = result.actions  # the actions of a plan name their places in words
    for index, action in enumerate(actions):
        if is_masked(action_json(action)):
            yield replace(blank, failure=_MASKED)
            continue
        recorded = step.actions[index] if index < len(step.actions) else ActionRecord()
        target = _target(action, recorded, step)
        if target is None:
            yield replace(blank, failure="the place that the model named was not found", same=recorded.target is None)
            continue
        hit = tuple(element.element for element in recorded.elements if element.element is not None)
        changed = recorded.final_action if recorded.changed_to else None
        # The recorded hit is of the action carried out.
        seen = history.judge(target, Situation(elements=() if changed else hit))
        question = policy.question(target, replace(seen, facts=seen.facts | sentence.facts(target, seen)))
        another = None
        if changed is not None:
            seen = history.judge(changed, Situation(elements=hit))
            another = policy.question(changed, seen)
        if recorded.executed or recorded.dry_run:
            history.did(changed or target)
            sentence.did(changed or target, seen)
        yield replace(
            blank,
            target=target,
            reason_to_ask=None if question is None else question.reason,
            same=action_json(target) == recorded.target and len(step.actions) == len(result.actions),
            fate=recorded.became,
            changed=changed,
            changed_reason=None if another is None else another.reason,
            changed_words=recorded.changed_to,
            hit=recorded.hit,
        )


def _outline(step: StepRecord) -> Outline | None:
    if not step.boxes or step.viewport is None:
        return None
    region = step.viewport.viewport.region
    elements = tuple(Element(int(number), "", "", Region(*box)) for number, box in step.boxes.items())
    return Outline(region.size, elements, origin=(region.left, region.top))


def _target(action: Any, recorded: ActionRecord, step: StepRecord) -> Action[DesktopPoint] | None:
    """The action in desktop coordinates; the recorded one if a separate request located its points.

    None if a place in words was not found.
    """
    assert step.viewport is not None
    found = read_action(recorded.target)
    if step.consulted and type(found) is type(action):
        return found
    if any(isinstance(point, NamedPoint) for point in points_of(action)):
        return None
    target: Action[DesktopPoint] = map_points(action, step.viewport.viewport.to_desktop)
    if missing_point(target) and type(found) is type(target) and missing_point(found) is None:
        return at_pointer(target, points_of(found)[0])
    return target
