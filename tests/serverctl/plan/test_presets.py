"""Each preset does what configs/presets says of it, as an automatic choice that a person's own values override."""

from typing import Any

import pytest
from planning import PRESETS, card, env, flags, machine, plan

from foundation.configs import load_config
from foundation.errors import MaiError, UsageError
from serverctl.planning import load_presets


def test_every_preset_is_known_and_says_what_it_is_for() -> None:
    assert tuple(load_presets().by_name) == PRESETS
    for name in PRESETS:
        assert load_presets().get(name).about
    assert load_presets().get(None).name == load_config("presets/presets.toml")["default"] == "latency"


@pytest.mark.parametrize("name", ["", "fastest", "default", "LATENCY"])
def test_an_unknown_preset_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load_presets().get(name)
    assert "memory-constrained" in refusal.value.remedy
    assert ("Did you mean latency?" in refusal.value.remedy) == (name == "LATENCY")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_presets_own_values_are_in_the_plan_and_are_automatic(preset: str) -> None:
    made = plan("h100", "MAI-UI-8B", preset)
    assert made.preset == preset
    for name, value in load_presets().get(preset).settings.items():
        assert made.settings.get(name) == value, name
        assert made.reasons[name].automatic


def test_throughput_uses_every_card_and_leaves_batches_to_vllm() -> None:
    made = plan("h100*8", "MAI-UI-8B", "throughput")
    assert len(made.replicas) == 8
    assert len({gpu.index for cards in made.replicas for gpu in cards}) == 8
    found = flags(made)
    assert found["--performance-mode"] == "throughput"
    for flag in ("--max-num-batched-tokens", "--data-parallel-size", "--enforce-eager"):
        assert flag not in found
    assert found["--gpu-memory-utilization"] == "0.92"
    assert any("8 independent servers" in note for note in made.notes)


@pytest.mark.parametrize(
    ("cards", "model", "precision", "servers"),
    [
        ("a100-80*8", "MAI-UI-32B", "16-bit", [2, 2, 2, 2]),  # alone, each would hold two requests
        ("l40s*8", "MAI-UI-32B", "16-bit", [2, 2, 2, 2]),
        ("rtx-3090*2", "MAI-UI-8B", "fp8", [1, 1]),  # PCIe: two that serve alone, not one that shares
        ("l4*8", "MAI-UI-32B", "fp8", [4, 4]),
        ("a100-80*8", "MAI-UI-8B", "16-bit", [1] * 8),
    ],
)
def test_throughput_serves_the_most_requests(cards: str, model: str, precision: str, servers: list[int]) -> None:
    made = plan(cards, model, "throughput")
    assert made.precision == precision
    assert [len(server) for server in made.replicas] == servers


def test_slots_are_left_to_vllm_from_its_own_least_on_and_a_server_of_many_agents_holds_four() -> None:
    assert plan("h200", "MAI-UI-8B", "throughput").settings.max_num_seqs is None, "256 requests fit"
    assert (plan("h100", "MAI-UI-2B", "throughput").settings.max_num_seqs or 0) < 256
    for gib, precision in ((25.0, "fp8"), (26.0, "16-bit")):  # 16 bits hold three requests, and four
        two = machine(card(gib, index=0), card(gib, index=1))
        assert plan(two, "MAI-UI-8B", "throughput").precision == precision


def test_balanced_leaves_vllms_defaults() -> None:
    found = flags(plan("h100*8", "MAI-UI-8B", "balanced"))
    for flag in ("--performance-mode", "--max-cudagraph-capture-size", "--tensor-parallel-size", "--enforce-eager"):
        assert flag not in found


def test_debug_starts_fast_on_one_card_and_says_much() -> None:
    made = plan("h100*4", "MAI-UI-8B", "debug")
    assert {"--enforce-eager", "--enable-log-requests"} <= flags(made).keys()
    assert (env(made)["VLLM_LOGGING_LEVEL"], len(made.gpus), made.budget.graphs) == ("DEBUG", 1, 0)


@pytest.mark.parametrize(("sm", "dtype"), [(80, None), (86, None), (89, "fp8"), (90, "fp8"), (120, "fp8")])
def test_an_8_bit_kv_cache_is_only_used_where_the_card_has_it(sm: int, dtype: str | None) -> None:
    assert plan(machine(card(22, sm=sm)), "MAI-UI-8B", "long-context").settings.kv_cache_dtype == dtype


