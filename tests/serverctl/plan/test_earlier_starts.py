"""What a real start took replaces the seeds, for exactly what it was measured with."""

import json

import pytest
from planning import GIB, NEW, plan

from serverctl.earlier_starts import keep_measurement
from serverctl.paths import calibration_file
from serverctl.plan.memory import Measured

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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": 1}', "null"])
def test_a_file_that_cannot_be_read_costs_only_the_knowledge(text: str) -> None:
    path = calibration_file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    made = plan("a100-80", "MAI-UI-8B")
    assert not made.budget.measured
    keep_measurement(NEW, made.gpus[0].name, made.model, "16-bit", made.settings, MEASURED)
    assert plan("a100-80", "MAI-UI-8B").budget.measured


@pytest.mark.parametrize("entry", [3, None, [], {}, {"weights": "much"}, {"weights": True}, {"graphs": -5}])
def test_an_entry_that_is_none_is_not_believed(entry: object) -> None:
    made = plan("a100-80", "MAI-UI-8B")
    keep_measurement(NEW, made.gpus[0].name, made.model, "16-bit", made.settings, MEASURED)
    document = json.loads(calibration_file().read_text())
    calibration_file().write_text(json.dumps(dict.fromkeys(document, entry)))
    assert plan("a100-80", "MAI-UI-8B").budget == made.budget
