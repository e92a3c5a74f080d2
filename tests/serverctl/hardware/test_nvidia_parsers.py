"""The parsers of the tools' outputs are total: any text gives cards or none, never an exception or a guess."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from machines import NAMES

from serverctl.hardware import nvidia, other_vendors
from serverctl.hardware.facts import Driver, Gpu

#: Text made of what the tools write, so that it comes close to being right.
PIECES = st.sampled_from(
    [
        "0", "1", "²", "٣", ",", ", ", "\n", "\r", "\x00", "GPU", "GPU0", "GPU-1", "NV12", " X ", "PHB", "\t", "15360",
        "MiB", "[N/A]", "Enabled", "7.5", "580.95.05", "MIG 3g.40gb", "Device  0:", "(UUID: MIG-1)",
        "CUDA Version: 12.4", "|", "/", "{", "}", '"card0"', ":", '"VRAM Total Memory (B)"', "[", "]", "model name",
        "flags", "9" * 30,
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))


@example('{"card0":' + "[" * 100_000 + "}")
@given(text=TEXTS)
def test_any_text_into_any_parser_gives_an_answer(text: str) -> None:
    gpus, driver = nvidia.parse_query(text)
    assert all(gpu.total_bytes >= 0 for gpu in gpus)
    assert driver is None or driver.version
    nvidia.parse_cuda(text)
    nvidia.parse_topology(text)
    nvidia.parse_mig(text)
    nvidia.parse_mig_memory(text)
    nvidia.unmeasured(text)
    nvidia.capability_by_name(text)
    assert nvidia.explain_trouble(text).startswith("nvidia-smi")
    other_vendors.parse_gaudi(text)
    other_vendors.gaudi_name(text)
    other_vendors.parse_rocm(text)
    other_vendors.parse_cpuinfo(text)
    other_vendors.parse_memory_limit(text)
    other_vendors.apple_gpus(text, 1)


@pytest.mark.parametrize(
    ("name", "capability"),
    NAMES["capabilities"],
)
def test_a_cards_name_tells_its_compute_capability_where_the_driver_does_not(name: str, capability: str) -> None:
    assert ".".join(map(str, nvidia.capability_by_name(name) or ())) == capability


@pytest.mark.parametrize(
    ("total", "reserved", "usable"),
    [
        (15360, 257, 15103),
        (15360, None, 15360),
        (15360, 0, 15360),
        (15360, 9999, 15360),
        (15360, 3839, 11521),
        (15360, 3840, 15360),
    ],
)
def test_what_the_driver_keeps_is_not_counted_unless_it_is_absurd(
    total: int, reserved: int | None, usable: int
) -> None:
    assert nvidia.usable_bytes(total, reserved) == usable


def test_instances_are_read_in_the_old_and_the_new_way_of_naming_them() -> None:
    listing = (
        "GPU 0: A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n"
        "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77/1/0)\n"
        "GPU 1: A100-SXM4-40GB (UUID: GPU-c6d4f1ef)\n"
        "  MIG 1c.3g.20gb  Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
        "  MIG 1g.5gb+me   Device  1: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb40)\n"
    )
    found = nvidia.parse_mig(listing)
    assert [uuid.count("/") for _, _, uuid in found[0]] == [2]
    assert [(number, profile) for number, profile, _ in found[1]] == [(0, "1c.3g.20gb"), (1, "1g.5gb+me")]
    card = Gpu(1, "A100-SXM4-40GB", "nvidia", 40 * 1024**3)
    parts = nvidia.mig_gpus(card, found[1], {})
    assert [(gpu.total_bytes, gpu.free_bytes) for gpu in parts] == [(19_000_000_000, None), (4_750_000_000, None)]


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("HL-205", "Gaudi (HL-205)"),
        ("HL-225", "Gaudi 2 (HL-225)"),
        ("HL-325L", "Gaudi 3 (HL-325L)"),
        ("HL-9", "HL-9"),
        ("", ""),
    ],
)
def test_a_product_number_is_told_by_the_name_it_is_sold_under(product: str, name: str) -> None:
    assert other_vendors.gaudi_name(product) == name


@pytest.mark.parametrize(
    ("banner", "cuda"),
    [
        ("| NVIDIA-SMI 418.87.00    Driver Version: 418.87.00    CUDA Version: 10.1     |", (10, 1)),
        ("| NVIDIA-SMI 590.44.01   KMD Version: 590.44.01   CUDA UMD Version: 13.1 |", (13, 1)),
        ("| NVIDIA-SMI 390.116    Driver Version: 390.116                   |", None),
        ("| CUDA Version: N/A |", None),
    ],
)
def test_the_banner_tells_the_newest_cuda(banner: str, cuda: tuple[int, int] | None) -> None:
    assert nvidia.parse_cuda(banner) == cuda


@pytest.mark.parametrize(("version", "major"), [("580.95.05", 580), ("1.20.1-366eb9c", 1), ("unknown", None)])
def test_a_drivers_major_number_is_a_number_or_nothing(version: str, major: int | None) -> None:
    assert Driver(version).major == major


def test_amd_memory_in_use_beyond_the_whole_leaves_nothing_free() -> None:
    card = {"VRAM Total Memory (B)": "100", "VRAM Total Used Memory (B)": "200"}
    [gpu] = other_vendors.parse_rocm(json.dumps({"card0": card, "card1": {"VRAM Total Memory (B)": "0"}, "cardx": 3}))
    assert (gpu.free_bytes, gpu.name) == (0, "AMD GPU")


@pytest.mark.parametrize(
    ("brand", "there"), [("Apple M2 Max", True), ("Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz", False), ("", False)]
)
def test_only_apples_own_chips_are_graphics_cards(brand: str, there: bool) -> None:
    found = other_vendors.apple_gpus(brand, 64 << 30)
    assert bool(found) is there
    assert all((gpu.vendor, gpu.total_bytes) == ("apple", 64 << 30) for gpu in found)
