"""Every card of the planning table gets the plan that the table says, or a refusal that names the ways out."""

from typing import Any

import pytest
from planning import GIB, MODELS, PRESETS, TABLE_CARDS, card, command, flags, machine, plan

from serverctl.hardware.facts import CannotPlanError
from serverctl.plan.draft import CONTEXT_STEPS, TEXT_TOKENS
from serverctl.plan.group import Group

# KV tokens in thousands, by card and model, where the table plans with the same precision as we do.
TABLE = [
    ("t4", "MAI-UI-2B", "16-bit", 73),
    ("t4", "MAI-UI-8B", "fp8", 12),
    ("l4", "MAI-UI-2B", "16-bit", 140),
    ("l4", "MAI-UI-8B", "fp8", 64),
    ("a10g", "MAI-UI-2B", "16-bit", 140),
    ("a10g", "MAI-UI-8B", "fp8", 64),
    ("rtx-3060", "MAI-UI-2B", "16-bit", 46),
    ("rtx-3090", "MAI-UI-2B", "16-bit", 144),
    ("rtx-3090", "MAI-UI-8B", "16-bit", 20),
    ("rtx-4090", "MAI-UI-2B", "16-bit", 144),
    ("rtx-4090", "MAI-UI-8B", "16-bit", 20),
    ("rtx-5090", "MAI-UI-8B", "16-bit", 70),
    ("l40s", "MAI-UI-8B", "16-bit", 166),
    ("l40s", "MAI-UI-32B", "fp8", 23),
    ("a100-40", "MAI-UI-8B", "16-bit", 133),
    ("a100-80", "MAI-UI-8B", "16-bit", 400),
    ("a100-80", "MAI-UI-32B", "16-bit", 35),
    ("h200", "MAI-UI-32B", "16-bit", 264),
]
#: What does not fit. 4-bit weights would on some, but nobody published a 4-bit checkpoint of MAI-UI.
REFUSED = [
    *((name, "MAI-UI-32B") for name in ("t4", "l4", "a10g", "rtx-3060", "rtx-3090", "rtx-4090", "rtx-5090", "a100-40")),
    ("rtx-3060", "MAI-UI-8B"),
]


@pytest.mark.parametrize(("name", "model", "precision", "thousands"), TABLE)
def test_the_kv_cache_is_what_the_table_says(name: str, model: str, precision: str, thousands: int) -> None:
    made = plan(name, model)
    assert made.precision == precision
    # The table rounds memory to whole GiB and tokens to thousands: on small caches that is more than 5 %.
    assert made.budget.kv_tokens == pytest.approx(thousands * 1000, rel=0.05, abs=600)


@pytest.mark.parametrize(("name", "model"), REFUSED)
def test_what_does_not_fit_is_refused_with_numbers_and_ways_out(name: str, model: str) -> None:
    with pytest.raises(CannotPlanError) as refusal:
        plan(name, model)
    assert model in refusal.value.what
    assert "GiB a card" in refusal.value.what
    for way in ("--model MAI-UI-", "4-bit checkpoint", "more cards", "--engine literal", "--endpoint"):
        assert way in refusal.value.remedy


def planned() -> list[tuple[str, str]]:
    return [(name, model) for name in TABLE_CARDS for model in MODELS if (name, model) not in REFUSED]


@pytest.mark.parametrize(("name", "model"), planned())
def test_a_plan_fits_together(name: str, model: str) -> None:
    made = plan(name, model)
    settings = made.settings
    assert isinstance(settings.max_model_len, int)
    assert settings.images is not None
    assert settings.longest_edge is not None
    assert made.context == settings.max_model_len <= made.budget.longest_context
    assert made.context in CONTEXT_STEPS
    tokens = made.model.image_tokens(1920, 1080, settings.longest_edge)
    assert tokens == 2040, "1080p stays whole on every card"
    assert settings.images * tokens + TEXT_TOKENS <= made.context
    assert settings.longest_edge >= 2_097_152
    assert made.budget.used + made.budget.kv <= made.budget.total
    assert set(made.settings.given()) == set(made.reasons), "every setting has its reason"
    assert all(reason.text and reason.source for reason in made.reasons.values())


