"""What the state says about plans, failures and starts, as JSON values."""

from dataclasses import asdict
from typing import Any

from serverctl.diagnose.classify import Failure
from serverctl.diagnose.stages import StartReport
from serverctl.plan.goal import Plan
from serverctl.plan.render import Command
from serverctl.process.state import failure_json


def told(failure: Failure) -> dict[str, Any]:
    """A failure as a person is told of it."""
    words = failure.words
    return failure_json(failure.kind.value, words.title, words.cause, words.remedy, failure.evidence)


def describe(failure: Failure) -> dict[str, Any]:
    """All that is known of a failure."""
    return {
        **told(failure),
        "class": failure.kind.group,
        "stage": failure.stage.name.lower(),
        "exit_status": failure.exit_status,
        "numbers": failure.numbers,
    }


def essentials(plan: Plan, command: Command) -> dict[str, Any]:
    """What of a plan the state shows."""
    return {
        "preset": plan.preset,
        "precision": plan.precision,
        "settings": plan.settings.given(),
        "cards": [gpu.name for gpu in plan.gpus],
        "expected_kv_tokens": plan.budget.printed_tokens(plan.context),
        "expected_concurrency": round(plan.max_concurrency, 2),
        "argv": command.argv(),
        "dropped": list(command.dropped),
        "warnings": list(plan.warnings),
    }


def report_json(report: StartReport) -> dict[str, Any]:
    """What vLLM printed about itself, as JSON values; what it did not print is left out."""
    return {
        name: value for name, value in asdict(report).items() if value is not None and name not in ("stage", "percent")
    }
