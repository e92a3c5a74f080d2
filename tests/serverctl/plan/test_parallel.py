"""Several cards: one model on as few as serve it well, shared by whole heads, and never cards that are not alike."""

from dataclasses import replace

import pytest
from planning import card, env, flags, machine, plan

from serverctl.cli import main
from serverctl.hardware.facts import CannotPlanError, Hardware
from serverctl.models.find import find_model
from serverctl.plan.group import Group, groups


@pytest.mark.parametrize("name", ["h100*8", "rtx-4090*2", "l40s*4", "a100-80*2"])
def test_the_small_model_uses_one_card_and_says_why_the_others_are_idle(name: str) -> None:
    made = plan(name, "MAI-UI-2B")
    assert len(made.gpus) == 1
    assert made.settings.tensor_parallel_size is None
    assert any("idle" in note and "--preset throughput" in note for note in made.notes)


def test_8b_takes_a_second_24_gb_card_rather_than_8_bit_weights_and_says_to_measure_it() -> None:
    made = plan("l4*2", "MAI-UI-8B")
    assert (made.precision, len(made.gpus)) == ("16-bit", 2)
    assert plan("l4", "MAI-UI-8B").precision == "fp8"
    assert any("PCIe" in note for note in made.notes)


@pytest.mark.parametrize(
    ("name", "cards"),
    [("h100*8", 2), ("h100*2", 2), ("a100-80*4", 2), ("l40s*4", 1), ("rtx-3090*2", 1)],
)
def test_8b_takes_a_second_card_for_speed_only_over_nvlink(name: str, cards: int) -> None:
    made = plan(name, "MAI-UI-8B")
    assert len(made.gpus) == cards
    assert (made.settings.tensor_parallel_size or 1) == cards
    assert [len(plan("h100*2", model).gpus) for model in ("Qwen3-VL-4B-Instruct", "Qwen2.5-VL-7B-Instruct")] == [1, 2]


@pytest.mark.parametrize(
    ("name", "cards", "precision"),
    [("l40s*2", 2, "16-bit"), ("rtx-4090*4", 4, "16-bit"), ("rtx-3090*4", 4, "16-bit"), ("a100-40*2", 2, "16-bit"),
     ("a100-80*8", 2, "16-bit"), ("l4*4", 4, "16-bit"), ("a100-40*8", 4, "16-bit"), ("l4*2", 2, "fp8"),
     ("h200", 1, "16-bit")],
)  # fmt: skip
def test_32b_shares_its_heads_over_the_cards_it_needs(name: str, cards: int, precision: str) -> None:
    made = plan(name, "MAI-UI-32B")
    assert (len(made.gpus), made.precision) == (cards, precision)
    if cards > 1:
        found = flags(made)
        assert found["--tensor-parallel-size"] == str(cards)
        assert found["--mm-encoder-tp-mode"] == "data"


@pytest.mark.parametrize("name", ["h100*4", "l4*4", "gaudi-3*4"])
def test_a_small_model_on_several_cards_is_warned_of(name: str) -> None:
    def warned(model: str, size: int) -> bool:
        made = plan(name, model, "balanced", overrides={"tensor_parallel_size": size})
        return any("not faster on" in text for text in made.warnings)

    assert [warned("MAI-UI-2B", 4), warned("MAI-UI-2B", 1), warned("MAI-UI-8B", 4)] == [True, False, False]


def test_engines_behind_one_port_are_counted_and_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--gpu", "A6000", "--gpus", "4", "--model", "MAI-UI-2B", "--", "--data-parallel-size", "4"]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "tokens in each of 4 engines: " in text
    assert "4 engines behind one port" in text


def test_three_cards_that_divide_no_heads_share_the_layers() -> None:
    made = plan("rtx-4090*3", "MAI-UI-32B", "balanced")
    assert (made.settings.tensor_parallel_size, made.settings.pipeline_parallel_size) in ((2, None), (None, 3))
    only_layers = plan("rtx-3090*3", "Qwen2.5-VL-32B-Instruct", "balanced")
    assert len(only_layers.gpus) in (2, 3)


def test_cards_that_are_too_few_for_another_server_are_told() -> None:
    made = plan("l40s*3", "MAI-UI-32B", "throughput", overrides={"tensor_parallel_size": 2})
    assert any("1 card stays idle: each server takes 2" in note for note in made.notes)
    assert any("3 cards stay idle" in note for note in plan("gaudi-3*4", "MAI-UI-8B").notes)