class TestDetailsOfTheTable:
    def test_t4(self) -> None:
        made = plan("t4", "MAI-UI-2B")
        settings = made.settings
        assert settings.dtype == "half"
        assert (settings.max_model_len, settings.max_num_seqs, settings.max_num_batched_tokens) == (12_288, 2, 2048)
        assert settings.gpu_memory_utilization == 0.90
        assert settings.performance_mode is None, "nothing was seen to help below compute capability 8.0"
        assert not settings.enforce_eager, "graphs on; a repair takes them away"
        assert any("36802" in text for text in made.warnings)
        eight = plan("t4", "MAI-UI-8B").settings
        assert (eight.quantization, eight.images, eight.max_model_len) == ("fp8_per_tensor", 2, 8192)
        assert eight.max_num_seqs == 1
        assert "Only 2 of the 3 screenshots that MAI-UI-8B is used to fit." in plan("t4", "MAI-UI-8B").warnings

    @pytest.mark.parametrize(
        ("name", "share"),
        [("rtx-3060", 0.88), ("rtx-3090", 0.88), ("rtx-4090", 0.88), ("rtx-5090", 0.88), ("h100", 0.92), ("l4", 0.92)],
    )
    def test_a_card_that_drives_a_display_keeps_room_for_it(self, name: str, share: float) -> None:
        assert plan(name, "MAI-UI-2B").settings.gpu_memory_utilization == share

    @pytest.mark.parametrize(
        ("name", "edge", "batched"),
        [("t4", 2_097_152, 2048), ("l4", 4_194_304, 4096), ("rtx-4090", 6_553_600, 4096), ("h100", 8_388_608, 8192),
         ("b200", 8_388_608, 16_384)],
    )  # fmt: skip
    def test_pixels_and_prefill_grow_with_memory(self, name: str, edge: int, batched: int) -> None:
        settings = plan(name, "MAI-UI-2B").settings
        assert (settings.longest_edge, settings.max_num_batched_tokens) == (edge, batched)

    @pytest.mark.parametrize(
        ("name", "model", "method"),
        [
            ("l4", "MAI-UI-8B", "fp8_per_channel"),
            ("a10g", "MAI-UI-8B", "fp8_per_tensor"),
            ("l40s", "MAI-UI-32B", "fp8_per_channel"),
        ],
    )
    def test_8_bit_weights_are_computed_as_the_card_can(self, name: str, model: str, method: str) -> None:
        found = flags(plan(name, model))
        assert found["--quantization"] == method
        assert found["--quantization-config"] == {"ignore": ["visual.*"]}, "the tower stays in 16 bits"

    @pytest.mark.parametrize("name", ["a100-40", "rtx-3060"])
    def test_cards_from_8_0_up_choose_bfloat16_by_themselves(self, name: str) -> None:
        settings = plan(name, "MAI-UI-2B").settings
        assert settings.dtype is None
        assert (settings.performance_mode, settings.max_cudagraph_capture_size) == ("interactivity", 8)

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("t4", "TRITON"),
            ("h100", "FLASH_ATTN"),
            ("b200", "FLASHINFER"),
            ("rtx-5090", "FLASH_ATTN"),
            ("rtx-5090", "minutes longer"),
            ("b200", "download-kernels"),
        ],
    )
    def test_notes_tell_what_vllm_will_choose_and_that_a_first_start_takes_long(self, name: str, told: str) -> None:
        assert any(told in note for note in plan(name, "MAI-UI-2B").notes)


@pytest.mark.parametrize(
    ("name", "own", "kernels"),
    [
        ("l40s", {"kv_cache_dtype": "fp8"}, "FLASHINFER"),
        ("a100-80", {"kv_cache_dtype": "fp8_e4m3"}, "FLASHINFER"),
        ("rtx-5090", {"kv_cache_dtype": "fp8"}, "FLASHINFER"),
        ("h100", {"kv_cache_dtype": "fp8"}, "FLASH_ATTN"),
        ("a100-80", {"dtype": "float32"}, "TRITON_ATTN"),
        ("h100", {"kv_cache_dtype": "int8_per_token_head"}, "TRITON_ATTN"),
    ],
)
def test_the_kernels_follow_the_formats(name: str, own: dict[str, Any], kernels: str) -> None:
    assert f"vLLM will choose {kernels} for attention by itself." in plan(name, overrides=own).notes


