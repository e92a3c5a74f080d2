"""The memory of a card is reckoned as vLLM reckons it, and comes out as vLLM prints it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning import GIB, TABLE_CARDS, find_model, plan

from serverctl.diagnose.stages import StartReport, advance, parse_line
from serverctl.hardware.catalogue import imagine
from serverctl.models.model import Precision
from serverctl.models.shape import read_shape
from serverctl.plan.memory import CPU_BLOCK, Budget, Measured, card_budget, cpu_budget
from serverctl.plan.settings import Settings
from serverctl.planning import load_tables

SEEDS = load_tables(()).seeds

LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"


def test_the_guides_concurrency_follows_from_the_config_alone() -> None:
    """Logged on Qwen3-VL-2B-Thinking: 37.15 GiB of KV cache, 8.49 requests of 40,960 tokens."""
    token = find_model("Qwen3-VL-2B-Thinking").shape.text.kv_bytes_per_token()
    budget = Budget(48 * GIB, 46 * GIB, 4 * GIB, 0, 0, 0, int(37.15 * GIB), token, 16)
    assert f"{budget.concurrency(40_960):.2f}" == "8.49"
    assert 40_960 * token / GIB == 4.375
    assert budget.kv_tokens == 347_808


def report(name: str) -> StartReport:
    found = StartReport()
    for line in (LOGS / name).read_text(encoding="utf-8").splitlines():
        found = advance(found, parse_line(line))
    return found


# Real starts of a tiny model on the processor: the log, bytes given to the KV cache, bytes of a token.
STARTS = [
    ("healthy-start.log", 268_435_456, 2048),
    ("healthy-start-data-parallel-2.log", 67_108_864, 2048),
    ("healthy-start-max-len-auto.log", 67_108_864, 2048),
    # 2 (keys and values) x 2 layers x 2 heads x 64 x 2 bytes
    ("cpu-good-start.log", 536_870_912, 1024),
]


@pytest.mark.parametrize(("log", "size", "token"), STARTS)
def test_size_and_concurrency_are_what_real_servers_printed(log: str, size: int, token: int) -> None:
    printed = report(log)
    budget = Budget(0, 0, 0, 0, 0, 0, size, token, CPU_BLOCK)
    assert budget.kv_tokens == printed.kv_tokens
    assert printed.max_model_len is not None
    assert round(budget.concurrency(printed.max_model_len), 2) == printed.concurrency


def test_a_card_is_planned_as_a_real_one_measured_itself() -> None:
    """An H200, with the flags of the plan: within half a percent."""
    printed = report("good-start-h200.log")
    planned = plan("h200", "MAI-UI-8B").budget
    assert printed.kv_tokens and printed.weights
    assert planned.kv_tokens == pytest.approx(printed.kv_tokens, rel=0.005)
    assert planned.weights == pytest.approx(printed.weights, rel=0.03), "vLLM counts buffers, too"


def test_a_hybrid_model_is_reckoned_as_a_real_server_printed_it() -> None:
    """Printed by vLLM 0.33 for this config with 1 GiB: blocks of 256 tokens, four groups, 441,505 tokens, 53.89."""
    text = {
        "model_type": "qwen3_5_text", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 640, "vocab_size": 1892,
        "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64, "linear_value_head_dim": 64,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
    }  # fmt: skip
    shape = read_shape({"model_type": "qwen3_5", "tie_word_embeddings": True, "text_config": text}, "a tiny hybrid")
    model = replace(find_model("Qwen3.5-0.8B"), shape=shape)
    settings = Settings(kv_cache_memory_bytes=GIB, dtype="bfloat16")
    budget = cpu_budget(model, settings, 8 * GIB, load_tables(()).processor)
    assert (budget.block, budget.states) == (256, 6)
    assert round(budget.concurrency(8192), 2) == 53.89
    assert budget.printed_tokens(8192) == 441_505


def test_the_longest_context_is_the_one_vllm_fitted_and_the_one_it_named() -> None:
    """vLLM holds one block back: "Auto-fit max_model_len: ... to 32640", "estimated maximum model length is 32640"."""
    budget = Budget(0, 0, 0, 0, 0, 0, 67_108_864, 2048, CPU_BLOCK)
    assert budget.longest_context == 32_640
    text = (LOGS / "healthy-start-max-len-auto.log").read_text(encoding="utf-8")
    assert "Auto-fit max_model_len: reduced from 262144 to 32640 to fit" in text
    short = (LOGS / "kv-too-short.log").read_text(encoding="utf-8")
    assert "the estimated maximum model length is 32640" in short


@given(size=st.integers(-(2**40), 2**40), token=st.integers(1, 2**20), block=st.sampled_from([16, 128]))
def test_a_kv_cache_holds_whole_blocks_and_never_less_than_nothing(size: int, token: int, block: int) -> None:
    budget = Budget(0, 0, 0, 0, 0, 0, size, token, block)
    tokens = budget.kv_tokens
    assert tokens >= 0
    assert tokens % block == 0
    assert tokens * token <= max(0, size) < (tokens + block) * token or size < 0
    assert budget.longest_context <= max(0, tokens - block)
    assert budget.concurrency(0) >= 0


def formula(model_name: str, precision: Precision, total: float, share: float) -> int:
    """vLLM's own calculation with the seeds of the planning table, in tokens."""
    model = find_model(model_name)
    seed = {"MAI-UI-2B": 0.6, "MAI-UI-8B": 0.9, "MAI-UI-32B": 1.3}[model_name]
    left = math.ceil(total * share) - model.weight_bytes(precision) - round((0.4 + 0.3 + seed) * GIB)
    return max(0, left // (model.shape.text.kv_bytes_per_token() * 16) * 16)


@pytest.mark.parametrize("name", TABLE_CARDS[:-1])
@pytest.mark.parametrize("model", ["MAI-UI-2B", "MAI-UI-8B", "MAI-UI-32B"])
@pytest.mark.parametrize("precision", ["16-bit", "fp8", "w4"])
def test_the_budget_of_a_card_is_the_formula(name: str, model: str, precision: Precision) -> None:
    [gpu] = imagine(name).gpus
    settings = Settings(gpu_memory_utilization=0.9, longest_edge=4_194_304, max_num_batched_tokens=4096, max_num_seqs=2)
    budget = card_budget(find_model(model), precision, settings, gpu.total_bytes, SEEDS)
    assert budget.kv_tokens == formula(model, precision, gpu.total_bytes, 0.9)
    assert budget.requested == budget.used + budget.kv


def test_what_a_real_start_took_replaces_the_seeds() -> None:
    model = find_model("MAI-UI-8B")
    settings = Settings(gpu_memory_utilization=0.9)
    measured = Measured(weights=17 * GIB, context=0, activations=2 * GIB, graphs=GIB)
    budget = card_budget(model, "16-bit", settings, 40 * GIB, SEEDS, measured)
    assert (budget.weights, budget.context, budget.activations, budget.graphs) == (17 * GIB, 0, 2 * GIB, GIB)
    assert budget.kv == 36 * GIB - 20 * GIB
    assert budget.measured
    partly = card_budget(model, "16-bit", settings, 40 * GIB, SEEDS, Measured(graphs=GIB))
    assert partly.weights == model.weight_bytes("16-bit")


def test_cards_that_share_a_model_share_weights_and_heads_but_each_has_the_whole_tower() -> None:
    model = find_model("MAI-UI-32B")
    one = card_budget(model, "16-bit", Settings(), 80 * GIB, SEEDS)
    four = card_budget(model, "16-bit", Settings(tensor_parallel_size=4, mm_encoder_tp_mode="data"), 80 * GIB, SEEDS)
    assert four.token == one.token // 4
    assert four.weights == (one.weights - model.vision_bytes) // 4 + model.vision_bytes
    assert four.activations < one.activations, "a smaller part of a model needs less"
    stages = card_budget(model, "16-bit", Settings(pipeline_parallel_size=4), 80 * GIB, SEEDS)
    assert (stages.weights, stages.token) == (one.weights // 4, one.token // 4)


def test_weights_in_main_memory_leave_room_on_every_card_and_never_more_than_all_of_it() -> None:
    model = find_model("MAI-UI-8B")
    one = card_budget(model, "16-bit", Settings(cpu_offload_gb=4), 24 * GIB, SEEDS)
    two = card_budget(model, "16-bit", Settings(cpu_offload_gb=4, tensor_parallel_size=2), 24 * GIB, SEEDS)
    assert one.weights == model.weight_bytes("16-bit") - 4 * GIB
    assert two.weights == model.weight_bytes("16-bit") // 2 - 4 * GIB
    whole = card_budget(model, "16-bit", Settings(cpu_offload_gb=1000), 24 * GIB, SEEDS)
    # The vision tower and twice 151,936 x 4,096 embeddings stay on the card: 1.07 + 2.32 GiB of 16.33.
    assert whole.weights == model.vision_bytes + 2 * 2 * 151_936 * 4096
    assert whole.offloaded == model.weight_bytes("16-bit") - whole.weights


def test_float32_doubles_weights_activations_and_kv_cache() -> None:
    """2B: 2,127,532,032 parameters x 4 bytes; 2 x 28 layers x 8 heads x 128 x 4 bytes = 224 KiB a token."""
    model = find_model("MAI-UI-2B")
    wide = card_budget(model, "16-bit", Settings(dtype="float32"), 40 * GIB, SEEDS)
    assert (wide.weights, wide.token) == (2_127_532_032 * 4, 224 * 1024)
    assert wide.activations == 2 * card_budget(model, "16-bit", Settings(), 40 * GIB, SEEDS).activations
    assert (
        card_budget(model, "16-bit", Settings(dtype="float32", kv_cache_dtype="fp8"), 40 * GIB, SEEDS).token
        == 56 * 1024
    )


def test_a_pixel_budget_bounds_what_profiling_takes_and_eager_mode_has_no_graphs() -> None:
    """The largest image is what vLLM measures: about 2 GiB at 16.7 Mpx on 8B, about 0.25 GiB at 2 Mpx."""
    settings = Settings(max_num_batched_tokens=2048, max_num_seqs=1)
    large, small = (
        card_budget(find_model("MAI-UI-8B"), "16-bit", replace(settings, longest_edge=edge), 80 * GIB, SEEDS)
        for edge in (16_777_216, 2_097_152)
    )
    assert 1.5 < large.activations / GIB < 2.5
    assert small.activations == round(0.9 * GIB), "the seed: nothing measured says that less is enough"
    assert round(large.graphs / GIB, 2) == 0.3
    eager = Settings(enforce_eager=True)
    assert card_budget(find_model("MAI-UI-8B"), "16-bit", eager, 80 * GIB, SEEDS, Measured(graphs=GIB)).graphs == 0


@pytest.mark.parametrize(
    ("gib", "mode", "sequences", "batched"),
    [(24, None, 256, 2048), (80, None, 1024, 8192), (180, None, 1024, 16_384), (80, "throughput", 2048, 16_384)],
)
def test_what_is_left_to_vllm_is_reckoned_with_its_own_defaults(
    gib: int, mode: str | None, sequences: int, batched: int
) -> None:
    model = find_model("MAI-UI-32B")
    left = Settings(performance_mode=mode, longest_edge=65_536)
    named = replace(left, max_num_seqs=sequences, max_num_batched_tokens=batched)
    assert card_budget(model, "fp8", left, gib * GIB, SEEDS) == card_budget(model, "fp8", named, gib * GIB, SEEDS)


@given(
    share=st.floats(0.05, 0.99),
    gib=st.floats(4, 200),
    batched=st.integers(256, 32_768),
    sequences=st.integers(1, 1024),
    edge=st.integers(65_536, 16_777_216),
)
def test_more_of_anything_never_leaves_more_for_the_kv_cache(
    share: float, gib: float, batched: int, sequences: int, edge: int
) -> None:
    model = find_model("MAI-UI-8B")
    total = round(gib * GIB)
    base = Settings(
        gpu_memory_utilization=share, max_num_batched_tokens=batched, max_num_seqs=sequences, longest_edge=edge
    )
    kv = card_budget(model, "16-bit", base, total, SEEDS).kv
    for more in (
        replace(base, max_num_batched_tokens=batched * 2),
        replace(base, max_num_seqs=sequences * 2),
        replace(base, longest_edge=min(16_777_216, edge * 2)),
        replace(base, gpu_memory_utilization=share / 2),
    ):
        assert card_budget(model, "16-bit", more, total, SEEDS).kv <= kv
    assert card_budget(model, "fp8", base, total, SEEDS).kv > kv
