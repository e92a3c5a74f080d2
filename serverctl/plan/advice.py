"""Chooses the sentences of a plan: the error if nothing fits, warnings, and notes on alternatives."""

from collections.abc import Collection, Iterator

from serverctl.hardware.facts import GIB, WAYS_OUT, CannotPlanError, Gpu
from serverctl.models.model import SPOKEN, Model
from serverctl.plan.draft import (
    ANSWER_TOKENS,
    LATENCY_TP_PARAMETERS,
    LEAST_TEXT_TOKENS,
    TEXT_TOKENS,
    WITH_DRAFT_MODEL,
    Candidate,
    too_long,
)
from serverctl.plan.goal import Goal, PlanInputs
from serverctl.plan.group import Group
from serverctl.plan.settings import Settings, names_flag
from serverctl.plan.speed import most_tokens_a_second

#: User settings that can be the reason why nothing fits.
_OWN = (
    "max_model_len", "images", "longest_edge", "quantization", "gpu_memory_utilization", "kv_cache_memory_bytes",
    "max_num_batched_tokens", "max_num_seqs", "tensor_parallel_size", "pipeline_parallel_size",
)  # fmt: skip


def does_not_fit(model: Model, group: Group, smallest: Candidate, goal: Goal, other: str) -> CannotPlanError:
    """Return the error for a model that does not fit, with the numbers of the smallest candidate.

    `other` is the name of a smaller model that would fit; "" if none does.
    """
    wished, most = goal.overrides.get("max_model_len"), model.shape.text.max_positions
    fixed = wished if isinstance(wished, int) else 0
    if fixed > most:
        return too_long(model, fixed)
    limit, budget, settings = fixed or most, smallest.budget, smallest.settings
    tokens = model.image_tokens(*goal.screen, settings.longest_edge)
    if smallest.needed > limit:
        images = settings.images or 1
        pictures = "a screenshot" if images == 1 else f"{images} screenshots"
        return CannotPlanError(
            f"A context of {limit:,} tokens does not hold {pictures} of {tokens:,} tokens and {LEAST_TEXT_TOKENS:,} of "
            "text.",
            "Ask for a longer context, for fewer screenshots, or for smaller ones (longest_edge).",
        )
    need = budget.used + max(budget.request_bytes(max(smallest.needed, fixed)), settings.kv_cache_memory_bytes or 0)
    own = ", ".join(f"{name}={goal.overrides[name]}" for name in _OWN if name in goal.overrides)
    weights = "a 4-bit checkpoint of it (--model ORG/NAME-AWQ), " if smallest.precision == "fp8" else ""
    smaller = f"Use a smaller model (--model {other}), " if other else "Use "
    remedy = f"{smaller}{weights}or more cards. {WAYS_OUT}."
    if own:
        remedy = f"Your own settings are kept ({own}): ask for less, or leave them out."
    gpu = group.first
    has = f"{gpu.total_gib:.1f} GiB"
    if gpu.free_bytes is not None and gpu.free_bytes < 0.9 * gpu.total_bytes:
        has += f", {gpu.free_bytes / GIB:.1f} GiB of them free now"
    return CannotPlanError(
        f"{model.name} does not fit on {group.name}: even with {SPOKEN[smallest.precision]} weights"
        f"{' and one screenshot' if tokens else ''} it needs about {need / GIB:.1f} GiB a card. A card has {has}, "
        f"and vLLM may use {settings.gpu_memory_utilization or 0:.0%}.",
        remedy,
    )


