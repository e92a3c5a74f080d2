"""Estimates the memory of one card: weights, activations, CUDA graphs, and the rest for the KV cache.

Mirrors vLLM 0.33's `gpu_worker.determine_available_memory`:

    requested = ceil(total x utilization)
    KV        = requested - weights / TP - context - peak activations - graphs

and `kv_cache_utils`: blocks = floor(KV / page), concurrency = blocks / (ceil(L / block) + states); vLLM prints
concurrency x L tokens. Hybrid models (Gated DeltaNet) have states: each request holds a fixed number of blocks for
them, and a block is as large as one state (`platforms/interface.py`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foundation.printing import counted
from serverctl.hardware.facts import GIB
from serverctl.models.model import Model, Precision
from serverctl.models.shape import TextShape
from serverctl.plan.settings import Settings

#: Tokens in one block of the KV cache: 16 on CUDA, 128 on the processor (vLLM's defaults by backend).
CUDA_BLOCK, CPU_BLOCK = 16, 128
#: Used shares of the KV cache: full from the first on, hardly used below the second. Serving guides aim between them.
_FULL, _LOW = 0.85, 0.30
#: The share that suggested slots should fill.
_AIM = 0.60
#: vLLM's largest sensible number of slots.
_MOST_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Budget:
    """How the memory of one card is used, in bytes."""

    total: int  # the card's memory
    requested: int  # the part that vLLM may use
    weights: int  # on this card
    context: int  # the CUDA context and other memory outside torch
    activations: int  # the peak while profiling: the largest image, the largest batch, the sampler
    graphs: int  # captured CUDA graphs
    kv: int  # the rest, for the KV cache; negative if the other parts do not fit
    token: int  # KV cache of one token on this card
    block: int  # tokens in one block
    states: int = 0  # additional blocks of each request for the states of a hybrid model
    measured: bool = False  # whether measurements of a real start replaced the estimates
    offloaded: int = 0  # weights in main memory, which every token reads over PCIe

    @property
    def used(self) -> int:
        """Bytes in use without the KV cache."""
        return self.weights + self.context + self.activations + self.graphs

    @property
    def overcommits(self) -> bool:
        """Whether a KV cache of fixed size does not fit on the card beside everything else."""
        return self.used + max(0, self.kv) > self.total

    @property
    def longest_context(self) -> int:
        """Tokens of the longest request that vLLM admits; vLLM always reserves one block."""
        return max(0, self.kv_tokens - (1 + self.states) * self.block)

    @property
    def kv_tokens(self) -> int:
        """Capacity of the KV cache in tokens, including the blocks for states: whole blocks only, never negative."""
        return max(0, self.kv // (self.token * self.block)) * self.block

    def printed_tokens(self, max_model_len: int) -> int:
        """Return the size of the KV cache in tokens as vLLM prints it ("GPU KV cache size")."""
        return int(self.concurrency(max_model_len) * max_model_len) if self.states else self.kv_tokens

    def held(self, tokens: int) -> int:
        """Return how many requests of `tokens` tokens the KV cache holds."""
        return int(self.concurrency(tokens))

    def request_bytes(self, tokens: int) -> int:
        """Return the KV cache bytes of one request of `tokens` tokens, including its states."""
        return (max(1, math.ceil(tokens / self.block)) + self.states) * self.block * self.token

    def concurrency(self, max_model_len: int) -> float:
        """Return the concurrent requests of `max_model_len` tokens, as vLLM prints it ("Maximum concurrency")."""
        return self.kv_tokens / ((max(1, math.ceil(max_model_len / self.block)) + self.states) * self.block)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured memory of a real start, in bytes per card. Replaces the estimates."""

    weights: int | None = None
    context: int | None = None
    activations: int | None = None
    graphs: int | None = None


