"""A repair changes one automatic value a step, never a person's own, and comes to an end."""

from dataclasses import replace
from typing import Any

import pytest

from serverctl import planning
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import Kind
from serverctl.diagnose.ladder import MOST_STARTS, Step, next_step
from serverctl.diagnose.stages import Stage
from serverctl.hardware.catalogue import imagine
from serverctl.plan.goal import Goal, Plan

MEMORY = (
    Kind.NO_KV,
    Kind.AUTOFIT_ZERO,
    Kind.LOAD_OOM,
    Kind.PROFILE_OOM,
    Kind.KV_SHORT,
    Kind.GRAPH_OOM,
    Kind.RUNTIME_OOM,
)
#: What starting again as it was, or with other values of ours, cannot mend.
HOPELESS = (
    Kind.MODEL, Kind.GATED, Kind.TOKEN, Kind.OFFLINE, Kind.ARCH, Kind.HF_VERSION, Kind.REMOTE_CODE, Kind.VALUE,
    Kind.CORRUPT, Kind.DRIVER, Kind.CARD, Kind.NO_DEVICE, Kind.TOO_FEW_GPUS, Kind.IMPORT, Kind.COMPILER, Kind.DISK,
    Kind.SHM, Kind.PERMISSION, Kind.TENSOR_PARALLEL,
)  # fmt: skip


def failure(kind: Kind, evidence: str = "it said so", **numbers: Any) -> Failure:
    return Failure(kind, Stage.LOADED, evidence, numbers)


def plan_for(card: str, goal: Goal) -> Plan:
    name, _, count = card.partition("*")
    return planning.plan_for(imagine(name, int(count or 1)), goal, "0.33.0")


def climb(
    kind: Kind, card: str = "l4", goal: Goal | None = None, evidence: str = "it said so", **numbers: Any
) -> list[tuple[Step, Plan]]:
    """All steps that a failure which stays the same leads to, with the plan each was taken from."""
    wanted = goal or Goal(model="MAI-UI-8B")
    taken: list[tuple[Step, Plan]] = []
    earlier: tuple[Kind, ...] = ()
    while True:
        plan = plan_for(card, wanted)
        step = next_step(failure(kind, evidence, **numbers), plan, wanted, earlier)
        taken.append((step, plan))
        if step.action == "stop":
            return taken
        earlier = (*earlier, kind)
        wanted = replace(
            wanted,
            adjustments={**wanted.adjustments, **step.changes},
            adjusted_because={**wanted.adjusted_because, **dict.fromkeys(step.changes, step.because)},
        )


@pytest.mark.parametrize("kind", list(Kind))
def test_every_ladder_ends_in_a_sentence(kind: Kind) -> None:
    steps = [step for step, _ in climb(kind, free_gib=20.0, total_gib=22.0, fits=9000, most=8192, flags=["--x"])]
    assert 1 <= len(steps) <= MOST_STARTS
    assert steps[-1].action == "stop"
    assert all(step.because for step in steps)


@pytest.mark.parametrize("card", ["t4", "l4", "rtx-3090", "h100"])
@pytest.mark.parametrize("kind", MEMORY)
def test_one_knob_changes_a_step_and_each_step_changes_something(kind: Kind, card: str) -> None:
    for step, plan in climb(kind, card, Goal(model="MAI-UI-2B"), fits=9000):
        if step.action == "adjust":
            assert len(step.changes) == 1
            ((knob, value),) = step.changes.items()
            now = plan.precision if knob == "precision" else plan.settings.get(knob)
            assert value != now


@pytest.mark.parametrize("kind", MEMORY)
def test_a_persons_own_value_is_never_changed(kind: Kind) -> None:
    own = {
        "gpu_memory_utilization": 0.9, "longest_edge": 6_553_600, "max_num_batched_tokens": 8192, "max_num_seqs": 8,
        "max_model_len": 16384, "max_cudagraph_capture_size": 64, "kv_cache_dtype": "auto", "enforce_eager": False,
        "quantization": "fp8_per_tensor",
    }  # fmt: skip
    for step, plan in climb(
        kind, "l4", Goal(model="MAI-UI-8B", overrides=own), fits=9000, free_gib=18.0, total_gib=22.0
    ):
        assert not own.keys() & step.changes.keys()
        assert all(plan.settings.get(knob) == value for knob, value in own.items())


def test_a_persons_own_flag_is_never_changed_or_dropped() -> None:
    goal = Goal(model="MAI-UI-8B", extra=("--gpu-memory-utilization=0.9", "--swap-space", "4"))
    steps = climb(Kind.RUNTIME_OOM, "l4", goal)
    assert all("gpu_memory_utilization" not in step.changes for step, _ in steps)
    assert [step.action for step, _ in climb(Kind.FLAG, "l4", goal, flags=["--swap-space", "4"])] == ["stop"]


def test_a_flag_of_ours_that_vllm_refuses_is_left_out_and_a_taken_port_changed_at_once() -> None:
    (step, _), *_ = climb(Kind.FLAG, flags=["--performance-mode", "interactivity"])
    assert (step.action, step.drop_flags, step.wait_for_memory) == ("retry", ("--performance-mode",), False)
    step = climb(Kind.PORT)[0][0]
    assert (step.action, step.wait_for_memory) == ("retry", False)