def warnings_for(found: Candidate, group: Group, others: Collection[str] | None, inputs: PlanInputs) -> Iterator[str]:
    """Yield the warnings of a plan. `others` are unused kinds of cards; None if all cards are of one kind."""
    model, settings, edge, goal = found.model, found.settings, found.settings.longest_edge, inputs.goal
    say, sm = inputs.tables.warnings, group.first.sm
    tokens = model.image_tokens(*goal.screen, edge) if model.shape.vision else 0
    if model.shape.vision is None:
        yield say["blind"].format(model=model.name)
    elif edge is not None and edge < 2_000_000 and tokens < model.image_tokens(*goal.screen):
        yield say["shrunk"].format(edge=edge)
    if min(goal.screen) < 100:
        yield say["tiny"]
    if sm == 75:
        yield say["sm75"]
    if names_flag(goal.extra, "--trust-remote-code"):
        yield say["remote_code"]
    if settings.images is not None and settings.images < model.history_images:
        yield say["few_images"].format(images=settings.images, usual=model.history_images, model=model.name)
    if others is not None:
        yield say["unlike"].format(card=group.first.name, others=", ".join(sorted(others)) or "the others")
    share, free = settings.gpu_memory_utilization, group.take(1).free_share
    if share is not None and found.reasons["gpu_memory_utilization"].source.startswith("free memory"):
        yield say["shared"].format(share=share)
    elif share is not None and free is not None and share > free:
        yield say["too_much"].format(share=share, free=free)
    if found.budget.offloaded:
        yield say["offloaded"].format(gib=found.budget.offloaded / GIB)
    yield from cache_warnings(found, inputs) or _slots(found, inputs)
    yield from parallel_warnings(found, inputs)
    usual, most = model.answer_tokens
    beside = " beside the screenshots" if tokens else ""
    room = found.context - (settings.images or 0) * tokens - (TEXT_TOKENS - ANSWER_TOKENS)
    if model.thinks and room < max(usual, ANSWER_TOKENS):
        fields = {"usual": usual, "most": most, "room": max(0, room), "beside": beside}
        yield say["thoughts"].format(model=model.name, **fields)
    text = found.context - (settings.images or 0) * tokens
    if text < 3 * LEAST_TEXT_TOKENS:
        yield say["little_text"].format(context=found.context, text=text, beside=beside)
    yield from speculation_warnings(model, settings, inputs)
    yield from _own_values(sm, inputs)


def cache_warnings(found: Candidate, inputs: PlanInputs) -> list[str]:
    """Return the warning that the KV cache of --kv-gib is too small for one request, if it is."""
    budget, context = found.budget, found.context
    if inputs.goal.kv_bytes is None or budget.concurrency(context) >= 1:
        return []
    fits = max(0, budget.kv_tokens - budget.states * budget.block)
    return [inputs.tables.warnings["kv_short"].format(context=context, fits=fits)]


def parallel_warnings(found: Candidate, inputs: PlanInputs) -> Iterator[str]:
    """Yield the warnings about the user's own ways to use several cards."""
    own, say, model = inputs.goal.overrides, inputs.tables.warnings, found.model
    if (engines := found.settings.data_parallel_size or 1) > 1:
        yield say["engines"].format(engines=engines)
    cards = own.get("tensor_parallel_size") or 1
    if cards > 1 and model.shape.parameters < LATENCY_TP_PARAMETERS:
        yield say["small_tensor_parallel"].format(model=model.name, cards=cards)


def _slots(found: Candidate, inputs: PlanInputs) -> Iterator[str]:
    """Compare the user's slots with the KV cache, and the user's CUDA graphs with the slots."""
    settings, budget, context, say = found.settings, found.budget, found.context, inputs.tables.warnings
    slots, graphs = settings.max_num_seqs or 0, settings.max_cudagraph_capture_size
    usual = min(found.needed, context)
    held = max(1, budget.held(usual)) if usual > 0 else slots
    reason = found.reasons.get("max_num_seqs")
    if slots > held and reason is not None and not reason.automatic:
        each = f"{held} of {usual:,} tokens" if usual < context else "no more"
        concurrency = budget.concurrency(context)
        yield say["many_slots"].format(slots=slots, whole=concurrency, context=context, each=each, held=held)
    origin = found.reasons.get("max_cudagraph_capture_size")
    if graphs is not None and graphs < slots and not settings.enforce_eager and origin and not origin.automatic:
        yield say["few_graphs"].format(graphs=graphs, slots=slots)


def speculation_warnings(model: Model, settings: Settings, inputs: PlanInputs) -> Iterator[str]:
    """Yield the warnings about speculative decoding.

    In vLLM 0.33 (config/speculative.py, v1/spec_decode/llm_base_proposer.py), `mtp` uses the head in the weights.
    `draft_model` accepts no draft with M-RoPE, so no small vision model, and drafts from text alone. No method changes
    the answers of greedy decoding.
    """
    say = inputs.tables.warnings
    if settings.spec_method == "suffix":
        yield say["suffix"]
    if settings.spec_method == "mtp" and not model.mtp_layers:
        yield say["no_head"].format(model=model.name)
    if settings.spec_method in WITH_DRAFT_MODEL:
        yield say["draft"].format(draft=settings.spec_model)


