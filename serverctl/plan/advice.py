"""What a plan says to a person: why nothing fits, what to know before starting it, what else could be done."""

from serverctl.hardware.facts import GIB, Gpu
from serverctl.hardware.supported import WAYS_OUT, CannotPlanError
from serverctl.models.model import SPOKEN, Model
from serverctl.plan.cards import free_share
from serverctl.plan.compose import LEAST_TEXT_TOKENS, Candidate
from serverctl.plan.goal import Goal
from serverctl.plan.speculation import speculation_notes, speculation_warnings
from serverctl.plan.speed import most_tokens_a_second
from serverctl.plan.tables import Task


def does_not_fit(model: Model, group: tuple[Gpu, ...], smallest: Candidate, goal: Goal, other: str) -> CannotPlanError:
    """The refusal of a model that fits in no way, with the numbers of the try that took the least memory.

    `other` is the name of a smaller model that would fit; "" where none does.
    """
    own = [name for name in _OWN if name in goal.overrides]
    wishes = ", ".join(f"{name}={goal.overrides[name]}" for name in own)
    wished, most = goal.overrides.get("max_model_len"), model.shape.text.max_positions
    tokens = model.image_tokens(*goal.screen, smallest.settings.longest_edge) if model.shape.vision else 0
    if isinstance(wished, int) and wished > most:
        return CannotPlanError(
            f"{model.name} was made for {most:,} tokens, and {wished:,} are asked for.",
            f"Ask for a context of at most {most:,} tokens.",
        )
    limit = min(wished, most) if isinstance(wished, int) else most
    if smallest.needed > limit:
        images = smallest.settings.images or 1
        what = "a screenshot" if images == 1 else f"{images} screenshots"
        return CannotPlanError(
            f"A context of {limit:,} tokens does not hold {what} of {tokens:,} tokens and {LEAST_TEXT_TOKENS:,} of "
            "text.",
            "Ask for a longer context, for fewer screenshots, or for smaller ones (longest_edge).",
        )
    budget = smallest.budget
    need = budget.used + budget.request_bytes(max(smallest.needed, wished if isinstance(wished, int) else 0))
    need = max(need, budget.used + (smallest.settings.kv_cache_memory_bytes or 0))
    cards = f"{len(group)} x {group[0].name}" if len(group) > 1 else group[0].name
    if own:
        remedy = f"Your own settings are kept ({wishes}): ask for less, or leave them out."
    else:
        weights = "a 4-bit checkpoint of it (--model ORG/NAME-AWQ), " if smallest.precision == "fp8" else ""
        smaller = f"Use a smaller model (--model {other}), " if other else "Use "
        remedy = f"{smaller}{weights}or more cards. {WAYS_OUT}."
    gpu = group[0]
    has = f"{gpu.total_gib:.1f} GiB"
    if gpu.free_bytes is not None and gpu.free_bytes < 0.9 * gpu.total_bytes:
        has += f", {gpu.free_bytes / GIB:.1f} GiB of them free now"
    share = smallest.settings.gpu_memory_utilization or 0
    return CannotPlanError(
        f"{model.name} does not fit on {cards}: even with {SPOKEN[smallest.precision]} weights and one screenshot it "
        f"needs about {need / GIB:.1f} GiB a card. A card has {has}, and vLLM may use {share:.0%}.",
        remedy,
    )


#: A person's own settings that can be why nothing fits.
_OWN = (
    "max_model_len",
    "images",
    "longest_edge",
    "quantization",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "max_num_batched_tokens",
    "max_num_seqs",
    "tensor_parallel_size",
    "pipeline_parallel_size",
)


def warnings_for(candidate: Candidate, cards: tuple[Gpu, ...], group: tuple[Gpu, ...], goal: Goal) -> tuple[str, ...]:
    """What a person should know before starting a plan."""
    model = candidate.model
    found: list[str] = []
    settings = candidate.settings
    edge = settings.longest_edge
    if model.shape.vision is None:
        found.append(f"{model.name} sees no pictures: it can serve text, but no desktop agent.")
    elif edge is not None and edge < 2_000_000 and _shrinks(model, edge, goal):
        found.append(
            f"Screenshots are shrunk to {edge:,} pixels: small targets will be missed (2,097,152 keeps 1080p)."
        )
    if group[0].sm == 75:
        found.append(
            "Compute capability 7.5 has no FlashAttention: vLLM uses Triton's kernels, some of which exceed this "
            "card's shared memory (vllm#36802); `mai-server diagnose` explains it if it happens."
        )
    if any(flag.split("=")[0] == "--trust-remote-code" for flag in goal.extra):
        found.append(
            "--trust-remote-code runs code from the model's repository on this machine; these models need none."
        )
    if settings.images is not None and settings.images < model.history_images:
        few = f"{settings.images} of the {model.history_images}"
        found.append(f"Only {few} screenshots that {model.name} is used to fit.")
    if len(cards) > len(group):
        others = sorted({gpu.name for gpu in cards} - {group[0].name})
        found.append(f"The cards are not alike: only {group[0].name} is used, not {', '.join(others) or 'the others'}.")
    share, free = settings.gpu_memory_utilization, free_share(group[:1])
    if share is not None and candidate.reasons["gpu_memory_utilization"].source.startswith("free memory"):
        found.append(f"Other programs use the card: only {share:.0%} of its memory is asked for.")
    elif share is not None and free is not None and share > free:
        found.append(f"Your {share:.0%} of the card is more than is free now ({free:.0%}): vLLM will refuse to start.")
    tokens = model.image_tokens(*goal.screen, edge) if model.shape.vision else 0
    text = candidate.context - (settings.images or 0) * tokens
    if text < 3 * LEAST_TEXT_TOKENS:
        found.append(f"A context of {candidate.context:,} tokens leaves {text:,} for text beside the screenshots.")
    found += speculation_warnings(model, settings)
    found += _quantization(goal, model)
    found += _own_formats(goal, group[0].sm)
    return tuple(found)