@pytest.mark.parametrize(
    ("model", "cards", "sizes"),
    [
        ("MAI-UI-2B", 8, (1, 2, 4, 8)),
        ("MAI-UI-8B", 8, (1, 2, 4, 8)),
        ("MAI-UI-32B", 3, (1, 2)),
        ("Qwen2.5-VL-7B-Instruct", 8, (1, 2, 4)),
        ("Qwen2.5-VL-3B-Instruct", 4, (1, 2, 4)),
        ("MAI-UI-8B", 1, (1,)),
    ],
)
def test_heads_are_shared_whole(model: str, cards: int, sizes: tuple[int, ...]) -> None:
    group = Group(tuple(card(24, index=number) for number in range(cards)))
    assert group.tensor_parallel_sizes(find_model(model)) == sizes


class TestCardsThatAreNotAlike:
    @pytest.mark.parametrize("names", ["4090+3060", "3060+4090", "4090+t4", "t4+4090", "v100+4090"])
    def test_the_best_one_serves_and_it_is_said(self, names: str) -> None:
        made = plan(names, "MAI-UI-8B")
        assert [gpu.name for gpu in made.gpus] == ["NVIDIA GeForce RTX 4090"]
        assert made.settings.tensor_parallel_size is None
        if "v100" not in names:
            assert any("not alike: only NVIDIA GeForce RTX 4090 is used" in text for text in made.warnings)

    def test_of_kinds_with_like_memory_the_newer_is_the_better(self) -> None:
        assert plan("3090+4090", "MAI-UI-2B").gpus[0].name == "NVIDIA GeForce RTX 4090"
        assert plan("a100-80+h100", "MAI-UI-2B").gpus[0].name == "NVIDIA H100 80GB HBM3"

    def test_memory_counts_more_than_age_and_the_best_speaks_for_all(self) -> None:
        new, large = card(16, sm=89, index=0, name="new"), card(24, sm=80, index=1, name="large")
        assert [group.first.name for group in groups((new, large))] == ["large", "new"]
        for gib, best in ((21.5, "large"), (21.7, "new")):  # within a tenth the newer one is the better
            assert groups((card(gib, sm=89, name="new"), large))[0].first.name == best
        with pytest.raises(CannotPlanError, match="does not fit on large"):
            plan(machine(new, large), "MAI-UI-32B")

    def test_several_alike_serve_what_the_single_best_cannot(self) -> None:
        cards = (card(30, sm=120, index=0, name="best"), *(card(24, sm=89, index=n, name="four") for n in range(1, 5)))
        assert [gpu.name for gpu in plan(machine(*cards), "MAI-UI-8B").gpus] == ["best"]
        assert [gpu.name for gpu in plan(machine(*cards), "MAI-UI-32B").gpus] == ["four"] * 4

    def test_the_next_best_serves_when_the_best_is_busy(self) -> None:
        busy, free = card(80, 2.0, index=0, name="large"), card(24, 23.5, index=1, name="small")
        assert [gpu.name for gpu in plan(machine(busy, free), "MAI-UI-2B").gpus] == ["small"]