@dataclass(frozen=True, slots=True)
class Seeds:
    """Initial estimates of a card's memory, before measurements. Activations are by billions of parameters."""

    context_gib: float
    graphs_gib: float
    activations: Sequence[Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class ProcessorTable:
    """Limits of a server on the CPU: memory in bytes, images in pixels, models in billions of parameters."""

    kv_cache_bytes: int
    overhead_bytes: int
    longest_edge: int
    max_model_len: int
    most_billion: float


def measurement_key(vllm: str, card: str, model: Model, precision: Precision, settings: Settings) -> str:
    """Return the key of a measurement, made of everything that changes the memory of a start."""
    graphs = "eager" if settings.enforce_eager else f"graphs{settings.max_cudagraph_capture_size}"
    cards = f"tp{settings.tensor_parallel_size or 1}|pp{settings.pipeline_parallel_size or 1}"
    sizes = f"edge{settings.longest_edge}|batched{settings.max_num_batched_tokens}"
    return f"{vllm}|{card}|{model.name}|{precision}|{cards}|{sizes}|{graphs}"


def card_budget(
    model: Model, precision: Precision, settings: Settings, total: int, seeds: Seeds, measured: Measured | None = None
) -> Budget:
    """Return the budget of each card that shares the model. `total` is the memory of the smallest card, in bytes."""
    known = measured or Measured()
    parallel = settings.tensor_parallel_size or 1
    stages = settings.pipeline_parallel_size or 1
    requested = math.ceil(total * (settings.gpu_memory_utilization or 0.92))
    weights = known.weights or _weights_per_card(model, precision, settings)
    # Only the layers of the language model can stay in main memory.
    fixed = model.vision_bytes + 2 * model.shape.text.embedding_parameters // parallel
    offload_limit = 0 if known.weights else round((settings.cpu_offload_gb or 0) * GIB)
    offloaded = max(0, min(weights - fixed, offload_limit))
    weights -= offloaded
    context = known.context if known.context is not None else round(seeds.context_gib * GIB)
    billions, entries = model.shape.parameters / 1e9 / parallel, seeds.activations
    seed = next((entry for entry in entries if billions < entry["below_billion"]), entries[-1])["gib"]
    wide = 2 if settings.dtype == "float32" else 1
    activations = known.activations or wide * max(round(seed * GIB), _activation_formula(model, settings, total))
    graphs = known.graphs if known.graphs is not None else round(seeds.graphs_gib * GIB)
    if settings.enforce_eager:
        graphs = 0
    element = kv_element_bytes(settings)
    token = model.shape.text.kv_bytes_per_token(parallel, element) // stages
    block, states = _blocks(model.shape.text, parallel, element, settings.block_size or CUDA_BLOCK)
    if settings.spec_method == "mtp":
        token += model.head_token_bytes(parallel, element)
        weights += 0 if known.weights else model.head_bytes // parallel
    kv = requested - weights - context - activations - graphs
    if settings.kv_cache_memory_bytes is not None:  # vLLM then ignores the formula
        kv = settings.kv_cache_memory_bytes
    kept = measured is not None
    return Budget(total, requested, weights, context, activations, graphs, kv, token, block, states, kept, offloaded)


def cpu_budget(model: Model, settings: Settings, free: int, table: ProcessorTable) -> Budget:
    """Return the budget of main memory. On the CPU, the KV cache has a fixed size."""
    kv = settings.kv_cache_memory_bytes or table.kv_cache_bytes
    element = 4 if settings.dtype == "float32" else 2
    weights = model.weight_bytes(model.own_precision) * (element // 2)
    token = model.shape.text.kv_bytes_per_token(1, element)
    if settings.spec_method == "mtp":
        token += model.head_token_bytes(1, element)
        weights += model.head_bytes * (element // 2)
    block, states = _blocks(model.shape.text, 1, element, settings.block_size or CPU_BLOCK)
    requested = weights + kv + table.overhead_bytes
    return Budget(free, requested, weights, 0, table.overhead_bytes, 0, kv, token, block, states)


def _blocks(text: TextShape, parallel: int, element_bytes: int, least: int) -> tuple[int, int]:
    """Return the tokens in a block, and the blocks that a request needs for its states.

    A hybrid model's block is as large as one state, rounded up to a multiple of `least` tokens. Its linear-attention
    layers share blocks in groups; a group has as many layers as the model has full-attention layers. With prefix
    caching (on by default) each group keeps two states: the current one and the last one for the cache.
    """
    if text.linear is None:
        return least, 0
    per_layer = text.kv_bytes_per_token(parallel, element_bytes) // text.attention_layers
    block = least * math.ceil(text.linear.state_bytes(parallel) / (least * per_layer))
    return block, 2 * math.ceil(text.linear.layers / text.attention_layers)


def kv_element_bytes(settings: Settings) -> int:
    """Return the bytes of one number in the KV cache: by default those of the computation."""
    if (settings.kv_cache_dtype or "").startswith(("fp8", "int8")):
        return 1
    return 4 if settings.dtype == "float32" and settings.kv_cache_dtype in (None, "auto", "float32") else 2


def _weights_per_card(model: Model, precision: Precision, settings: Settings) -> int:
    """Return the bytes of weights on one card. In data mode, each card holds the whole vision tower."""
    parallel = (settings.tensor_parallel_size or 1) * (settings.pipeline_parallel_size or 1)
    total = model.weight_bytes(precision) * (2 if settings.dtype == "float32" and precision == "16-bit" else 1)
    own = model.vision_bytes if parallel > 1 and settings.mm_encoder_tp_mode == "data" else 0
    return (total - own) // parallel + own


def left_to_vllm(settings: Settings, total: int) -> tuple[int, int]:
    """Return the requests and tokens per step, with vLLM's defaults for unset values (0.33's arg_utils.py)."""
    large = total >= 70 * GIB
    sequences, batched = (1024, 16_384 if total >= 160 * GIB else 8192) if large else (256, 2048)
    more = 2 if settings.performance_mode == "throughput" else 1
    return settings.max_num_seqs or sequences * more, settings.max_num_batched_tokens or batched * more


def _activation_formula(model: Model, settings: Settings, total: int) -> int:
    """Estimate the peak of activations: the vision tower on the largest image, or the language model and sampler.

    ViT(P) = P patches x 8.5 x width x 2 bytes + tokens x output width x (1 + deepstack) x 2 bytes. The language model
    holds two rows of its feed-forward layer and four of its hidden state per token of the largest batch. The sampler
    holds two copies of the logits in fp32 for every sequence.
    """
    text = model.shape.text
    parallel = settings.tensor_parallel_size or 1
    sequences, batched = left_to_vllm(settings, total)
    language = batched * (2 * text.intermediate // parallel + 4 * text.hidden) * 2
    sampler = sequences * text.vocabulary * 4 * 2
    vision = 0
    if model.shape.vision is not None:
        tower = model.shape.vision
        pixels = min(settings.longest_edge or model.max_pixels, model.max_pixels)
        patches = pixels // tower.patch**2
        tokens = pixels // tower.factor**2
        vision = round(patches * 8.5 * tower.hidden * 2) + tokens * tower.out_hidden * (1 + tower.deepstack) * 2
    return max(vision, language + sampler)


@dataclass(frozen=True, slots=True)
class KvUse:
    """Requests and the KV cache at one moment."""

    running: int
    waiting: int
    used: float  # share of the KV cache, 0 to 1


@dataclass(frozen=True, slots=True)
class KvVerdict:
    """What is wrong with the slots, and what to do."""

    what: str
    remedy: str


def judge_kv(use: KvUse) -> KvVerdict | None:
    """Return what is wrong between requests, slots and the KV cache; None if nothing is, or nothing can be said."""
    fitting = min(_MOST_SLOTS, round(use.running * _AIM / use.used)) if use.used > 0 else _MOST_SLOTS
    share = f"{use.used:.0%}" if use.used >= 0.1 else f"{use.used:.1%}"
    if use.waiting and use.used >= _FULL:
        return KvVerdict(
            f"The KV cache is full: {use.running} requests run, {use.waiting} wait ({share} used).",
            f"More slots do not help: it holds about {max(1, use.running)} such requests (--set max_num_seqs="
            f"{max(1, use.running)} keeps them from pushing each other out). 8-bit weights, an 8-bit KV cache, shorter "
            "requests or more cards hold more.",
        )
    if use.waiting and use.running and fitting > use.running:
        return KvVerdict(
            f"{use.waiting} requests wait although the KV cache has room: {use.running} run ({share} used).",
            f"More slots: --set max_num_seqs={fitting}.",
        )
    if not use.waiting and use.running > 1 and use.used < _LOW:
        return KvVerdict(
            f"The KV cache is hardly used: {share} by {counted(use.running, 'request')} at a time.",
            f"It holds about {fitting} such requests: send more at a time (with --set max_num_seqs={fitting}), or use "
            "the memory for a longer context or a larger model.",
        )
    return None
