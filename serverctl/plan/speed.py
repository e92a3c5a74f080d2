"""Estimates how fast a plan will be, from the card's data sheet.

Each token reads its weights and the preceding KV cache once:

    seconds a token = (weights / TP + requests x context x KV bytes a token) / bandwidth (+ layers x launch time)

Hybrid models also read and write their states. A prompt costs 2 operations per parameter and token. There is no
estimate if the bandwidth or the compute rate is unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from serverctl.hardware.facts import Gpu
from serverctl.models.model import Model
from serverctl.plan.goal import Plan
from serverctl.plan.memory import Budget, left_to_vllm
from serverctl.plan.settings import Settings


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a number; both ends are equal if it was measured."""

    low: float
    high: float

    def times(self, factor: float) -> "Range":
        """Multiply both ends by a positive factor."""
        return Range(self.low * factor, self.high * factor)

    def plus(self, other: "Range") -> "Range":
        """Add two ranges."""
        return Range(self.low + other.low, self.high + other.high)

    def per(self, amount: float) -> "Range":
        """Divide an amount by this range, whose ends must be above 0. The ends swap."""
        return Range(amount / self.high, amount / self.low)


@dataclass(frozen=True, slots=True)
class SpeedTable:
    """The numbers of `configs/speed.toml`."""

    least_seconds_a_layer: float
    seconds_a_layer: float
    least_share_of_compute: float
    host_gb_s: Sequence[float]  # PCIe, at least and at most
    computed_per_image_token: float
    text_tokens: int
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of a plan; None is unknown. Rates are for all its servers together, seconds for one request."""

    request_tokens: int  # tokens of one request: its screenshots, its text, its answer
    at_once: int  # such requests that all servers hold at a time
    one: Range | None = None  # tokens a second of one request alone
    all_of_them: Range | None = None  # tokens a second when as many run as the servers hold
    prompt_s: Range | None = None  # seconds until a step's prompt is computed, one request alone
    step_s: Range | None = None  # seconds of one agent's step
    steps_per_hour: Range | None = None  # of all agents that the servers hold
    answer_tokens: int = 0  # the answer's part of `request_tokens`, thoughts included
    measured: str = ""  # where it was measured; "" for an estimate


def bytes_a_token(model: Model, settings: Settings, budget: Budget, requests: int = 1) -> float:
    """Return the bytes of weights that one card reads to generate one token for each request.

    The vision tower is excluded: it only processes images. Only the experts that the requests use are counted.
    """
    text, stages = model.shape.text, settings.pipeline_parallel_size or 1
    weights = max(1, budget.weights - model.vision_bytes) * stages
    if not text.experts:
        return weights
    dense = text.embedding_parameters + text.layers * 2 * text.hidden * (text.heads + text.kv_heads) * text.head_dim
    total = text.embedding_parameters + text.block_parameters
    used = min(1.0, requests * text.experts_used / text.experts)
    return weights * ((dense + (total - dense) * used) / total)


def most_tokens_a_second(model: Model, settings: Settings, budget: Budget, gpu: Gpu) -> float | None:
    """Return the upper bound in tokens/s for one request, from the bandwidth; None if unknown or with speculation."""
    if gpu.bandwidth_gb_s is None or settings.spec_method is not None or budget.offloaded:
        return None
    return gpu.bandwidth_gb_s * 1e9 / bytes_a_token(model, settings, budget)


def speed_of(plan: Plan, table: SpeedTable, screen: tuple[int, int]) -> Speed:
    """Estimate the speed of a plan from the data sheets of its cards, for a screen of (width, height) pixels."""
    model, settings = plan.model, plan.settings
    image = model.image_tokens(*screen, settings.longest_edge) if model.shape.vision else 0
    kept = min(model.history_images, settings.images or 0)
    written = max(table.answer_tokens, model.answer_tokens[0])
    request = kept * image + table.text_tokens + written
    sequences = settings.max_num_seqs or left_to_vllm(settings, plan.budget.total)[0]
    held = max(1, min(sequences, plan.budget.held(request)))
    speed = Speed(request, held * len(plan.replicas) * plan.engines, answer_tokens=written)
    if not plan.gpus or plan.gpus[0].bandwidth_gb_s is None or settings.spec_method is not None:
        return speed
    launch = _launch(plan, table)
    alone, together = (_seconds_a_token(plan, launch, request, requests) for requests in (1, held))
    servers = len(plan.replicas) * plan.engines
    speed = replace(speed, one=alone.per(1), all_of_them=together.per(held).times(servers))
    if (prompt := _prompt_seconds(plan, table, image)) is None:
        return speed
    return replace(
        speed,
        prompt_s=prompt,
        step_s=prompt.plus(alone.times(written)),
        steps_per_hour=prompt.plus(together.times(written / held)).per(3600.0 * servers),
    )


def measured_speed(speed: Speed, found: Mapping[str, Any]) -> Speed:
    """Replace estimates by measurements: `tokens_per_s` of one request and, if known, `prompt_s`, `all_tokens_per_s`
    and `steps_per_hour`."""
    one = _exactly(found.get("tokens_per_s")) or speed.one
    everybody = _exactly(found.get("all_tokens_per_s")) or speed.all_of_them
    prompt = _exactly(found.get("prompt_s")) or speed.prompt_s
    step = None
    if one is not None and prompt is not None:
        step = prompt.plus(one.per(speed.answer_tokens))
    steps = _exactly(found.get("steps_per_hour")) or speed.steps_per_hour
    source = str(found["source"])
    return replace(
        speed, one=one, all_of_them=everybody, prompt_s=prompt, step_s=step, steps_per_hour=steps, measured=source
    )


def _exactly(value: float | None) -> Range | None:
    return None if not value or value <= 0 else Range(value, value)


def _launch(plan: Plan, table: SpeedTable) -> Range:
    """Return the seconds of a decoding step that are not reading the card's memory: launches, and offloaded weights."""
    layers = plan.model.shape.text.layers
    sent = plan.budget.offloaded * (plan.settings.pipeline_parallel_size or 1)  # to the card, for every step
    slow, fast = (sent / (rate * 1e9) for rate in table.host_gb_s)
    return Range(table.least_seconds_a_layer * layers + fast, table.seconds_a_layer * layers + slow)


