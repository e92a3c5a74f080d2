"""Several models on one machine: all of them fit at the same time, and the one with the least room has the most."""

import pytest
from planning import NEW, card, machine

from serverctl.hardware.catalogue import imagine
from serverctl.hardware.facts import CannotPlanError, Hardware
from serverctl.plan.colocation import Part
from serverctl.plan.goal import Goal
from serverctl.planning import plans_for


def together(hardware: Hardware, *models: str) -> tuple[Part, ...]:
    return plans_for(hardware, [Goal(model=model) for model in models], NEW)


def share(part: Part) -> float:
    found = part.plan.settings.gpu_memory_utilization
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("gpu", "models", "most"),
    [
        ("rtx-4090", ("MAI-UI-2B", "Qwen3-VL-8B-Instruct"), 0.88),
        ("l4", ("MAI-UI-2B", "MAI-UI-8B"), 0.92),
        ("a100-80", ("MAI-UI-8B", "Qwen3.5-27B"), 0.92),
        ("h200", ("MAI-UI-8B", "MAI-UI-2B", "Qwen3.5-9B"), 0.92),
        ("h200", ("MAI-UI-8B", *["MAI-UI-2B"] * 4), 0.92),
    ],
)
def test_models_divide_the_memory_of_one_card(gpu: str, models: tuple[str, ...], most: float) -> None:
    parts = together(imagine(gpu, 1), *models)
    assert [part.plan.model.name for part in parts] == list(models)
    assert sum(share(part) for part in parts) <= most + 1e-9
    for part in parts:
        budget = part.plan.budget
        assert budget.used + budget.kv <= budget.requested
        assert part.plan.max_concurrency >= 1
        assert (part.plan.settings.images or 0) >= min(part.plan.model.history_images, 3)


def test_a_persons_own_share_is_kept() -> None:
    goals = [Goal(model="MAI-UI-2B", overrides={"gpu_memory_utilization": 0.36}), Goal(model="MAI-UI-8B")]
    first, second = plans_for(imagine("l4", 1), goals, NEW)
    assert (share(first), share(second) <= 0.56) == (0.36, True)


def test_models_get_cards_of_their_own_where_there_are_enough() -> None:
    parts = together(imagine("l4", 2), "MAI-UI-8B", "Qwen3-VL-8B-Instruct")
    cards = [{gpu.index for gpu in part.plan.gpus} for part in parts]
    assert cards[0].isdisjoint(cards[1])
    assert [share(part) for part in parts] == [0.92, 0.92]
    heavy = together(imagine("l4", 4), "MAI-UI-2B", "MAI-UI-32B")
    assert len(heavy[1].plan.gpus) > len(heavy[0].plan.gpus) == 1


def test_the_heaviest_model_gets_the_best_of_cards_that_are_not_alike() -> None:
    heavy, small = together(imagine("l4+h100", 1), "MAI-UI-32B", "MAI-UI-2B")
    assert [gpu.name for gpu in heavy.plan.gpus] == ["NVIDIA H100 80GB HBM3"]
    assert [gpu.name for gpu in small.plan.gpus] == ["NVIDIA L4"]
    assert heavy.plan.precision == "16-bit"


def test_more_models_than_cards_use_all_cards() -> None:
    parts = together(imagine("h100", 2), "MAI-UI-2B", "MAI-UI-32B", "Qwen3.5-9B")
    cards = [[gpu.index for gpu in part.plan.gpus] for part in parts]
    assert cards[0] == cards[2] != cards[1]
    assert share(parts[1]) == 0.92
    assert share(parts[0]) + share(parts[2]) <= 0.92


def test_one_that_needs_all_cards_shares_the_best_of_them_with_none_and_says_so() -> None:
    with pytest.raises(CannotPlanError) as refused:
        together(imagine("l4", 2), "MAI-UI-32B", "MAI-UI-8B")
    assert "MAI-UI-32B more than there is" in refused.value.what


def test_what_does_not_fit_together_is_refused_with_what_each_needs() -> None:
    with pytest.raises(CannotPlanError) as refused:
        together(imagine("t4", 1), "MAI-UI-2B", "MAI-UI-8B")
    assert "do not fit together on Tesla T4: MAI-UI-2B needs 32% and MAI-UI-8B needs" in refused.value.what


def test_what_other_programs_use_is_not_divided() -> None:
    parts = together(machine(card(48.0, free=24.0)), "MAI-UI-2B", "MAI-UI-2B")
    assert sum(share(part) for part in parts) <= 0.5


def test_a_processor_serves_one_model_only() -> None:
    with pytest.raises(CannotPlanError, match="Several models need a graphics card"):
        together(machine(), "MAI-UI-2B", "MAI-UI-2B")
    [alone] = together(machine(), "MAI-UI-2B")
    assert alone.plan.vendor == "cpu"
