"""The texts of a plan: the error if nothing fits, warnings, and notes on alternatives."""

from collections.abc import Collection, Iterator

from serverctl.hardware.facts import GIB, Gpu
from serverctl.hardware.supported import WAYS_OUT, CannotPlanError
from serverctl.models.model import SPOKEN, Model
from serverctl.plan.draft import ANSWER_TOKENS, LEAST_TEXT_TOKENS, TEXT_TOKENS, WITH_DRAFT_MODEL, Candidate, too_long
from serverctl.plan.goal import Goal
from serverctl.plan.group import Group
from serverctl.plan.settings import Settings, names_flag
from serverctl.plan.speed import most_tokens_a_second
from serverctl.plan.tables import Task

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
    if smallest.needed > limit:
        tokens = model.image_tokens(*goal.screen, settings.longest_edge) if model.shape.vision else 0
        images = settings.images or 1
        what = "a screenshot" if images == 1 else f"{images} screenshots"
        return CannotPlanError(
            f"A context of {limit:,} tokens does not hold {what} of {tokens:,} tokens and {LEAST_TEXT_TOKENS:,} of "
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
        f"{model.name} does not fit on {group.name}: even with {SPOKEN[smallest.precision]} weights and one screenshot "
        f"it needs about {need / GIB:.1f} GiB a card. A card has {has}, and vLLM may use "
        f"{settings.gpu_memory_utilization or 0:.0%}.",
        remedy,
    )


def warnings_for(found: Candidate, group: Group, others: Collection[str] | None, goal: Goal) -> Iterator[str]:
    """Yield the warnings of a plan. `others` are unused kinds of cards; None if all cards are of one kind."""
    model, settings, edge = found.model, found.settings, found.settings.longest_edge
    tokens = model.image_tokens(*goal.screen, edge) if model.shape.vision else 0
    if model.shape.vision is None:
        yield f"{model.name} sees no pictures: it can serve text, but no desktop agent."
    elif edge is not None and edge < 2_000_000 and tokens < model.image_tokens(*goal.screen):
        yield f"Screenshots are shrunk to {edge:,} pixels: small targets will be missed (2,097,152 keeps 1080p)."
    if min(goal.screen) < 100:
        yield "Pictures with a side under 100 pixels are too small: models miss what is in them."
    if group.first.sm == 75:
        yield (
            "Compute capability 7.5 has no FlashAttention: vLLM uses Triton's kernels, some of which exceed this "
            "card's shared memory (vllm#36802); `mai-server diagnose` explains it if it happens."
        )
    if names_flag(goal.extra, "--trust-remote-code"):
        yield "--trust-remote-code runs code from the model's repository on this machine; these models need none."
    if settings.images is not None and settings.images < model.history_images:
        yield f"Only {settings.images} of the {model.history_images} screenshots that {model.name} is used to fit."
    if others is not None:
        left_out = ", ".join(sorted(others)) or "the others"
        yield f"The cards are not alike: only {group.first.name} is used, not {left_out}."
    share, free = settings.gpu_memory_utilization, group.take(1).free_share
    if share is not None and found.reasons["gpu_memory_utilization"].source.startswith("free memory"):
        yield f"Other programs use the card: only {share:.0%} of its memory is asked for."
    elif share is not None and free is not None and share > free:
        yield f"Your {share:.0%} of the card is more than is free now ({free:.0%}): vLLM will refuse to start."
    if found.budget.offloaded:
        yield (
            f"{found.budget.offloaded / GIB:.1f} GiB of weights stay in main memory and are sent to the card for every "
            "token: slow."
        )
    yield from _slots(found)
    yield from _thoughts(found, tokens)
    text = found.context - (settings.images or 0) * tokens
    if text < 3 * LEAST_TEXT_TOKENS:
        yield f"A context of {found.context:,} tokens leaves {text:,} for text beside the screenshots."
    yield from speculation_warnings(model, settings)
    yield from _own_values(goal, model, group.first.sm)


