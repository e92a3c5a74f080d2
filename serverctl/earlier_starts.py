"""Stores results of starts: the memory that vLLM measured, and the adjustments with which a server became ready.

The next start of the same model on the same cards uses them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from foundation.errors import MaiError, UsageError
from foundation.files import keep_json, read_json_object
from serverctl.diagnose.stages import StartReport
from serverctl.models.model import Model, Precision
from serverctl.paths import calibration_file, good_plans_file
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.memory import Measured, measurement_key
from serverctl.plan.settings import Settings, check_value

#: Adjustments that depend on the current situation, not on the card: not stored.
_OF_THE_MOMENT = ("gpu_memory_utilization",)
_AGAIN = "worked at an earlier start: "


def read_measurements() -> dict[str, Measured]:
    """Return every measurement by its `measurement_key`; they replace the planner's estimates."""
    found = {}
    for key, entry in read_json_object(calibration_file()).items():
        sizes = {field.name: entry.get(field.name) for field in fields(Measured)} if isinstance(entry, dict) else {}
        found[key] = Measured(**{name: size for name, size in sizes.items() if type(size) is int and size >= 0})
    return {key: measured for key, measured in found.items() if measured != Measured()}


def keep_measurement(
    vllm: str, card: str, model: Model, precision: Precision, settings: Settings, measured: Measured
) -> None:
    """Store the measured memory of a start."""
    known = {name: value for name, value in asdict(measured).items() if value is not None}
    document = read_json_object(calibration_file()) | {measurement_key(vllm, card, model, precision, settings): known}
    keep_json(calibration_file(), document)


def measure(report: StartReport, plan: Plan, vllm: str) -> None:
    """Store the memory of a start on cards, if vLLM printed its breakdown."""
    if not plan.gpus or report.consumed is None or report.activations is None:
        return
    context = max(0, report.consumed - report.weights) if report.weights else None
    measured = Measured(report.weights, context, report.activations, report.graphs)
    card = min(plan.gpus, key=lambda gpu: gpu.total_bytes).name
    keep_measurement(vllm, card, plan.model, plan.precision, plan.settings, measured)


def recall_adjustments(plan: Plan, goal: Goal, vllm: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the adjustments that worked before for this plan, and their reasons; empty if there are none."""
    entry = read_json_object(good_plans_file()).get(_key(plan, goal, vllm))
    found = entry if isinstance(entry, Mapping) else {}
    values, reasons = found.get("adjustments"), found.get("because")
    if not isinstance(values, dict) or not isinstance(reasons, dict):
        return {}, {}
    try:
        values = {name: _checked(name, value) for name, value in values.items() if name not in goal.overrides}
    except MaiError:  # written by another version, or by hand
        return {}, {}
    return values, {name: f"{_AGAIN}{text}" for name, text in reasons.items()}


def keep_adjustments(first_plan: Plan, goal: Goal, vllm: str) -> None:
    """Store a goal's adjustments after its server became ready. Without adjustments, delete the stored ones."""
    document = read_json_object(good_plans_file())
    values = {name: value for name, value in goal.adjustments.items() if name not in _OF_THE_MOMENT}
    key = _key(first_plan, goal, vllm)
    if values:
        reasons = {name: goal.adjusted_because.get(name, "").removeprefix(_AGAIN) for name in values}
        document[key] = {"adjustments": values, "because": reasons}
    elif document.pop(key, None) is None:
        return
    keep_json(good_plans_file(), document)


def _key(plan: Plan, goal: Goal, vllm: str) -> str:
    cards = "+".join(gpu.name for gpu in plan.gpus) or "cpu"
    wishes = json.dumps({**goal.overrides, "extra": list(goal.extra)}, sort_keys=True, default=str)
    return "|".join((cards, goal.model or "auto", plan.preset, vllm, wishes))


def _checked(name: str, value: Any) -> Any:
    """Check and convert the value of an adjustment. Raises UsageError."""
    if name in ("precision", "model"):
        if not isinstance(value, str) or (name == "precision" and value not in get_args(Precision)):
            raise UsageError(f"{name} cannot be {value!r}.")
        return value
    # None removes a planned value (an attention backend, a format of the KV cache).
    return None if value is None else check_value(name, value, str(good_plans_file()))