@pytest.mark.parametrize(("card", "model"), [("l4", "MAI-UI-8B"), ("a10g", "MAI-UI-8B"), ("rtx-3090", "MAI-UI-8B")])
def test_long_context_is_longer_than_any_other_presets(card: str, model: str) -> None:
    longest = plan(card, model, "long-context").context
    for preset in ("latency", "balanced", "reasoning"):
        assert longest >= plan(card, model, preset).budget.longest_context


def test_long_context_takes_all_that_fits() -> None:
    made = plan("h100", "MAI-UI-8B", "long-context")
    found = flags(made)
    assert found["--max-model-len"] == "auto"
    assert "--kv-cache-dtype" not in found, "16 bits hold the whole: 54.9 GiB / 144 KiB = 400,000 tokens"
    assert plan("l4", "MAI-UI-8B", "long-context").settings.kv_cache_dtype == "fp8", "here they do not"
    assert found["--max-num-seqs"] == "2"
    assert found["--gpu-memory-utilization"] == "0.95", "a high share, not a low one"
    assert made.context == 262_144
    smaller = plan("rtx-3090", "MAI-UI-8B", "long-context")
    assert smaller.context == smaller.budget.longest_context
    assert smaller.context > plan("rtx-3090", "MAI-UI-8B").context
    assert smaller.settings.gpu_memory_utilization == 0.88, "no preset takes a display's share"


def test_memory_constrained_asks_for_little_of_everything() -> None:
    made = plan("t4", "MAI-UI-8B", "memory-constrained")
    found = flags(made)
    assert found["--limit-mm-per-prompt"] == {"image": 2, "video": 0}
    assert found["--mm-processor-kwargs"]["size"]["longest_edge"] == 2_097_152
    assert (found["--max-num-seqs"], found["--max-num-batched-tokens"]) == ("1", "2048")
    assert found["--max-model-len"] == "auto"
    assert made.precision == "fp8"
    assert plan("h100", "MAI-UI-8B", "memory-constrained").precision == "16-bit", "where they leave room"
    assert plan("t4", "MAI-UI-2B", "memory-constrained").settings.max_cudagraph_capture_size == 4
    assert plan("t4", "MAI-UI-2B", "latency").settings.max_cudagraph_capture_size is None, "no help below 8.0"
    tight = machine(card(15.2, free=12.65, sm=75))
    assert plan(tight, "MAI-UI-8B", "memory-constrained").settings.images == 1, "a screenshot before it gives up"
    published = plan("l40s*2", "Qwen2.5-VL-72B-Instruct", "memory-constrained")
    assert (published.precision, published.model.source) == ("w4", "Qwen/Qwen2.5-VL-72B-Instruct-AWQ")
    assert published.budget.kv_tokens > 100_000


@pytest.mark.parametrize(("where", "least", "most"), [("t4", 15, 30), ("h100", 100, 200)])
def test_throughput_has_no_more_slots_than_the_kv_cache_holds_requests(where: str, least: int, most: int) -> None:
    made = plan(where, "MAI-UI-2B" if where == "t4" else "MAI-UI-8B", "throughput")
    slots = made.settings.max_num_seqs
    assert slots is not None
    assert least < slots < most
    assert slots * 3064 <= made.budget.kv_tokens, "a screenshot of 2,040 tokens and 1,024 of text"
    own = plan(where, "MAI-UI-2B", "throughput", overrides={"max_num_seqs": 300})
    assert own.settings.max_num_seqs == 300


@pytest.mark.parametrize(
    ("model", "parser"), [("Qwen3-VL-8B-Thinking", "qwen3"), ("Holo2-8B", "holo2"), ("MAI-UI-8B", None)]
)
def test_models_known_to_think_have_their_parser_in_any_preset(model: str, parser: str | None) -> None:
    for preset in ("reasoning", "latency"):
        made = plan("h100", model, preset)
        assert made.settings.reasoning_parser == parser
        assert preset == "latency" or made.context >= 32_768
    own = {"reasoning_parser": "deepseek_r1"}
    plugin = ("--reasoning-parser-plugin", "mine.py")
    made = plan("h100", model, overrides=own, extra=plugin if parser is None else ())
    assert made.settings.reasoning_parser == "deepseek_r1"
    if parser is None:
        with pytest.raises(UsageError, match="has no thoughts to tell from its answer"):
            plan("h100", model, "latency", overrides=own)


