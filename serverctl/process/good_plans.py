"""What starts taught: the last adjustments that led to a server that answered, and what vLLM measured on the way.

The next start of the same model on the same cards begins there.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

from foundation.errors import MaiError, UsageError
from foundation.files import keep_json, read_json_object
from serverctl import calibration
from serverctl.diagnose.stages import StartReport
from serverctl.models.model import Precision
from serverctl.paths import good_plans_file
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.memory import Measured
from serverctl.plan.settings import check_value

#: Values that say something about the moment, not about the card: they are found anew at every start.
_OF_THE_MOMENT = ("gpu_memory_utilization",)


def _key(plan: Plan, goal: Goal, vllm: str) -> str:
    cards = "+".join(gpu.name for gpu in plan.gpus) or "cpu"
    wishes = json.dumps({**goal.overrides, "extra": list(goal.extra)}, sort_keys=True, default=str)
    return "|".join((cards, goal.model or "auto", plan.preset, vllm, wishes))


def recall(plan: Plan, goal: Goal, vllm: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Adjustments and their reasons that worked before for this plan; empty where none were needed."""
    entry = read_json_object(good_plans_file()).get(_key(plan, goal, vllm))
    if not isinstance(entry, Mapping):
        return {}, {}
    values, reasons = entry.get("adjustments"), entry.get("because")
    if not isinstance(values, dict) or not isinstance(reasons, dict):
        return {}, {}
    try:
        values = {name: _checked(name, value) for name, value in values.items() if name not in goal.overrides}
    except MaiError:  # written by another version, or by hand
        return {}, {}
    return values, {name: f"worked at an earlier start: {text}" for name, text in reasons.items()}


def _checked(name: str, value: Any) -> Any:
    """An adjustment's value as it must be. Raises UsageError."""
    if name in ("precision", "model"):
        known = isinstance(value, str) and (name == "model" or value in get_args(Precision))
        if not known:
            raise UsageError(f"{name} cannot be {value!r}.")
        return value
    # None takes a planned value back (an attention backend, a format of the KV cache).
    return None if value is None else check_value(name, value, str(good_plans_file()))


def remember(first_plan: Plan, goal: Goal, vllm: str) -> None:
    """Keeps a goal's adjustments after its server answered; a goal without any forgets earlier ones."""
    document = read_json_object(good_plans_file())
    values = {name: value for name, value in goal.adjustments.items() if name not in _OF_THE_MOMENT}
    key = _key(first_plan, goal, vllm)
    if values:
        reasons = {name: goal.adjusted_because.get(name, "") for name in values}
        plain = {name: text.removeprefix("worked at an earlier start: ") for name, text in reasons.items()}
        document[key] = {"adjustments": values, "because": plain}
    elif key in document:
        del document[key]
    else:
        return
    keep_json(good_plans_file(), document)


def measure(report: StartReport, plan: Plan, vllm: str) -> None:
    """Keeps what a start on cards really took, for the next plan. Only where vLLM printed its breakdown."""
    if not plan.gpus or report.consumed is None or report.activations is None:
        return
    measured = Measured(
        weights=report.weights,
        context=max(0, report.consumed - report.weights) if report.weights else None,
        activations=report.activations,
        graphs=report.graphs,
    )
    card = min(plan.gpus, key=lambda gpu: gpu.total_bytes).name
    calibration.remember(vllm, card, plan.model, plan.precision, plan.settings, measured)