def _own_values(sm: int | None, inputs: PlanInputs) -> Iterator[str]:
    """Yield a warning for each user setting that the card or current vLLM does not support. The settings are kept."""
    own, say = inputs.goal.overrides, inputs.tables.warnings
    if sm is None or sm >= 80:
        return
    card = f"this card (compute capability {sm // 10}.{sm % 10})"
    if own.get("dtype") == "bfloat16":
        yield say["bfloat16"].format(card=card)
    if str(own.get("kv_cache_dtype", "")).startswith("fp8"):
        yield say["fp8_cache"].format(card=card)
    if (kernels := own.get("attention_backend")) in ("FLASH_ATTN", "FLASHINFER"):
        yield say["kernels"].format(kernels=kernels, card=card)


def notes_for(
    found: Candidate, group: Group, replicas: tuple[tuple[Gpu, ...], ...], inputs: PlanInputs, other: Candidate | None
) -> Iterator[str]:
    """Yield the notes of a plan: alternatives and expectations. `other` is the plan in another precision."""
    model, sm, settings, say = found.model, group.first.sm, found.settings, inputs.tables.notes
    yield say["dimensions"].format(origin=model.origin)
    if sm is not None and inputs.goal.overrides.get("attention_backend") is None:
        yield say["attention"].format(attention=_expected_attention(sm, model, settings))
    yield from about_servers(group, replicas, inputs)
    if found.layout.tensor_parallel > 1 and not found.layout.group.all_nvlink(inputs.hardware):
        yield say["pcie"]
    if other is not None:
        yield _compared(found, other, inputs)
    elif (
        found.precision == "16-bit"
        and settings.dtype != "float32"
        and model.weight_bytes("16-bit") > 12 * GIB
        and sm is not None
        and sm >= 89
    ):
        yield say["eight_bits"]
    if sm is not None and sm >= 120:
        yield say["compiles"]
    if sm is not None and 100 <= sm < 120:
        yield say["kernels"]
    if (fastest := most_tokens_a_second(model, settings, found.budget, group.first)) is not None:
        yield say["fastest"].format(fastest=fastest, bandwidth=group.first.bandwidth_gb_s)
    if inputs.preset.answer_tokens and not model.thinks and model.family is not None:
        yield say["no_thoughts"].format(model=model.name)
    if settings.spec_method is not None:
        yield say["guessing"]
    if model.local is None:
        yield say["download"].format(gib=model.weight_bytes(model.own_precision) / GIB)


def _compared(found: Candidate, other: Candidate, inputs: PlanInputs) -> str:
    say, count = inputs.tables.notes, len(other.layout.group.cards)
    theirs, ours = (
        say["room" if way.model.shape.vision else "room_for_text"].format(
            context=way.context, images=way.settings.images or 0, tokens=way.budget.kv_tokens
        )
        for way in (other, found)
    )
    return say["compared"].format(
        theirs=SPOKEN[other.precision],
        wish=other.settings.quantization or "none",
        cards="" if count == len(found.layout.group.cards) else f" on {count} cards",
        their_room=theirs,
        ours=SPOKEN[found.precision],
        our_room=ours,
        eight=" What 8 bits cost in accuracy is not measured." if found.precision == "16-bit" else "",
    )


def about_servers(group: Group, replicas: tuple[tuple[Gpu, ...], ...], inputs: PlanInputs) -> Iterator[str]:
    """Yield how many cards stay idle and why, and the reason for several servers if there are several."""
    say = inputs.tables.notes
    if idle := len(group.cards) - sum(len(cards) for cards in replicas):
        stay = f"{idle} {'card stays' if idle == 1 else 'cards stay'}"
        rest = len(replicas) > 1 or inputs.preset.replicas
        yield say["idle_rest" if rest else "idle"].format(cards=stay, size=len(replicas[0]))
    if len(replicas) > 1:
        yield say["several"].format(count=len(replicas))


def _expected_attention(sm: int, model: Model, settings: Settings) -> str:
    """Return the attention backend that vLLM 0.33 picks (platforms/cuda.py).

    FlashAttention and FlashInfer compute in 16 bits only. FlashAttention supports fp8 KV caches only on compute
    capability 9.0 and 10.0. Triton computes int8 KV caches.
    """
    cache = settings.kv_cache_dtype or ""
    if sm < 80:
        return "TRITON_ATTN" + " (and TORCH_SDPA for the vision tower)" * (model.shape.vision is not None)
    if settings.dtype == "float32" or cache.startswith("int8"):
        return "TRITON_ATTN"
    flash = 90 <= sm < 100 or (not 100 <= sm < 120 and not cache.startswith("fp8"))
    return "FLASH_ATTN" if flash else "FLASHINFER"