def test_reasoning_that_has_no_room_is_refused_unless_the_person_fixes_the_context() -> None:
    small = machine(card(10.0, sm=86))
    with pytest.raises(MaiError):
        plan(small, "Qwen3-VL-4B-Thinking", "reasoning")
    made = plan(small, "Qwen3-VL-2B-Thinking", "reasoning", overrides={"max_model_len": 12_288})
    assert made.context == 12_288


OWN: list[dict[str, Any]] = [
    {"gpu_memory_utilization": 0.7},
    {"max_num_seqs": 3, "max_num_batched_tokens": 6000},
    {"images": 1, "longest_edge": 1_003_520},
    {"max_model_len": 9000},
    {"enforce_eager": False, "performance_mode": "balanced"},
    {"kv_cache_dtype": "auto", "quantization": "fp8_per_tensor"},
    {"max_cudagraph_capture_size": 32, "spec_tokens": 2},
]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("own", OWN, ids="+".join)
def test_a_persons_values_win_over_every_preset(preset: str, own: dict[str, Any]) -> None:
    made = plan("a100-80", "MAI-UI-8B", preset, overrides=own)
    for name, value in own.items():
        assert made.settings.get(name) == value
        assert made.reasons[name].automatic is False
        assert made.reasons[name].source == "you"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_persons_values_win_over_repairs_and_free_memory_and_repairs_over_presets(preset: str) -> None:
    own = {"gpu_memory_utilization": 0.9, "longest_edge": 4_000_000, "max_num_seqs": 3}
    adjusted = {"gpu_memory_utilization": 0.5, "longest_edge": 2_097_152, "max_num_seqs": 1, "enforce_eager": True}
    made = plan(machine(card(80, 50)), "MAI-UI-8B", preset, overrides=own, adjustments=adjusted)
    assert {name: made.settings.get(name) for name in own} == own
    assert made.settings.enforce_eager is True, "a repair of what is not theirs counts"
    assert made.reasons["enforce_eager"].source == "repair"
    repairs = {"max_num_seqs": 1, "max_model_len": 20_480, "performance_mode": None}
    because = {"max_num_seqs": "one request at a time"}
    made = plan("h100", "MAI-UI-8B", preset, adjustments=repairs, adjusted_because=because)
    assert {name: made.settings.get(name) for name in repairs} == repairs
    assert made.reasons["max_num_seqs"].text == "one request at a time"


def test_adjusted_weights_and_models_are_used() -> None:
    made = plan("h100", None, adjustments={"precision": "fp8"})
    assert (made.precision, made.model.name) == ("fp8", "MAI-UI-8B")
    assert plan("h100", None, adjustments={"model": "MAI-UI-2B"}).model.name == "MAI-UI-2B"


def test_a_repaired_context_is_believed_as_vllm_itself_named_it() -> None:
    small = machine(card(14.0, sm=86))
    longest = plan(small, "MAI-UI-8B", overrides={"max_model_len": 6144, "images": 1}).budget.longest_context
    wish = longest + 2048
    with pytest.raises(MaiError):
        plan(small, "MAI-UI-8B", overrides={"max_model_len": wish})
    assert plan(small, "MAI-UI-8B", adjustments={"max_model_len": wish}).context == wish


@pytest.mark.parametrize(
    ("gpu", "model", "images"),
    [
        ("t4", "Qwen3.5-4B", 20),
        ("l4", "Qwen3.5-4B", 20),
        ("rtx-4060", "Qwen3.5-0.8B", 20),
        ("t4", "Qwen3-VL-4B-Instruct", 5),
    ],
)
def test_where_the_cache_holds_them_the_context_is_long_enough_for_all_screenshots_of_the_models_own_client(
    gpu: str, model: str, images: int
) -> None:
    made = plan(gpu, model)
    assert made.settings.images == images == made.model.history_images
    assert made.context >= images * made.model.image_tokens(1920, 1080, made.settings.longest_edge) + 4096
    assert made.max_concurrency >= 1.2
    assert not any("screenshots that" in text for text in made.warnings)