@pytest.mark.parametrize("name", ["v100", "p100", "gtx-1080-ti"])
def test_cards_that_the_wheel_was_not_built_for_are_refused(name: str) -> None:
    with pytest.raises(CannotPlanError, match=r"compute capability is [67]\.\d.*start at 7\.5") as refusal:
        plan(name, "MAI-UI-2B")
    for way in ("llama.cpp", "--engine literal", "--endpoint"):
        assert way in refusal.value.remedy


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("t4", "MAI-UI-2B"),
        ("rtx-3060", "MAI-UI-2B"),
        ("l4", "MAI-UI-8B"),
        ("rtx-4090", "MAI-UI-8B"),
        ("h100", "MAI-UI-8B"),
    ],
)
def test_without_a_name_the_largest_model_that_fits_well_is_chosen(name: str, model: str) -> None:
    made = plan(name, None)
    assert made.model.name == model
    assert made.notes[0] == f"{model} was chosen by memory; another is named with --model."


def test_a_wish_for_few_screenshots_does_not_choose_the_small_model() -> None:
    assert plan("h100", None, overrides={"images": 1}).model.name == "MAI-UI-8B"
    assert plan("h100", None, "memory-constrained").model.name == "MAI-UI-8B"


class TestFreeMemory:
    """vLLM refuses to start when it finds less free memory than it is told to use."""

    @pytest.mark.parametrize(
        ("gib", "free", "share"),
        [(24, 24, 0.92), (24, 20.3, 0.83), (24, 20.4, 0.83), (24, 12.3, 0.5), (80, 10.0, 0.12), (24, 0.2, 0.05)],
    )
    def test_the_share_is_what_is_free_less_a_margin_rounded_down(self, gib: float, free: float, share: float) -> None:
        gpu = card(gib, free)
        found = Group((gpu,)).free_share
        assert found is not None
        assert min(0.92, found) == share
        assert found * gib <= free or share == 0.05

    def test_other_programs_bound_a_plan_and_it_says_so(self) -> None:
        made = plan(machine(card(80, 40.0)), "MAI-UI-8B")
        assert made.settings.gpu_memory_utilization == 0.49
        assert "Other programs use the card: only 49% of its memory is asked for." in made.warnings
        assert made.reasons["gpu_memory_utilization"].source == "free memory, measured now"
        assert plan(machine(card(80, 79.5))).settings.gpu_memory_utilization == 0.92
        assert plan(machine(card(80, 79.5, display=True))).settings.gpu_memory_utilization == 0.88
        with pytest.raises(CannotPlanError, match=r"80\.0 GiB, 3\.0 GiB of them free now"):
            plan(machine(card(80, 3.0)), "MAI-UI-2B")

    def test_of_cards_that_are_alike_the_one_with_the_most_room_serves(self) -> None:
        cards = (card(80, 0.0, index=0), card(80, 20.0, index=1), card(80, 79.0, index=2))
        assert plan(machine(*cards), "MAI-UI-2B").gpus == (cards[2],)

    def test_a_display_card_serves_only_where_the_others_have_less_room(self) -> None:
        display, headless = card(24, 23.0, index=0, display=True), card(24, 23.5, index=1)
        assert plan(machine(display, headless), "MAI-UI-2B").gpus == (headless,)
        busy = card(24, 5.0, index=1)
        assert plan(machine(display, busy), "MAI-UI-2B").gpus == (display,)

    def test_a_persons_share_is_kept_and_what_will_happen_is_said(self) -> None:
        made = plan(machine(card(80, 40.0)), "MAI-UI-8B", overrides={"gpu_memory_utilization": 0.9})
        assert made.settings.gpu_memory_utilization == 0.9
        assert any("more than is free now (49%)" in text for text in made.warnings)


@pytest.mark.parametrize(("model", "context"), [("Qwen2.5-VL-7B-Instruct", 128_000), ("Qwen3-VL-8B-Instruct", 131_072)])
def test_a_large_card_gives_the_context_that_the_model_has(model: str, context: int) -> None:
    assert plan("h200", model).context == context


