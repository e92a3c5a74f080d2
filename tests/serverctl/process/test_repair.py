"""Each class of failure goes up its ladder: one knob a step, never a person's own, and what worked is remembered."""

import json
import time
from typing import Any

import pytest
from stubs.controlled import Machine

from serverctl.paths import good_plans_file
from serverctl.plan.goal import Goal
from serverctl.process import control
from serverctl.process.state import State

pytestmark = pytest.mark.slow

CARD = "NVIDIA GeForce RTX 4090"
#: The card as the fake vLLM sees it, and a model of 2B in it.
SMALL: dict[str, Any] = {"total": 23.5, "free": 23.2, "weights": {"16-bit": 4.3, "fp8": 2.9, "w4": 2.0}}


def goal(**overrides: Any) -> Goal:
    return Goal(model="MAI-UI-2B", overrides=overrides)


def failing(kind: str, stage: str = "PROFILING") -> dict[str, Any]:
    """A scenario whose start fails of one class."""
    return {"card": SMALL, "before": {stage: [["fail", kind]]}}


def changed(machine: Machine, number: int) -> set[str]:
    """The flags in which a start differs from the one before."""
    before, after = machine.flags(number - 1), machine.flags(number)
    return {flag for flag in before.keys() | after.keys() if before.get(flag) != after.get(flag)} - {"--port"}


def up(machine: Machine, wanted: Goal | None = None) -> State:
    return machine.up(goal=wanted or goal(), gpu=True)


@pytest.fixture
def machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine.cards(CARD)
    monkeypatch.setenv("MAI_SERVER_MEMORY_SECONDS", "3")
    return machine


def test_no_room_for_the_cache_changes_one_knob_a_step(machine: Machine) -> None:
    machine.scenario(failing("NO_KV"), failing("NO_KV"), {"card": SMALL})
    state = up(machine)
    assert state.phase == "ready", state.message
    assert [len(changed(machine, number)) for number in (1, 2)] == [1, 1]
    assert len(machine.starts) == 3


@pytest.mark.parametrize(
    ("kind", "stage", "knobs"),
    [
        ("GRAPH_OOM", "GRAPHS", {"--max-cudagraph-capture-size"}),
        ("LOAD_OOM", "LOADED", {"--quantization", "--quantization-config"}),
        ("CUDA", "PROFILING", set()),  # a fault of the card: once more with the same flags
    ],
)
def test_what_failed_once_is_tried_again_with_what_may_help(
    machine: Machine, kind: str, stage: str, knobs: set[str]
) -> None:
    good_plans_file().parent.mkdir(parents=True, exist_ok=True)
    good_plans_file().write_text('{"half')  # a damaged memory of earlier starts is ignored
    machine.scenario(failing(kind, stage), {"card": SMALL})
    state = up(machine)
    assert state.phase == "ready", state.message
    assert changed(machine, 1) == knobs


def test_a_context_of_the_persons_own_is_never_changed(machine: Machine) -> None:
    before = {"KV_CACHE": [["fail", "KV_SHORT_10000"]]}
    machine.scenario({"card": SMALL, "before": before})
    state = up(machine, goal(max_model_len=16_384))
    assert state.phase == "failed"
    assert {machine.flags(number)["--max-model-len"] for number in range(len(machine.starts))} == {"16384"}
    assert str(control.failure_of(state)).endswith(".")
    assert len(machine.starts) <= 6


def test_weights_whose_precision_the_person_chose_stay_and_the_start_fails_clearly(machine: Machine) -> None:
    machine.scenario(failing("LOAD_OOM", "LOADED"))
    machine.refused("LOAD_OOM", 1, goal(quantization="fp8_per_channel"), gpu=True)
    assert "No automatic setting is left" in str(control.failure_of(machine.state()))


def test_a_flag_that_this_vllm_does_not_know_is_left_out(machine: Machine) -> None:
    machine.scenario({"card": SMALL, "rejects": ["--mm-processor-kwargs"]})
    state = up(machine)
    assert state.phase == "ready", state.message
    assert changed(machine, 1) == {"--mm-processor-kwargs"}
    assert any("--mm-processor-kwargs" in text for _, text in state.events)


@pytest.mark.parametrize("kind", ["MODEL", "IMPORT"])
def test_what_another_start_would_not_help_is_tried_once_only(machine: Machine, kind: str) -> None:
    machine.scenario(failing(kind, "ENGINE"))
    assert machine.refused(kind, 1, goal(), gpu=True)["evidence"]


def test_tries_are_bounded(machine: Machine) -> None:
    machine.scenario(failing("PROFILE_OOM"))
    state = up(machine)
    assert state.phase == "failed"
    assert 2 <= len(machine.starts) <= 6
    assert all(len(changed(machine, number)) == 1 for number in range(1, len(machine.starts)))


def test_memory_that_others_hold_is_told_and_the_server_becomes_ready(machine: Machine) -> None:
    machine.cards(CARD, free_gib=23.2)
    held, free = ({"card": {**SMALL, "since": time.time(), "free": [[0, gib]]}} for gib in (5.0, 23.2))
    machine.scenario(held, free)
    state = up(machine)
    assert state.phase == "ready", state.message
    assert any("held the card's memory" in text for _, text in state.events)


def test_what_worked_is_remembered_and_forgotten_when_it_is_not_needed(machine: Machine) -> None:
    before = {"KV_CACHE": [["fail", "KV_SHORT_10000"]]}
    machine.scenario({"card": SMALL, "before": before}, {"card": SMALL})
    assert up(machine).phase == "ready"
    assert changed(machine, 1) == {"--max-model-len", "--limit-mm-per-prompt"}, "and the images that fit in it"
    machine.down()
    (entry,) = json.loads(good_plans_file().read_text()).values()
    assert entry["adjustments"] == {"max_model_len": 9984}
    machine.scenario({"card": SMALL})
    assert up(machine).phase == "ready"
    assert len(machine.starts) == 1
    assert machine.flags()["--max-model-len"] == "9984"
