"""Room for answers with thoughts, slots that the KV cache holds, and what each precision of the weights gives."""

from typing import Any

import pytest
from planning import CPU, GIB, PRESETS, plan

from serverctl.plan.speed import speed_of
from serverctl.planning import speed_table


class TestThoughts:
    """The room for an answer is data of the model and part of every preset."""

    @pytest.mark.parametrize("preset", [name for name in PRESETS if name != "memory-constrained"])
    @pytest.mark.parametrize(
        "model", ["Qwen3-VL-2B-Thinking", "Qwen3-VL-8B-Thinking", "Holo2-8B", "GLM-4.1V-9B-Thinking"]
    )
    def test_every_preset_leaves_room_for_them_beside_the_screenshots(self, preset: str, model: str) -> None:
        made = plan("l40s", model, preset)
        images = made.settings.images or 0
        tokens = made.model.image_tokens(1920, 1080, made.settings.longest_edge)
        assert images >= made.model.history_images
        assert made.context - images * tokens >= 2048 + made.model.answer_tokens[1]
        assert not any("thinks first" in text for text in made.warnings)

    def test_the_preset_for_reasoning_leaves_room_for_the_longest_that_were_seen(self) -> None:
        """L40S, 2B: 5 x 2,040 + 2,048 + 36,864 = 49,112 tokens a request of 332,624, so 6 at a time."""
        made, balanced = (plan("l40s", "Qwen3-VL-2B-Thinking", name) for name in ("reasoning", "balanced"))
        assert made.budget.kv_tokens == pytest.approx(332_624, abs=16)
        assert made.settings.max_num_seqs == 332_624 // (5 * 2040 + 2048 + 36_864) == 6
        assert made.context - (made.settings.images or 0) * 2040 >= 2048 + 36_864
        assert made.context > balanced.context

    def test_throughput_has_slots_for_whole_thoughts(self) -> None:
        """332,624 / (2,040 + 1,024 + 32,768 - 2,048) = 9.8; the same model without thoughts has 108."""
        made = plan("l40s", "Qwen3-VL-2B-Thinking", "throughput")
        assert made.settings.max_num_seqs == 332_624 // (2040 + 1024 + 32_768 - 2048) == 9
        assert plan("l40s", "Qwen3-VL-2B-Instruct", "throughput").settings.max_num_seqs == 108

    def test_screenshots_are_given_up_before_thoughts_and_too_little_room_is_told(self) -> None:
        small = plan("rtx-3060", "Qwen3-VL-2B-Thinking")
        room = small.context - (small.settings.images or 0) * 2040 - 2048
        assert room >= 10_000
        tight = plan("t4", "Qwen3-VL-8B-Thinking")
        assert any("10,000 to 32,768 tokens an answer" in text for text in tight.warnings)

    def test_a_longer_usual_answer_makes_a_longer_step(self) -> None:
        thinks, not_ = (
            speed_of(plan("l40s", f"Qwen3-VL-2B-{kind}"), speed_table(), (1920, 1080))
            for kind in ("Thinking", "Instruct")
        )
        assert (thinks.request_tokens - not_.request_tokens, thinks.answer_tokens) == (10_000 - 128, 10_000)
        assert thinks.step_s is not None
        assert not_.step_s is not None
        assert thinks.step_s.low > 20 * not_.step_s.low


