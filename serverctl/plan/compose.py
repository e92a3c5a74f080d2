"""One try at a plan: given cards, precision and images, the settings, their reasons, and whether they fit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from serverctl.hardware.facts import Gpu
from serverctl.models.model import Model, Precision
from serverctl.plan.cards import free_share
from serverctl.plan.goal import Goal, Reason
from serverctl.plan.limits import CardLimits
from serverctl.plan.memory import CUDA_BLOCK, Budget, card_budget, measurement_key
from serverctl.plan.presets import Preset
from serverctl.plan.settings import Settings
from serverctl.plan.speculation import check_speculation
from serverctl.plan.tables import Task

_SOURCE = "vLLM 0.33 by card: docs/serving.md"

#: Contexts worth choosing from. The smallest holds one 1080p screenshot, a prompt and an answer.
CONTEXT_STEPS = (6144, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072)
#: Tokens of a request beside its screenshots: 1.5k of prompt and history, 2k of answer, some room.
TEXT_TOKENS = 4096
#: The KV cache should hold a little more than one longest request, so that a second one does not wait for it whole.
SLACK = 1.2
#: vLLM's own number of slots on a card below 70 GiB; larger ones have more (0.33's arg_utils.py).
LEAST_SLOTS_OF_VLLM = 256
#: What a person who fixed the context must at least leave for prompt and answer beside one screenshot.
LEAST_TEXT_TOKENS = 1024
#: Below this a 16-bit plan gives way to smaller weights with more room. Not earlier where 8 bits are faster, too: what
#: they cost in grounding is not measured.
GOOD_CONTEXT = 16_384


@dataclass(frozen=True, slots=True)
class Layout:
    """How one server uses its cards."""

    cards: tuple[Gpu, ...]
    tensor_parallel: int
    pipeline_parallel: int
    reason: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """One try."""

    model: Model  # what is served
    precision: Precision  # how its weights are held
    layout: Layout  # the cards and how they share it
    settings: Settings  # all knobs
    reasons: Mapping[str, Reason]  # why, by knob
    budget: Budget  # of one card
    context: int  # tokens a request can count on; 0 where nothing fits
    needed: int  # tokens that the wanted screenshots need
    cap: int  # the longest context that was worth having on this card

    @property
    def fits(self) -> bool:
        """Whether a request with the wanted screenshots fits."""
        return self.context >= self.needed

    @property
    def roomy(self) -> bool:
        """Whether the context is one that nobody would trade weights' accuracy for."""
        return self.fits and self.context >= min(GOOD_CONTEXT, self.cap)

    @property
    def whole(self) -> bool:
        """Whether the context is as long as is worth having on these cards."""
        return self.fits and self.context >= self.cap


class Draft:
    """Collects knobs with their reasons; a person's own values win, then adjustments, then what is decided here."""

    def __init__(self, goal: Goal, preset: Preset) -> None:
        self._goal = goal
        self._preset = preset
        self.values: dict[str, Any] = {}
        self.reasons: dict[str, Reason] = {}
        for name, value in preset.settings.items():
            self._put(name, value, Reason(f"preset {preset.name}: {preset.about}", "configs/presets"))
        for name, value in goal.adjustments.items():
            if name in Settings.__dataclass_fields__:
                because = goal.adjusted_because.get(name, "adjusted after an earlier start")
                self._put(name, value, Reason(because, "repair"))
        for name, value in goal.overrides.items():
            self._put(name, value, Reason("your own setting", "you", automatic=False))

    def _put(self, name: str, value: Any, reason: Reason) -> None:
        self.values[name] = value
        self.reasons[name] = reason

    def has(self, name: str) -> bool:
        """Whether a knob already has a value, or is left to vLLM by the preset."""
        return name in self.values or name in self._preset.leave

    def decide(self, name: str, value: Any, text: str, source: str) -> None:
        """Gives a knob its value unless it already has one."""
        if value is not None and not self.has(name):
            self._put(name, value, Reason(text, source))

    def bound(self, name: str, value: Any, text: str, source: str) -> None:
        """Gives a knob that the preset leaves to vLLM a value all the same."""
        self._put(name, value, Reason(text, source))

    def drop(self, *names: str) -> None:
        """Takes back a preset's values that do not suit this card; a person's own values stay."""
        for name in names:
            if name in self.reasons and self.reasons[name].source == "configs/presets":
                del self.values[name], self.reasons[name]

    def settings(self) -> Settings:
        """The knobs so far."""
        return Settings(**self.values)


