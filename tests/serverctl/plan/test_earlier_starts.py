"""What a real start took replaces the seeds, for exactly what it was measured with."""

import json

import pytest
from planning import GIB, NEW, plan

from serverctl.paths import calibration_file
from serverctl.plan.memory import Measured
from serverctl.planning import keep_measurement

MEASURED = Measured(weights=16 * GIB, context=GIB // 2, activations=2 * GIB, graphs=GIB)


def test_the_next_plan_on_the_card_reckons_with_it() -> None:
    first = plan("a100-80", "MAI-UI-8B")
    assert not first.budget.measured
    keep_measurement(NEW, first.gpus[0].name, first.model, first.precision, first.settings, MEASURED)
    second = plan("a100-80", "MAI-UI-8B")
    assert second.budget.measured
    assert (second.budget.activations, second.budget.graphs) == (2 * GIB, GIB)
    assert not plan("h100", "MAI-UI-8B").budget.measured, "another card"
    assert not plan("a100-80", "MAI-UI-8B", vllm="0.34.0").budget.measured, "another vLLM"
    assert not plan("a100-80", "MAI-UI-2B").budget.measured, "another model"
    assert not plan("a100-80", "MAI-UI-8B", overrides={"longest_edge": 2_097_152}).budget.measured, "other images"
    assert not plan("a100-80", "MAI-UI-8B", overrides={"enforce_eager": True}).budget.measured
    assert not plan("a100-80", "MAI-UI-8B", overrides={"quantization": "fp8_per_tensor"}).budget.measured
    keep_measurement(NEW, "another card", first.model, "16-bit", first.settings, Measured(graphs=1))
    assert plan("a100-80", "MAI-UI-8B").budget.graphs == GIB, "several are kept side by side"


def test_a_disk_that_cannot_be_written_does_not_stop_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", "/proc/no/such/folder")
    made = plan("a100-80", "MAI-UI-8B")
    keep_measurement(NEW, made.gpus[0].name, made.model, made.precision, made.settings, MEASURED)
    assert not plan("a100-80", "MAI-UI-8B").budget.measured


@pytest.mark.parametrize(
    ("text", "entry"),
    [("", 3), ("{", None), ("[]", []), ('{"x": 1}', {}), ("null", {"weights": "much"}), ("1", {"weights": True}),
     ("{}", {"graphs": -5})],
)  # fmt: skip
def test_what_cannot_be_read_or_believed_costs_only_the_knowledge(text: str, entry: object) -> None:
    path, made = calibration_file(), plan("a100-80", "MAI-UI-8B")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert not plan("a100-80", "MAI-UI-8B").budget.measured
    keep_measurement(NEW, made.gpus[0].name, made.model, "16-bit", made.settings, MEASURED)
    assert plan("a100-80", "MAI-UI-8B").budget.measured
    path.write_text(json.dumps(dict.fromkeys(json.loads(path.read_text()), entry)))
    assert plan("a100-80", "MAI-UI-8B").budget == made.budget