def _slots(found: Candidate) -> Iterator[str]:
    """Hold the user's slots and CUDA graphs against the KV cache."""
    settings, budget, context = found.settings, found.budget, found.context
    slots, graphs = settings.max_num_seqs or 0, settings.max_cudagraph_capture_size
    usual = min(found.needed, context)
    held = max(1, budget.held(usual)) if usual > 0 else slots
    reason = found.reasons.get("max_num_seqs")
    if slots > held and reason is not None and not reason.automatic:
        each = f"{held} of {usual:,} tokens" if usual < context else "no more"
        yield (
            f"{slots} slots are more than the KV cache holds: {budget.concurrency(context):.2f} requests of the whole "
            f"context ({context:,} tokens), {each}. The others wait or push each other out: --set max_num_seqs={held}."
        )
    if graphs is not None and graphs < slots and not settings.enforce_eager:
        yield (
            f"CUDA graphs end at batches of {graphs}: more of the {slots} slots at a time decode without them. "
            "Leave max_cudagraph_capture_size out, and it follows the slots."
        )


def _thoughts(found: Candidate, image_tokens: int) -> Iterator[str]:
    """Say if a model that thinks has too little room for it, or if one that does not has room for nothing."""
    model = found.model
    room = found.context - (found.settings.images or 0) * image_tokens - (TEXT_TOKENS - ANSWER_TOKENS)
    usual, most = model.answer_tokens
    if model.thinks and room < max(usual, ANSWER_TOKENS):
        yield (
            f"{model.name} thinks first, with {usual:,} to {most:,} tokens an answer: beside its screenshots there is "
            f"room for {max(0, room):,}, and an answer that is cut off is none."
        )


def speculation_warnings(model: Model, settings: Settings) -> Iterator[str]:
    """Yield the warnings about speculative decoding.

    In vLLM 0.33 (config/speculative.py, v1/spec_decode/llm_base_proposer.py), `mtp` uses the head in the weights.
    `draft_model` accepts no draft with M-RoPE, so no small vision model, and drafts from text alone. No method changes
    the answers of greedy decoding.
    """
    if settings.spec_method == "suffix":
        yield "Suffix decoding needs the package arctic-inference beside vLLM; without it vLLM does not start."
    if settings.spec_method == "mtp" and not model.mtp_layers:
        yield f"{model.name} is not known to come with a head for multi-token prediction."
    if settings.spec_method in WITH_DRAFT_MODEL:
        draft = settings.spec_model
        yield f"vLLM takes no {draft} as a draft if it sees pictures itself; its memory is not in this plan."


def _own_values(goal: Goal, model: Model, sm: int | None) -> Iterator[str]:
    """Yield a warning for each user setting that the card or current vLLM does not support. The settings are kept."""
    own = goal.overrides
    if own.get("quantization") == "fp8" and model.own_precision == "16-bit":
        yield "Since vLLM 0.28 fp8 alone quantises nothing while loading: use fp8_per_channel or fp8_per_tensor."
    if sm is None or sm >= 80:
        return
    card = f"this card (compute capability {sm // 10}.{sm % 10})"
    if own.get("dtype") == "bfloat16":
        yield f"Your dtype bfloat16 does not exist on {card}: the start will fail. half does."
    if str(own.get("kv_cache_dtype", "")).startswith("fp8"):
        yield f"Your fp8 KV cache is refused on {card}: it starts at 8.0."
    if (kernels := own.get("attention_backend")) in ("FLASH_ATTN", "FLASHINFER"):
        yield f"Your attention backend {kernels} needs compute capability 8.0; {card} has less."