def _seconds_a_token(plan: Plan, launch: Range, context: int, requests: int) -> Range:
    """Return the seconds of one decoding step, which generates one token for each request."""
    bandwidth = (plan.gpus[0].bandwidth_gb_s or 0) * 1e9
    budget = plan.budget
    cache = (context + budget.states * budget.block) * budget.token  # a state is read and written: its two copies
    read = bytes_a_token(plan.model, plan.settings, budget, requests) + requests * cache
    return Range(read / bandwidth + launch.low, read / bandwidth + launch.high)


def _prompt_seconds(plan: Plan, table: SpeedTable, image: int) -> Range | None:
    """Return the seconds to prefill the new part of a step's prompt: its tokens and its image patches."""
    tokens = image * table.computed_per_image_token or table.text_tokens
    return _prefill_seconds(plan, table, tokens, image)


def _prefill_seconds(plan: Plan, table: SpeedTable, tokens: float, image_tokens: int) -> Range | None:
    """Return the seconds to compute `tokens` of a prompt, with `image_tokens` of pictures that were not seen before.

    None if the card's compute rate is unknown.
    """
    rate = plan.gpus[0].tflops
    if rate is None:
        return None
    text, vision = plan.model.shape.text, plan.model.shape.vision
    idle = text.expert_parameters * (1 - text.experts_used / text.experts) if text.experts else 0
    operations = 2 * (text.block_parameters - idle) * tokens
    if vision is not None:
        operations += 2 * vision.parameters * image_tokens * vision.merge**2
    fastest = operations / (rate * 1e12 * (len(plan.gpus) // plan.engines))  # one engine computes a request
    return Range(fastest, fastest / table.least_share_of_compute)


@dataclass(frozen=True, slots=True)
class PromptSpeed:
    """The speed of one request by the length of its prompt, alone on the server."""

    images: int  # screenshots in the prompt
    prompt_tokens: int
    first_token_s: Range  # nothing of the prompt is in the prefix cache
    next_step_s: Range  # the prefix cache holds all but the newest screenshot
    tokens_per_s: Range


#: The most screenshots of a prompt to estimate for.
_MOST_IMAGES = 6


def speed_by_prompt(plan: Plan, table: SpeedTable, screen: tuple[int, int]) -> tuple[PromptSpeed, ...]:
    """Estimate the first token and the tokens/s for prompts of one to six screenshots; () if the card is unknown."""
    model, settings = plan.model, plan.settings
    if not plan.gpus or plan.gpus[0].bandwidth_gb_s is None or settings.spec_method is not None:
        return ()
    image = model.image_tokens(*screen, settings.longest_edge) if model.shape.vision else 0
    launch = _launch(plan, table)
    found = []
    for images in range(1, min(_MOST_IMAGES, settings.images or 0) + 1) if image else ():
        tokens = images * image + table.text_tokens
        full_prompt = _prefill_seconds(plan, table, tokens, images * image)
        newest = _prompt_seconds(plan, table, image)
        if full_prompt is not None and newest is not None:
            each = _seconds_a_token(plan, launch, tokens, 1).per(1)
            found.append(PromptSpeed(images, tokens, full_prompt, newest, each))
    return tuple(found)
