"""Runs the decisions of a bundle again through parser, map and policy, without a model."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.actions import Action, map_points
from agent.actions import to_json as action_json
from agent.families.base import Family, ParseFailure
from agent.geometry import DesktopPoint, Region, Size, Viewport
from agent.record.read import Bundle
from agent.record.redact import is_masked
from agent.safety.policy import Policy
from foundation.chat_stream import Answer
from foundation.errors import UsageError

#: Why a decision with a masked text is not replayed: the mask must not be typed in its place.
_MASKED = "its text was masked when the run was recorded"


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One decision, read again.

    Args:
        step: its number.
        thought: the model's reasoning.
        target: the action in desktop units, or None when the answer cannot be read.
        failure: why not.
        reason_to_ask: why the policy would ask a person.
        same: whether the action equals the recorded one.
    """

    step: int
    thought: str
    target: Action[DesktopPoint] | None
    failure: str | None
    reason_to_ask: str | None
    same: bool


def replay(bundle: Bundle, family: Family, policy: Policy) -> Iterator[ReplayedStep]:
    """The decisions of a bundle, in order. Raises UsageError when a step lacks what a replay needs."""
    for step in bundle.steps:
        try:
            yield _replay_step(step, family, policy)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"Step {step.get('step', '?')} of {bundle.path} is damaged ({error}).", "Its other steps can be shown."
            ) from error


def _replay_step(step: dict[str, Any], family: Family, policy: Policy) -> ReplayedStep:
    number = int(step["step"])
    answers = step["answers"]
    if not answers:
        return ReplayedStep(number, "", None, "the run ended before the model answered", None, same=True)
    image = step["image"] or {"width": 1, "height": 1}
    result = family.parse(Answer(answers[-1]["raw"]), (Size(image["width"], image["height"]),))
    if is_masked([answers[-1]["raw"]] if isinstance(result, ParseFailure) else action_json(result.actions[0])):
        return ReplayedStep(number, result.thought, None, _MASKED, None, same=True)
    if isinstance(result, ParseFailure):
        return ReplayedStep(number, result.thought, None, result.message, None, same=step["target"] is None)
    target = map_points(result.actions[0], read_viewport(step["viewport"]).to_desktop)
    return ReplayedStep(
        number,
        result.thought,
        target,
        None,
        _reason(policy, target),
        same=action_json(target) == step["target"],
    )


def _reason(policy: Policy, target: Action[DesktopPoint]) -> str | None:
    question = policy.question(target)
    return None if question is None else question.reason


def read_viewport(data: dict[str, Any]) -> Viewport:
    """The viewport of a recorded step."""
    region = Region(data["left"], data["top"], data["width"], data["height"])
    return Viewport(region, Size(data["captured_width"], data["captured_height"]))