def test_a_quantised_repository_is_served_as_it_is() -> None:
    made = plan("l40s", "Qwen/Qwen2.5-VL-32B-Instruct-AWQ")
    assert (made.precision, made.settings.quantization) == ("w4", None)
    assert "--quantization" not in flags(made)


def test_published_4_bit_checkpoints_are_used_where_16_and_8_bits_do_not_fit() -> None:
    made = plan("rtx-3060", "Qwen2.5-VL-7B-Instruct")
    assert made.precision == "w4"
    assert made.model.source == "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"
    assert made.settings.quantization is None, "vLLM recognises it by its config"
    assert command(made).model == "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"


def test_the_kv_cache_gives_up_bits_before_a_request_gives_up_screenshots() -> None:
    made = plan("l4*2", "MAI-UI-32B")
    assert made.settings.kv_cache_dtype == "fp8"
    assert (made.settings.images or 0) >= 3
    older = plan("a10g*2", "MAI-UI-32B")  # has no fp8 cache
    assert older.settings.kv_cache_dtype is None
    assert plan("l40s", "MAI-UI-8B").settings.kv_cache_dtype is None, "only where it is needed"
    own = plan("l4*2", "MAI-UI-32B", overrides={"kv_cache_dtype": "auto"})
    assert (own.settings.kv_cache_dtype, own.settings.images) == ("auto", 1)


@pytest.mark.parametrize(
    ("where", "model", "source"),
    [
        ("l40s", "Qwen3-VL-30B-A3B-Instruct", "Qwen/Qwen3-VL-30B-A3B-Instruct-FP8"),
        ("l4", "Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct-FP8"),
        ("a100-40", "Qwen3-VL-30B-A3B-Instruct", "Qwen/Qwen3-VL-30B-A3B-Instruct-FP8"),
        ("t4", "Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"),  # fp8 in blocks needs a newer card
        ("l4", "MAI-UI-8B", "Tongyi-MAI/MAI-UI-8B"),  # nobody published one
    ],
)
def test_published_8_bit_weights_are_taken_before_16_bits_are_downloaded_to_be_made_smaller(
    where: str, model: str, source: str
) -> None:
    made = plan(where, model)
    assert (made.precision, made.model.source, made.model.name) == ("fp8", source, model)
    published = source.endswith("-FP8")
    assert ("--quantization" in flags(made)) == (not published)
    gib = made.model.weight_bytes("fp8" if published else "16-bit") / GIB
    assert any(f"({gib:.1f} GiB) are downloaded" in note for note in made.notes)


#: BenchmarkOptions for less memory, and for more; none of them is a wish for a larger model.
WISHES: list[dict[str, Any]] = [
    {"max_model_len": 8192}, {"max_model_len": "auto"}, {"images": 1}, {"longest_edge": 1_003_520},
    {"gpu_memory_utilization": 0.95}, {"gpu_memory_utilization": 0.5}, {"kv_cache_dtype": "fp8"}, {"max_num_seqs": 1},
    {"quantization": "fp8_per_tensor"}, {"max_num_batched_tokens": 1024}, {"enforce_eager": True},
    {"kv_cache_memory_bytes": 1 << 30}, {"cpu_offload_gb": 8.0}, {"tensor_parallel_size": 1},
]  # fmt: skip


@pytest.mark.parametrize("name", [*TABLE_CARDS, "rtx-4060", "t4*2", "rtx-3060*2"])
def test_neither_a_preset_nor_a_setting_leads_to_a_larger_model(name: str) -> None:
    chosen = plan(name, None).model.shape.parameters
    goals = [*((preset, {}) for preset in PRESETS if preset != "reasoning"), *((None, wish) for wish in WISHES)]
    for preset, wish in goals:
        try:
            made = plan(name, None, preset, overrides=wish)
        except CannotPlanError:
            continue
        assert made.model.shape.parameters <= chosen, (preset, wish)


def test_long_context_on_a_t4_is_long() -> None:
    """2B in 8 bits, 112 KiB a token: (0.95 x 14.6 - 2.65 - 0.4 - 0.6 - 0.3) GiB hold some 92,900 tokens."""
    made = plan("t4", None, "long-context")
    assert made.model.name == "MAI-UI-2B"
    assert made.context == pytest.approx(92_900, rel=0.002)