def compose(model: Model, precision: Precision, layout: Layout, images: int, task: Task) -> Candidate:
    """Settings for one way of using the cards, with room for some `images` in a request."""
    goal, preset, tables = task.goal, task.preset, task.tables
    draft = Draft(goal, preset)
    smallest = min(layout.cards, key=lambda gpu: gpu.total_bytes)
    limits = tables.limits.limits_for(smallest)
    sm = smallest.sm
    if sm is not None and sm < preset.least_sm:
        draft.drop("performance_mode", "max_cudagraph_capture_size")
    if any(gpu.display for gpu in layout.cards):
        draft.drop("gpu_memory_utilization")
    draft.drop("images")  # a preset's is the most to try for; how many fit is decided here
    _numbers(draft, precision, sm, preset, model)
    decide_reasoning_parser(draft, model)
    decide_speculation(draft, model)
    _parallel(draft, layout, model)
    utilization, why = _utilization(layout.cards, tables.memory.utilization, limits)
    draft.decide("gpu_memory_utilization", utilization, why, limits.source)
    _bounded_utilization(draft, layout.cards)
    batched = limits.max_num_batched_tokens
    draft.decide("max_num_batched_tokens", batched, _batch_reason(batched), limits.source)
    tokens = 0
    if model.shape.vision is not None:
        edge = min(limits.longest_edge, model.max_pixels)
        draft.decide("longest_edge", edge, _edge_reason(model, edge, goal), limits.source)
        draft.decide("mm_processor_cache_gb", 1.0, "repeated screenshots are processed once", _SOURCE)
        tokens = model.image_tokens(*goal.screen, draft.values["longest_edge"])
    sequences = limits.max_num_seqs
    settings = draft.settings()
    if not draft.has("max_num_seqs"):
        settings = replace(settings, max_num_seqs=sequences)
    measured = tables.measured.get(measurement_key(task.vllm, smallest.name, model, precision, settings))

    def budgeted(settings: Settings) -> Budget:
        return card_budget(model, precision, settings, smallest.total_bytes, tables.memory.seeds, measured)

    budget = budgeted(settings)
    if capped_slots(draft, preset, budget, tokens + LEAST_TEXT_TOKENS):
        budget = budgeted(draft.settings())
    needed = _needed(draft, images, tokens, preset)
    # Not shorter than what the model's own client keeps: hybrid models keep many screenshots in little room.
    whole = 0 if draft.has("max_model_len") else math.ceil(needed / CUDA_BLOCK) * CUDA_BLOCK
    cap = max(limits.max_model_len, preset.least_context, whole)
    if isinstance(fixed := draft.values.get("max_model_len"), int):
        cap = min(cap, fixed)
    context = _context(draft, model, budget, cap)
    if model.shape.vision is not None:
        most = preset.settings.get("images") or 2 * images
        _images(draft, model, images, tokens, min(most, (context - TEXT_TOKENS) // max(tokens, 1)))
    fitting = max(1, min(sequences, budget.held(needed)))
    draft.decide(
        "max_num_seqs",
        fitting,
        f"requests of {needed:,} tokens that the KV cache holds, at most {sequences} on this card; slots size buffers",
        limits.source,
    )
    settings = draft.settings()
    return Candidate(model, precision, layout, settings, draft.reasons, budget, context, needed, cap)


def capped_slots(draft: Draft, preset: Preset, budget: Budget, smallest: int) -> bool:
    """Bounds slots that a preset leaves to vLLM by the requests of the smallest size that the KV cache holds."""
    held = max(1, budget.held(smallest))
    if "max_num_seqs" not in preset.leave or "max_num_seqs" in draft.values or held >= LEAST_SLOTS_OF_VLLM:
        return False
    text = f"requests of {smallest:,} tokens that the KV cache holds: with more, they would push each other out"
    draft.bound("max_num_seqs", held, text, "memory formula")
    return True


def decide_speculation(draft: Draft, model: Model) -> None:
    """A preset's n-grams of the prompt give way to a head that comes with the model. Raises UsageError."""
    if draft.values.get("spec_method") != "ngram":
        draft.drop("spec_tokens")  # a preset's number is for its n-grams
    elif model.mtp_layers:
        draft.drop("spec_method", "spec_tokens")
        text = f"{model.name} comes with a head that guesses the next tokens"
        draft.decide("spec_method", "mtp", text, "configs/models")
        if draft.values["spec_method"] == "mtp":
            # One layer is asked again for each further token, and errs more often each time.
            draft.decide("spec_tokens", 2, "the head is asked twice", "vllm/config/speculative.py")
    if draft.values.get("spec_method") in ("ngram", "ngram_gpu", "draft_model"):
        draft.decide("spec_tokens", 4, "vLLM asks for a number here", "vllm/config/speculative.py")
    check_speculation(draft.settings())


def decide_reasoning_parser(draft: Draft, model: Model) -> None:
    """Tells the thoughts of a model that is known to think first from its answer, by the parser that is its own."""
    if model.reasoning_parser is not None:
        draft.drop("reasoning_parser")
        draft.decide("reasoning_parser", model.reasoning_parser, f"{model.name} thinks first", "configs/models")


def _needed(draft: Draft, images: int, tokens: int, preset: Preset) -> int:
    """Tokens of a request. Where a person or vLLM fixed the context, one screenshot may leave less room for text."""
    fixed = "max_model_len" in draft.values and draft.reasons["max_model_len"].source in ("you", "repair")
    wanted = draft.values.get("images") or images
    if fixed and (wanted == 1 or "images" in draft.values):
        return int(wanted * tokens + LEAST_TEXT_TOKENS)
    return max(wanted * tokens + TEXT_TOKENS, 0 if fixed else preset.least_context)


def _numbers(draft: Draft, precision: Precision, sm: int | None, preset: Preset, model: Model) -> None:
    """Number formats: of the weights, of the sums, of the KV cache."""
    if sm is not None and sm < 80:
        draft.decide("dtype", "half", "this card has no bfloat16 (it starts at compute capability 8.0)", _SOURCE)
    if precision == "fp8" and model.own_precision == "16-bit":
        native = sm is None or sm >= 89
        method, how = (
            ("fp8_per_channel", "this card computes in fp8")
            if native
            else ("fp8_per_tensor", "computed in 16 bits (Marlin)")
        )
        why = f"8-bit weights, quantised while loading: 16 bits do not leave room; {how}"
        draft.decide("quantization", method, why, _SOURCE)
    if preset.fp8_kv and sm is not None and sm >= 89:
        draft.decide("kv_cache_dtype", "fp8", "halves the KV cache of a token (SM 8.9 and up)", _SOURCE)


def _parallel(draft: Draft, layout: Layout, model: Model) -> None:
    if layout.tensor_parallel > 1:
        draft.decide("tensor_parallel_size", layout.tensor_parallel, layout.reason, "docs/serving.md")
    if layout.tensor_parallel > 1 and model.shape.vision is not None:
        text = "every card keeps the small vision tower whole and takes some of the images: nothing to exchange"
        draft.decide("mm_encoder_tp_mode", "data", text, _SOURCE)
    if layout.pipeline_parallel > 1:
        draft.decide("pipeline_parallel_size", layout.pipeline_parallel, layout.reason, "docs/serving.md")


def _utilization(cards: tuple[Gpu, ...], shares: Mapping[str, float], limits: CardLimits) -> tuple[float, str]:
    """The share of memory: vLLM's default, less on a card that drives a display, less where others use the card."""
    if any(gpu.display for gpu in cards):
        return shares["display"], "this card also drives a display, which needs room"
    if limits.gpu_memory_utilization is not None:
        return limits.gpu_memory_utilization, f"of this card ({limits.source})"
    return shares["headless"], "vLLM's own default; no display on this card"


def _bounded_utilization(draft: Draft, cards: tuple[Gpu, ...]) -> None:
    """An automatic share never asks for more than is free: vLLM refuses to start otherwise."""
    share = free_share(cards)
    if share is None or not draft.reasons["gpu_memory_utilization"].automatic:
        return
    if draft.values["gpu_memory_utilization"] > share:
        draft.values["gpu_memory_utilization"] = share
        draft.reasons["gpu_memory_utilization"] = Reason(
            "other programs use this card: what is free, less a margin, as a share of all", "free memory, measured now"
        )


def _context(draft: Draft, model: Model, budget: Budget, cap: int) -> int:
    """Chooses the context, or checks the person's; 0 where not even the smallest fits."""
    most = model.shape.text.max_positions
    wished = draft.values.get("max_model_len")
    if budget.used + max(0, budget.kv) > budget.total:  # a KV cache of a fixed size that is too large for the card
        return 0
    longest = budget.longest_context
    if wished == "auto":
        return min(most, longest)
    if wished is not None:
        measured = draft.reasons["max_model_len"].source == "repair"  # vLLM itself said that this much fits
        return int(wished) if wished <= most and (measured or longest >= wished) else 0
    bound = min(cap, most) // CUDA_BLOCK * CUDA_BLOCK  # a model's own end (128,000) is a step, too
    within = sorted({step for step in CONTEXT_STEPS if step <= bound} | {bound})
    steps = [step for step in within if (step + budget.states * budget.block) * SLACK <= budget.kv_tokens]
    if not steps:
        steps = [step for step in within[:2] if step <= longest]
    if not steps:
        draft.decide("max_model_len", within[0], "nothing fits", "arithmetic")
        return 0
    text = f"the longest useful context that the KV cache of {budget.kv_tokens:,} tokens holds with some slack"
    draft.decide("max_model_len", steps[-1], text, "memory formula")
    return steps[-1]


def _images(draft: Draft, model: Model, images: int, tokens: int, most: int) -> None:
    """More screenshots than the model's own client keeps, where they fit: history then drops them in blocks."""
    chosen = max(images, most) if images >= model.history_images else images
    text = f"screenshots of {tokens:,} tokens that fit beside the text"
    if chosen > images:
        text = (
            f"{model.name}'s own client keeps {model.history_images}; with {chosen}, old ones are dropped in blocks "
            "and the prefix cache keeps the rest"
        )
    draft.decide("images", chosen, text, "measured: docs/serving.md")


def _edge_reason(model: Model, edge: int, goal: Goal) -> str:
    tokens, native = model.image_tokens(*goal.screen, edge), model.image_tokens(*goal.screen)
    kept = f"stays whole: {tokens:,} tokens" if tokens == native else f"is shrunk from {native:,} to {tokens:,} tokens"
    return f"a {goal.screen[0]}x{goal.screen[1]} screen {kept}; also bounds what vLLM profiles"


def _batch_reason(batched: int) -> str:
    if batched >= 4096:
        return "a screenshot of 2,000 tokens and its prompt are prefilled in one step"
    return "small, for memory: a long prompt is prefilled in several steps"