class TestSlots:
    """The user's slots are held against the KV cache, and CUDA graphs follow them."""

    @pytest.mark.parametrize(
        ("where", "model", "own", "slots"),
        [
            ("l40s", "Qwen3-VL-2B-Thinking", {"max_num_seqs": 96, "max_model_len": 40_960}, 96),
            ("t4", "MAI-UI-8B", {"max_num_seqs": 32}, 32),
            ("h100", "MAI-UI-8B", {"max_num_seqs": 512}, 512),
        ],
    )
    def test_more_than_the_cache_holds_are_kept_and_told(
        self, where: str, model: str, own: dict[str, Any], slots: int
    ) -> None:
        made = plan(where, model, overrides=own)
        assert made.settings.max_num_seqs == slots
        told = [text for text in made.warnings if f"{slots} slots are more than the KV cache holds" in text]
        assert f"{made.max_concurrency:.2f} requests of the whole" in told[0]

    @pytest.mark.parametrize("slots", [1, 6])
    def test_as_many_as_it_holds_are_not_remarked(self, slots: int) -> None:
        made = plan("l40s", "MAI-UI-8B", overrides={"max_num_seqs": slots})
        assert not any("slots" in text for text in made.warnings)

    @pytest.mark.parametrize(
        ("gib", "said"),
        [(37.15, "8.49 requests of the whole context (40,960 tokens), 15 of"), (3.0, "It holds 28,080 tokens")],
    )
    def test_all_numbers_are_of_the_cache_to_predict_for(self, gib: float, said: str) -> None:
        own = {"max_num_seqs": 32, "max_model_len": 40_960}
        made = plan("l40s", "Qwen3-VL-2B-Thinking", overrides=own, kv_bytes=int(gib * GIB))
        assert any(said in text for text in made.warnings)
        assert made.settings.kv_cache_memory_bytes is None
        assert plan("cpu", "MAI-UI-2B", vllm=CPU, kv_bytes=1 << 20).warnings[-1].startswith("A context of 16,384")
        assert any("vLLM will not start" in text for text in plan("gaudi-3", kv_bytes=1 << 20).warnings)

    @pytest.mark.parametrize(
        ("preset", "slots", "graphs"),
        [("latency", None, 8), ("latency", 8, 8), ("latency", 9, 16), ("latency", 96, 96), ("latency", 300, 304),
         ("latency", 2000, 512), ("memory-constrained", None, 4), ("memory-constrained", 12, 16),
         ("balanced", 96, None)],
    )  # fmt: skip
    def test_cuda_graphs_follow_the_slots(self, preset: str, slots: int | None, graphs: int | None) -> None:
        own = {} if slots is None else {"max_num_seqs": slots}
        made = plan("h100", "MAI-UI-2B", preset, overrides=own)
        assert made.settings.max_cudagraph_capture_size == graphs
        assert not any("CUDA graphs end" in text for text in made.warnings)

    def test_a_persons_own_graphs_are_kept_and_told(self) -> None:
        own = {"max_num_seqs": 96, "max_cudagraph_capture_size": 8}
        made = plan("h100", "MAI-UI-2B", overrides=own)
        assert made.settings.max_cudagraph_capture_size == 8
        assert any("CUDA graphs end at batches of 8" in text for text in made.warnings)


class TestWhatEachChoiceGives:
    def test_an_l4_can_serve_8b_in_16_bits_and_says_so(self) -> None:
        """0.92 x 22 - 16.33 - 0.9 - 0.3 - 0.4 = 2.31 GiB / 144 KiB = 16,816 tokens."""
        made = plan("l4", "MAI-UI-8B")
        told = next(text for text in made.notes if "--set quantization=none" in text)
        assert "a context of 12,288 tokens with 4 screenshots (16,816 in the KV cache)" in told
        other = plan("l4", "MAI-UI-8B", overrides={"quantization": "none"})
        assert (other.precision, other.context, other.settings.images) == ("16-bit", 12_288, 4)
        assert other.budget.kv_tokens == 16_816

    def test_8_bits_are_offered_where_they_give_more(self) -> None:
        made = plan("rtx-3090", "MAI-UI-8B")
        assert any("--set quantization=fp8_per_tensor) fit, too: a context of 32,768" in text for text in made.notes)
        assert not any("fit, too" in text for text in plan("h100", "MAI-UI-8B").notes)

    def test_long_context_keeps_16_bits_where_they_hold_the_whole(self) -> None:
        """L40S: 0.95 x 44.4 - 3.96 - 1.3 = 36.9 GiB hold 345,000 tokens of 2B at 112 KiB."""
        made = plan("l40s", "MAI-UI-2B", "long-context")
        assert (made.context, made.precision, made.settings.kv_cache_dtype) == (262_144, "16-bit", None)