def _shrinks(model: Model, edge: int, goal: Goal) -> bool:
    return model.image_tokens(*goal.screen, edge) < model.image_tokens(*goal.screen)


def _own_formats(goal: Goal, sm: int | None) -> list[str]:
    """A person's own number formats and kernels that this card cannot do: kept, but said."""
    if sm is None or sm >= 80:
        return []
    own = goal.overrides
    found: list[str] = []
    card = f"this card (compute capability {sm // 10}.{sm % 10})"
    if own.get("dtype") == "bfloat16":
        found.append(f"Your dtype bfloat16 does not exist on {card}: the start will fail. half does.")
    if str(own.get("kv_cache_dtype", "")).startswith("fp8"):
        found.append(f"Your fp8 KV cache is refused on {card}: it starts at 8.0.")
    if own.get("attention_backend") in ("FLASH_ATTN", "FLASHINFER"):
        found.append(
            f"Your attention backend {own['attention_backend']} needs compute capability 8.0; {card} has less."
        )
    return found


def _quantization(goal: Goal, model: Model) -> list[str]:
    """Names of methods that today's vLLM does not take as people write them."""
    wished = goal.overrides.get("quantization")
    if wished == "bitsandbytes":
        return ["bitsandbytes left vLLM in 0.28: without the plugin vllm-bnb-plugin the start fails."]
    if wished == "fp8" and model.own_precision == "16-bit":
        return ["Since vLLM 0.28 fp8 alone quantises nothing while loading: use fp8_per_channel or fp8_per_tensor."]
    return []


def notes_for(
    candidate: Candidate, group: tuple[Gpu, ...], replicas: tuple[tuple[Gpu, ...], ...], task: Task
) -> tuple[str, ...]:
    """What else could be done, and what to expect."""
    model, layout = candidate.model, candidate.layout
    notes = [f"Dimensions: {model.origin}."]
    sm = group[0].sm
    backend = expected_attention(sm)
    if backend and task.goal.overrides.get("attention_backend") is None:
        notes.append(f"vLLM will choose {backend} for attention by itself.")
    used = sum(len(cards) for cards in replicas)
    if used < len(group):
        idle = len(group) - used
        notes.append(
            f"{idle} {'card stays' if idle == 1 else 'cards stay'} idle: one person's agent is not faster on more of "
            "them; --preset throughput serves many agents with all."
        )
    notes += several_servers(replicas)
    if layout.tensor_parallel > 1 and not task.hardware.all_nvlink(tuple(gpu.index for gpu in layout.cards)):
        notes.append(
            "These cards talk over PCIe: measure against one card with 8-bit weights (`mai-server bench --compare`)."
        )
    if candidate.precision == "16-bit" and model.weight_bytes("16-bit") > 12 * GIB and sm is not None and sm >= 89:
        notes.append(
            "--set quantization=fp8_per_channel would shorten the time per token; what it costs in accuracy is not "
            "measured."
        )
    if sm is not None and sm >= 120:
        notes.append("The first start on this card compiles kernels and takes minutes longer.")
    if sm is not None and 100 <= sm < 120:
        notes.append("After installing, `vllm download-kernels` fetches this card's kernels once.")
    if (fastest := most_tokens_a_second(model, candidate.settings, candidate.budget, group[0])) is not None:
        notes.append(
            f"One request gets {fastest:.0f} tokens/s at the very most: each token reads the weights once, at the "
            f"card's {group[0].bandwidth_gb_s:,.0f} GB/s."
        )
    notes += speculation_notes(candidate.settings)
    if model.local is None:
        notes.append(
            f"The weights ({model.weight_bytes(model.own_precision) / GIB:.1f} GiB) are downloaded at the first start."
        )
    return tuple(notes)


def several_servers(replicas: tuple[tuple[Gpu, ...], ...]) -> list[str]:
    """Why there are several servers, where there are."""
    if len(replicas) == 1:
        return []
    return [
        f"{len(replicas)} independent servers, each on its own cards: an agent stays with one, so its prefix and "
        "image caches keep hitting; data parallelism behind one port would scatter them."
    ]


def expected_attention(sm: int | None) -> str | None:
    """The attention backend that vLLM 0.33 picks by compute capability (platforms/cuda.py)."""
    if sm is None:
        return None
    if sm < 80:
        return "TRITON_ATTN (and TORCH_SDPA for the vision tower)"
    return "FLASHINFER" if 100 <= sm < 120 else "FLASH_ATTN"
