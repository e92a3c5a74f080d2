"""Decides the settings of one candidate plan on GPUs, for given cards, precision and number of images."""

import math
from dataclasses import replace

from serverctl.models.model import Model, Precision
from serverctl.plan.draft import (
    ANSWER_TOKENS,
    CONTEXT_STEPS,
    LEAST_TEXT_TOKENS,
    SCREENSHOTS_IN_BLOCKS,
    TEXT_TOKENS,
    Candidate,
    Draft,
    Layout,
)
from serverctl.plan.goal import CardLimits, Goal, PlanInputs
from serverctl.plan.memory import CUDA_BLOCK, Budget, card_budget, measurement_key
from serverctl.plan.settings import Settings

_SOURCE = "vLLM 0.33 by card: docs/serving.md"

#: The KV cache should hold a little more than one request of full length, so that a second one can start beside it.
_SLACK = 1.2


def compose(
    model: Model, precision: Precision, layout: Layout, images: int, inputs: PlanInputs, answer: int = ANSWER_TOKENS
) -> Candidate:
    """Return the candidate for one layout, with room for `images` screenshots and an answer of `answer` tokens."""
    thoughts = max(0, answer - ANSWER_TOKENS)  # tokens beyond an answer without thoughts
    preset, tables, smallest = inputs.preset, inputs.tables, layout.group.smallest
    limits = tables.limits_for(smallest)
    draft = Draft(inputs)
    if smallest.sm is not None and smallest.sm < preset.least_sm:
        draft.drop("performance_mode", "max_cudagraph_capture_size")
    if layout.group.display:
        draft.drop("gpu_memory_utilization")
    draft.drop("images")  # the preset's number is a maximum; this function decides how many fit
    _decide_formats(draft, precision, smallest.sm, model)
    draft.decide_model(model)
    _decide_parallel(draft, layout, model)
    _decide_utilization(draft, layout, limits, inputs)
    tokens = _decide_sizes(draft, model, limits, inputs.goal)
    settings = draft.settings()
    if not draft.has("max_num_seqs"):
        settings = replace(settings, max_num_seqs=limits.max_num_seqs)
    measured = tables.measured.get(measurement_key(inputs.vllm, smallest.name, model, precision, settings))

    def budgeted(settings: Settings) -> Budget:
        return card_budget(model, precision, settings, smallest.total_bytes, tables.seeds, measured)

    budget = budgeted(settings)
    if draft.bound_slots(budget, tokens + LEAST_TEXT_TOKENS + thoughts):
        budget = budgeted(draft.settings())
    needed = _needed(draft, images, tokens, thoughts)
    # At least as long as all wanted screenshots need: hybrid models keep many screenshots in little memory.
    image_context = 0 if draft.has("max_model_len") else math.ceil(needed / CUDA_BLOCK) * CUDA_BLOCK
    cap = max(limits.max_model_len + thoughts, preset.least_context, image_context)
    if isinstance(fixed := draft.values.get("max_model_len"), int):
        cap = min(cap, fixed)
    context = _decide_context(draft, model, budget, cap, image_context)
    if model.shape.vision is not None:
        most = preset.settings.get("images") or SCREENSHOTS_IN_BLOCKS * images
        _decide_images(draft, model, images, tokens, min(most, (context - TEXT_TOKENS - thoughts) // max(tokens, 1)))
    draft.decide(
        "max_num_seqs",
        max(1, min(limits.max_num_seqs, budget.held(needed))),
        f"requests of {needed:,} tokens that the KV cache holds, at most {limits.max_num_seqs} on this card; slots "
        "size buffers",
        limits.source,
    )
    return Candidate(model, precision, layout, draft.settings(), draft.reasons, budget, context, needed, cap)


def eight_bits(sm: int | None) -> str:
    """Return the method that makes 8-bit weights while loading on a card."""
    return "fp8_per_channel" if sm is None or sm >= 89 else "fp8_per_tensor"


def _decide_formats(draft: Draft, precision: Precision, sm: int | None, model: Model) -> None:
    if sm is not None and sm < 80:
        draft.decide("dtype", "half", "this card has no bfloat16 (it starts at compute capability 8.0)", _SOURCE)
    if precision == "fp8" and model.own_precision == "16-bit":
        native = sm is None or sm >= 89
        how = "this card computes in fp8" if native else "computed in 16 bits (Marlin)"
        why = f"8-bit weights, quantised while loading, for a longer context than 16 bits leave; {how}"
        draft.decide("quantization", eight_bits(sm), why, _SOURCE)
    if draft.preset.fp8_kv and sm is not None and sm >= 89:
        draft.decide("kv_cache_dtype", "fp8", "halves the KV cache of a token (SM 8.9 and up)", _SOURCE)


def _decide_parallel(draft: Draft, layout: Layout, model: Model) -> None:
    if layout.tensor_parallel > 1:
        draft.decide("tensor_parallel_size", layout.tensor_parallel, layout.reason, "docs/serving.md")
        if model.shape.vision is not None:
            text = "every card keeps the small vision tower whole and takes some of the images: nothing to exchange"
            draft.decide("mm_encoder_tp_mode", "data", text, _SOURCE)
    if layout.pipeline_parallel > 1:
        draft.decide("pipeline_parallel_size", layout.pipeline_parallel, layout.reason, "docs/serving.md")


def _decide_utilization(draft: Draft, layout: Layout, limits: CardLimits, inputs: PlanInputs) -> None:
    """Decide the share of memory: less on a card that drives a display, and never more than is free.

    vLLM does not start if its share exceeds the free memory.
    """
    name, shares, free = "gpu_memory_utilization", inputs.tables.utilization, layout.group.free_share
    if layout.group.display:
        draft.decide(name, shares["display"], "this card also drives a display, which needs room", limits.source)
    elif limits.gpu_memory_utilization is not None:
        draft.decide(name, limits.gpu_memory_utilization, f"of this card ({limits.source})", limits.source)
    draft.decide(name, shares["headless"], "vLLM's own default; no display on this card", limits.source)
    if free is not None and draft.reasons[name].automatic and draft.values[name] > free:
        text = "other programs use this card: what is free, less a margin, as a share of all"
        draft.put(name, free, text, "free memory, measured now")


def _decide_sizes(draft: Draft, model: Model, limits: CardLimits, goal: Goal) -> int:
    """Decide the size of a prefill step and of a screenshot. Return the tokens of one screenshot."""
    batched = limits.max_num_batched_tokens
    text = "small, for memory: a long prompt is prefilled in several steps"
    if batched >= 4096:
        seen = "a screenshot of 2,000 tokens and its prompt are" if model.shape.vision else f"{batched:,} tokens are"
        text = f"{seen} prefilled in one step"
    draft.decide("max_num_batched_tokens", batched, text, limits.source)
    if model.shape.vision is None:
        return 0
    edge = min(limits.longest_edge, model.max_pixels)
    width, height = goal.screen
    tokens, native = model.image_tokens(width, height, edge), model.image_tokens(width, height)
    kept = f"stays whole: {tokens:,} tokens" if tokens == native else f"is shrunk from {native:,} to {tokens:,} tokens"
    text = f"a {width}x{height} screen {kept}; also bounds what vLLM profiles"
    draft.decide("longest_edge", edge, text, limits.source)
    draft.decide("mm_processor_cache_gb", 1.0, "repeated screenshots are processed once", _SOURCE)
    return model.image_tokens(width, height, draft.values["longest_edge"])


def _needed(draft: Draft, images: int, tokens: int, thoughts: int) -> int:
    """Return the tokens of a request. If the user or vLLM set the context, less room for text is acceptable."""
    fixed = "max_model_len" in draft.values and draft.reasons["max_model_len"].source in ("you", "repair")
    wanted = draft.values.get("images") or images
    if fixed and (wanted == 1 or "images" in draft.values):
        return int(wanted * tokens + LEAST_TEXT_TOKENS)
    return max(wanted * tokens + TEXT_TOKENS + thoughts, 0 if fixed else draft.preset.least_context)


def _decide_context(draft: Draft, model: Model, budget: Budget, cap: int, image_context: int) -> int:
    """Choose the context, or check the user's. Return 0 if none fits. `image_context` holds all wanted screenshots."""
    most, longest = model.shape.text.max_positions, budget.longest_context
    wished = draft.values.get("max_model_len")
    if budget.overcommits:
        return 0
    if wished == "auto":
        return min(most, longest)
    if wished is not None:
        measured = draft.reasons["max_model_len"].source == "repair"  # vLLM itself reported that this context fits
        return int(wished) if wished <= most and (measured or longest >= wished) else 0
    bound = min(cap, most) // CUDA_BLOCK * CUDA_BLOCK  # the model's own maximum (128,000) is a choice, too
    within = sorted({step for step in (*CONTEXT_STEPS, image_context) if 0 < step <= bound} | {bound})
    steps = [step for step in within if (step + budget.states * budget.block) * _SLACK <= budget.kv_tokens]
    if not steps:
        steps = [step for step in within[:2] if step <= longest]
    if not steps:
        draft.decide("max_model_len", within[0], "nothing fits", "arithmetic")
        return 0
    text = f"the longest useful context that the KV cache of {budget.kv_tokens:,} tokens holds with some slack"
    draft.decide("max_model_len", steps[-1], text, "memory formula")
    return steps[-1]


def _decide_images(draft: Draft, model: Model, images: int, tokens: int, most: int) -> None:
    """Decide the number of screenshots. Allow more than the model's own client keeps if they fit.

    The history then drops old screenshots in blocks, so that the prefix cache keeps the rest.
    """
    chosen = max(images, most) if images >= model.history_images else images
    text = f"screenshots of {tokens:,} tokens that fit beside the text"
    if chosen > images:
        text = (
            f"{model.name}'s own client keeps {model.history_images}; with {chosen}, old ones are dropped in blocks "
            "and the prefix cache keeps the rest"
        )
    draft.decide("images", chosen, text, "measured: docs/serving.md")