@pytest.mark.parametrize(
    ("vllm", "pins"),
    [*((old, {"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) for old in ("0.19.1", "0.31.0")),
     *((new, {"CUDA_VISIBLE_DEVICES": "GPU-3"}) for new in ("0.32.0", "1.0.0", "dev"))],
)  # fmt: skip
def test_a_server_is_pinned_by_its_cards_stable_names_and_by_number_in_an_older_vllm(
    vllm: str, pins: dict[str, str]
) -> None:
    """vLLM before 0.32 ends with "invalid literal for int() with base 10: 'GPU-...'" (vllm#41848)."""
    found = env(plan(machine(card(80, index=3)), "MAI-UI-8B", vllm=vllm))
    assert {name: value for name, value in found.items() if name.startswith("CUDA_")} == pins
    two = machine(*(card(80, index=number) for number in range(2)), link="nvlink")
    assert "," in env(plan(two, "MAI-UI-8B", vllm=vllm))["CUDA_VISIBLE_DEVICES"]


class TestMig:
    def instances(self, count: int = 2, gib: float = 39) -> Hardware:
        parts = (card(gib, index=0, name="NVIDIA H100 MIG 3g.40gb", mig=True, uuid=f"MIG-{n}") for n in range(count))
        return machine(*parts)

    def test_one_instance_serves_alone_as_a_process_sees_no_more(self) -> None:
        made = plan(self.instances(), "MAI-UI-8B", "balanced")
        assert (len(made.gpus), made.settings.tensor_parallel_size) == (1, None)
        assert env(made)["CUDA_VISIBLE_DEVICES"] == "MIG-0"
        assert len(plan(self.instances(4), "MAI-UI-2B", "throughput").replicas) == 4
        with pytest.raises(CannotPlanError):
            plan(self.instances(gib=30), "MAI-UI-32B", "balanced")

    def test_a_vllm_that_cannot_name_an_instance_is_refused(self) -> None:
        with pytest.raises(CannotPlanError, match=r"vLLM 0\.19\.1 cannot be told to use"):
            plan(self.instances(), "MAI-UI-2B", vllm="0.19.1")

    def test_wishing_does_not_join_them(self) -> None:
        with pytest.raises(CannotPlanError, match="cannot work together"):
            plan(self.instances(), "MAI-UI-8B", overrides={"tensor_parallel_size": 2})


class TestOwnWishes:
    def test_a_wished_number_of_cards_is_used(self) -> None:
        made = plan("h100*8", "MAI-UI-2B", overrides={"tensor_parallel_size": 4})
        assert len(made.gpus) == 4
        assert flags(made)["--tensor-parallel-size"] == "4"
        both = plan("h100*8", "MAI-UI-32B", overrides={"tensor_parallel_size": 2, "pipeline_parallel_size": 2})
        assert len(both.gpus) == 4

    def test_engines_behind_one_port_have_their_own_cards(self) -> None:
        named = replace(machine(*(card(80, index=n) for n in range(4))), links=())
        made = plan(named, "MAI-UI-2B", overrides={"data_parallel_size": 4})
        assert len(made.gpus) == 4
        assert env(made)["CUDA_VISIBLE_DEVICES"].count("GPU-") == 4
        assert (len(made.replicas), made.settings.tensor_parallel_size) == (1, None)

    @pytest.mark.parametrize(
        "own",
        [
            {"tensor_parallel_size": 8},
            {"pipeline_parallel_size": 5},
            {"data_parallel_size": 5},
            {"tensor_parallel_size": 2, "data_parallel_size": 4},
        ],
    )
    def test_more_cards_than_there_are_is_refused(self, own: dict[str, int]) -> None:
        with pytest.raises(CannotPlanError, match=r"need \d cards that are alike, and there is 4 x"):
            plan("h100*4", "MAI-UI-8B", overrides=own)

    def test_a_number_that_does_not_divide_the_heads_is_refused_with_those_that_do(self) -> None:
        with pytest.raises(CannotPlanError, match="3 cards cannot share the heads") as refusal:
            plan("h100*4", "MAI-UI-8B", overrides={"tensor_parallel_size": 3})
        assert "1, 2, 4" in refusal.value.remedy


def test_every_server_of_a_plan_has_a_command_a_port_and_cards_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--gpu", "L4", "--gpus", "4", "--model", "MAI-UI-2B", "--preset", "throughput", "--command"]
    assert main([*words, "--port", "9000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [f"CUDA_VISIBLE_DEVICES={number} " in line for number, line in enumerate(lines)] == [True] * 4
    assert [f"--port {9000 + number} " in line for number, line in enumerate(lines)] == [True] * 4


def test_balanced_serves_twice_where_a_model_needs_two_of_four_cards() -> None:
    made = plan("rtx-4090*4", "MAI-UI-32B", "balanced")
    alone = plan("rtx-4090*4", "MAI-UI-2B", "balanced")
    assert (len(alone.replicas), len(alone.gpus)) == (1, 1)
    assert any("3 cards stay idle" in note for note in alone.notes)
    two = plan("l40s*4", "MAI-UI-32B", "balanced", overrides={"tensor_parallel_size": 2})
    assert [len(cards) for cards in two.replicas] == [2, 2]
    assert len(made.gpus) * len(made.replicas) == 4
