"""Cards that are not here can be planned for by name, and every size of card has its limits."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import NAMES, look

from foundation.errors import MaiError, UsageError
from serverctl.hardware.catalogue import card_names, imagine, with_data_sheet
from serverctl.hardware.facts import GIB, Gpu
from serverctl.planning import load_limits


@pytest.mark.parametrize(
    ("name", "found", "gib", "sm"),
    NAMES["spelled"],
)
def test_a_card_is_known_by_any_common_spelling(name: str, found: str, gib: float, sm: int) -> None:
    [gpu] = imagine(name).gpus
    assert (gpu.name, gpu.sm or 0) == (found, sm)
    assert gpu.total_gib == pytest.approx(gib)
    assert gpu.free_bytes is None, "what is free there nobody knows"


def test_every_card_is_known_by_its_own_name_and_once_only() -> None:
    names = card_names()
    assert len(names) == len(set(names)) > 20
    for name in names:
        [gpu] = imagine(name).gpus
        assert [g.name for g in imagine(gpu.name).gpus] == [gpu.name], "its driver's name leads back to it"
        assert gpu.bandwidth_gb_s is not None
        assert 100 < gpu.bandwidth_gb_s < 10_000


def test_a_card_that_is_here_has_the_rates_of_its_data_sheet() -> None:
    """No driver tells them, and without them nothing says how fast a plan will be. Name and bytes of a real H200."""
    found = with_data_sheet(Gpu(0, "NVIDIA H200", "nvidia", 150_109_880_320))
    assert (found.bandwidth_gb_s, found.tflops) == (4800, 989)
    part = Gpu(0, "NVIDIA H200 MIG 1g.18gb", "nvidia", 18 * GIB)
    other = Gpu(0, "NVIDIA H200", "nvidia", 96 * GIB)
    assert (with_data_sheet(part), with_data_sheet(other)) == (part, other), "another size is another card"


@pytest.mark.parametrize(
    ("name", "hint"), [("rtx 409", "rtx-4090"), ("H100 40GB", "h100"), ("T40", "t4"), ("T4 18GB", "t4")]
)
def test_an_unknown_card_is_refused_with_near_names(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        imagine(name)
    assert name in refusal.value.what
    assert hint in refusal.value.remedy


@pytest.mark.parametrize("count", [0, -1, 65, 10**9])
def test_a_number_of_cards_that_no_machine_has_is_refused(count: int) -> None:
    assert len(imagine("t4", 64).gpus) == 64
    with pytest.raises(UsageError, match="cannot have"):
        imagine("t4", count)


@pytest.mark.parametrize(
    ("name", "host", "link", "bandwidth"),
    [
        ("H100 PCIe", "x86_64", "pcie", 2000),
        ("H100 SXM", "x86_64", "nvlink", 3350),
        ("H100 NVL", "x86_64", "nvlink", 3900),
        ("gh200", "aarch64", "nvlink", 4000),
        ("4090", "x86_64", "pcie", 1008),
    ],
)
def test_a_card_has_its_own_processor_links_and_bandwidth(name: str, host: str, link: str, bandwidth: int) -> None:
    found = imagine(name, 2)
    assert (found.cpu.architecture, found.link(0, 1), found.gpus[0].bandwidth_gb_s) == (host, link, bandwidth)


@pytest.mark.parametrize("name", ["cpu", "none"])
def test_no_card_can_be_named_too(name: str) -> None:
    found = imagine(name)
    assert (found.gpus, found.vendor, found.imagined) == ((), "cpu", True)


@given(name=st.text(max_size=30))
def test_any_name_gives_a_machine_or_a_refusal_for_a_person(name: str) -> None:
    try:
        assert imagine(name).imagined
    except MaiError as refusal:
        assert refusal.remedy


def test_cards_that_a_bridge_joins_have_nvlink_in_pairs() -> None:
    found = imagine("H100 NVL", 4)
    assert [found.link(*pair) for pair in ((0, 1), (2, 3))] == ["nvlink"] * 2
    assert {found.link(*pair) for pair in ((0, 2), (0, 3), (1, 2), (1, 3))} == {"pcie"}


def test_a_card_nobody_listed_can_be_described() -> None:
    said = {"memory_gib": 47.5, "compute_capability": (13, 0), "bandwidth_gb_s": 2200}
    [gpu] = imagine("RTX 9999", 1, said).gpus
    assert (gpu.name, gpu.sm, gpu.bandwidth_gb_s, gpu.vendor) == ("RTX 9999", 130, 2200, "nvidia")
    assert gpu.total_gib == pytest.approx(47.5)
    [known] = imagine("5060 Ti", 1, {"memory_gib": 7.6}).gpus
    assert (known.total_gib, known.sm) == (pytest.approx(7.6), 120), "the person's word wins over the list's"


@pytest.mark.parametrize("said", [{}, {"memory_gib": 47.5}, {"compute_capability": (13, 0)}, {"bandwidth_gb_s": 1.0}])
def test_without_memory_and_capability_an_unknown_card_is_refused_and_told_how(said: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refusal:
        imagine("RTX 9999", 1, said)
    assert "--gpu-memory" in refusal.value.remedy


def test_cards_of_several_kinds_are_joined_with_a_plus_sign() -> None:
    found = imagine("4090+3060")
    assert [gpu.name.split()[-1] for gpu in found.gpus] == ["4090", "3060"]
    assert [gpu.index for gpu in found.gpus] == [0, 1]
    assert found.link(0, 1) == "pcie"
    with pytest.raises(UsageError, match="several makers"):
        imagine("4090+gaudi2")


@given(gib=st.floats(0.5, 500), sm=st.sampled_from([None, 75, 80, 86, 89, 90, 100, 120]))
def test_a_card_of_any_size_has_limits_that_keep_a_1080p_screen_whole(gib: float, sm: int | None) -> None:
    capability = None if sm is None else (sm // 10, sm % 10)
    limits = load_limits()(Gpu(0, "a card nobody listed", "nvidia", round(gib * GIB), compute_capability=capability))
    assert limits.longest_edge >= 1920 * 1080
    assert limits.max_num_seqs >= 1
    assert limits.max_num_batched_tokens >= 2048


def test_larger_cards_are_never_given_less() -> None:
    sizes = [load_limits()(Gpu(0, "card", "nvidia", gib * GIB)) for gib in range(4, 400)]
    for small, large in itertools.pairwise(sizes):
        assert small.longest_edge <= large.longest_edge
        assert small.max_model_len <= large.max_model_len
        assert small.max_num_seqs <= large.max_num_seqs
        assert small.max_num_batched_tokens <= large.max_num_batched_tokens


def test_a_card_with_limits_of_its_own_has_them_whether_it_is_here_or_not() -> None:
    here, there = load_limits()(look("t4").gpus[0]), load_limits()(imagine("t4").gpus[0])
    assert here == there
    assert (here.gpu_memory_utilization, here.max_model_len, here.max_num_batched_tokens) == (0.90, 12_288, 2048)
    assert here.source == "configs/gpus/cards.toml, t4"