def test_memory_that_others_hold_is_waited_for_and_then_less_is_asked_for() -> None:
    steps = [step for step, _ in climb(Kind.FREE_MEM, free_gib=15.0, total_gib=22.0)]
    assert (steps[0].action, steps[0].wait_for_memory) == ("retry", True)
    assert steps[1].changes == {"gpu_memory_utilization": 0.66}  # (15 - 0.3) / 22, rounded down


#: A cache that was made smaller by an earlier step.
SMALL_CACHE = Goal(
    model="MAI-UI-2B", adjustments={"kv_cache_dtype": "fp8"}, adjusted_because={"kv_cache_dtype": "room"}
)


@pytest.mark.parametrize(
    ("kind", "card", "goal", "said", "changes"),
    [
        (Kind.KV_SHORT, "l4", Goal(model="MAI-UI-8B"), {"fits": 20_000}, {"max_model_len": 19_968}),
        # The sampler's memory grows with the requests at a time.
        (Kind.PROFILE_OOM, "l4", Goal(model="MAI-UI-2B", preset="throughput"), {"dummy_requests": 256},
         {"max_num_seqs": 64}),
        (Kind.BF16, "l4", Goal(model="MAI-UI-8B"), {}, {"dtype": "half"}),
        (Kind.QUANT_CC, "rtx-3090", SMALL_CACHE,
         {"evidence": "ValueError: type fp8e4nv not supported in this architecture"}, {"kv_cache_dtype": None}),
    ],
)  # fmt: skip
def test_the_first_step_changes_what_the_failure_names(
    kind: Kind, card: str, goal: Goal, said: dict[str, Any], changes: dict[str, Any]
) -> None:
    (step, _), *_ = climb(kind, card, goal, **said)
    assert step.changes == changes


@pytest.mark.parametrize(("fits", "lengths"), [(900, []), (5111, []), (5112, [4992])])
def test_a_context_too_small_for_a_screenshot_and_an_answer_is_not_taken(fits: int, lengths: list[int]) -> None:
    steps = climb(Kind.KV_SHORT, fits=fits)
    assert [step.changes["max_model_len"] for step, _ in steps if "max_model_len" in step.changes] == lengths


@pytest.mark.parametrize(("share", "knob"), [(0.51, "gpu_memory_utilization"), (0.5, "max_cudagraph_capture_size")])
def test_requests_get_room_on_the_card_down_to_half_of_it(share: float, knob: str) -> None:
    goal = Goal(model="MAI-UI-2B", adjustments={"gpu_memory_utilization": share})
    assert set(climb(Kind.RUNTIME_OOM, "h100", goal)[0][0].changes) == {knob}


def test_without_room_for_the_kv_cache_the_share_never_shrinks() -> None:
    for kind in (Kind.NO_KV, Kind.AUTOFIT_ZERO):
        for step, plan in climb(kind):
            share = step.changes.get("gpu_memory_utilization")
            assert share is None or share > (plan.settings.gpu_memory_utilization or 0)


def test_more_of_the_card_is_asked_for_in_steps_of_three_hundredths() -> None:
    own = {
        "longest_edge": 2_097_152,
        "max_num_batched_tokens": 2048,
        "max_num_seqs": 1,
        "quantization": "fp8_per_tensor",
    }
    goal = Goal(model="MAI-UI-2B", overrides=own, adjustments={"gpu_memory_utilization": 0.8})
    steps = [step.changes for step, _ in climb(Kind.NO_KV, "l4", goal)]
    assert steps == [{"gpu_memory_utilization": share} for share in (0.83, 0.86, 0.89, 0.92)] + [{}]


def test_graphs_get_three_hundredths_of_the_card_where_fewer_of_them_did_not_help() -> None:
    steps = [step.changes for step, _ in climb(Kind.GRAPH_OOM, "h100", Goal(model="MAI-UI-2B"))]
    assert steps[:2] == [{"max_cudagraph_capture_size": 4}, {"gpu_memory_utilization": 0.89}]
    assert steps[-2:] == [{"enforce_eager": True}, {}], "and then there are none"


def test_screenshots_are_shrunk_to_what_small_targets_need_and_not_below() -> None:
    steps = [step.changes for kind in MEMORY for step, _ in climb(kind, "rtx-3090", Goal(model="MAI-UI-2B"))]
    assert min(changes["longest_edge"] for changes in steps if "longest_edge" in changes) == 2_097_152


MAYBE_CHANCE = (
    Kind.PROFILE_RACE, Kind.NETWORK, Kind.CUDA, Kind.NCCL, Kind.KILLED, Kind.CRASHED, Kind.EXITED, Kind.STALLED,
    Kind.HUNG, Kind.INNER_PORT,
)  # fmt: skip


@pytest.mark.parametrize("kind", MAYBE_CHANCE)
def test_what_may_have_been_chance_is_tried_once_more(kind: Kind) -> None:
    assert [step.action for step, _ in climb(kind)] == ["retry", "stop"]


def test_an_error_of_vllms_own_comes_again_and_is_not_tried_again() -> None:
    ((step, _),) = climb(Kind.EXITED, evidence="RuntimeError: start (0) + length (512) exceeds dimension size (384).")
    assert step.action == "stop"


@pytest.mark.parametrize("kind", HOPELESS)
def test_what_no_other_start_can_mend_stops_at_once(kind: Kind) -> None:
    ((step, _),) = climb(kind)
    assert step.action == "stop"
    assert step.because == "Starting again would not help."