def notes_for(
    found: Candidate, group: Group, replicas: tuple[tuple[Gpu, ...], ...], task: Task, other: Candidate | None
) -> Iterator[str]:
    """Yield the notes of a plan: alternatives and expectations. `other` is the plan in another precision."""
    model, sm, settings = found.model, group.first.sm, found.settings
    yield f"Dimensions: {model.origin}."
    if sm is not None and task.goal.overrides.get("attention_backend") is None:
        yield f"vLLM will choose {_expected_attention(sm)} for attention by itself."
    yield from idle_cards(group, replicas, task)
    yield from several_servers(replicas)
    if found.layout.tensor_parallel > 1 and not found.layout.group.all_nvlink(task.hardware):
        yield "These cards talk over PCIe: measure against one card with 8-bit weights (`mai-server bench --compare`)."
    if other is not None:
        yield _compared(found, other)
    elif found.precision == "16-bit" and model.weight_bytes("16-bit") > 12 * GIB and sm is not None and sm >= 89:
        yield (
            "--set quantization=fp8_per_channel would shorten the time per token; what it costs in accuracy is not "
            "measured."
        )
    if sm is not None and sm >= 120:
        yield "The first start on this card compiles kernels and takes minutes longer."
    if sm is not None and 100 <= sm < 120:
        yield "After installing, `vllm download-kernels` fetches this card's kernels once."
    if (fastest := most_tokens_a_second(model, settings, found.budget, group.first)) is not None:
        yield (
            f"One request gets {fastest:.0f} tokens/s at the very most: each token reads the weights once, at the "
            f"card's {group.first.bandwidth_gb_s:,.0f} GB/s."
        )
    if task.preset.answer_tokens and not model.thinks and model.family is not None:
        yield f"{model.name} does not think first: this preset only gives it a longer context."
    if settings.spec_method is not None:
        yield (
            "Guessing ahead helps some work and slows other: `mai-server bench --replay RUN --compare latency "
            "speculative speculative+spec_method=suffix` measures it on your own runs."
        )
    if model.local is None:
        size = model.weight_bytes(model.own_precision) / GIB
        yield f"The weights ({size:.1f} GiB) are downloaded at the first start."


def _compared(found: Candidate, other: Candidate) -> str:
    wish = other.settings.quantization or "none"
    cards = "" if len(other.layout.group.cards) == len(found.layout.group.cards) else (
        f" on {len(other.layout.group.cards)} cards"
    )  # fmt: skip
    theirs, ours = (
        f"{way.context:,} tokens with {way.settings.images or 0} screenshots ({way.budget.kv_tokens:,} in the KV cache)"
        for way in (other, found)
    )
    eight = " What 8 bits cost in accuracy is not measured." if found.precision == "16-bit" else ""
    return (
        f"{SPOKEN[other.precision]} weights (--set quantization={wish}) fit, too{cards}: a context of {theirs}; "
        f"{SPOKEN[found.precision]} ones: {ours}.{eight}"
    )


def idle_cards(group: Group, replicas: tuple[tuple[Gpu, ...], ...], task: Task) -> Iterator[str]:
    """Yield how many cards stay idle, and why."""
    idle = len(group.cards) - sum(len(cards) for cards in replicas)
    if not idle:
        return
    stay = f"{idle} {'card stays' if idle == 1 else 'cards stay'} idle"
    if len(replicas) > 1 or task.preset.replicas:
        yield f"{stay}: each server takes {len(replicas[0])}, and the rest is too few for another."
    else:
        yield (
            f"{stay}: one person's agent is not faster on more of them; --preset throughput serves many agents with "
            f"all."
        )


def several_servers(replicas: tuple[tuple[Gpu, ...], ...]) -> Iterator[str]:
    """Yield the reason for several servers if there are several."""
    if len(replicas) > 1:
        yield (
            f"{len(replicas)} independent servers, each on its own cards: an agent stays with one, so its prefix and "
            "image caches keep hitting; data parallelism behind one port would scatter them."
        )


def _expected_attention(sm: int) -> str:
    """Return the attention backend that vLLM 0.33 picks by compute capability (platforms/cuda.py)."""
    if sm < 80:
        return "TRITON_ATTN (and TORCH_SDPA for the vision tower)"
    return "FLASHINFER" if 100 <= sm < 120 else "FLASH_ATTN"
