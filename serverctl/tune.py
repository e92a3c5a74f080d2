"""Reads a server's own numbers and says what to change and why: the guides' rules, as vLLM's behaviour corrects them.

What the guides say and what holds:
- "KV use above 80 % risks running out of memory": no, the cache is allocated beforehand; full means waiting and
  preemption.
- "max_num_seqs = the maximum concurrency of the log": that number assumes that every request is as long as the context.
  slots = KV tokens / tokens of a request.
- "long contexts: lower the utilisation": the other way round.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serverctl.metrics import ServerMetrics
from serverctl.plan.settings import KNOBS

#: Below this many finished requests a rate says little.
LEAST_REQUESTS = 20
#: Hit rates of the prefix cache below this are worth a look: a growing history reaches 0.7 to 0.85 (docs/serving.md).
_LOW_PREFIX_RATE = 0.3
_LOW_IMAGE_RATE = 0.3
#: The share of the KV cache in use below which more requests at a time would fit.
_LITTLE_USED = 0.3
#: Requests at a time are never raised above this by advice: buffers grow with it.
_MOST_SEQUENCES = 256


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, or to know.

    Args:
        setting: the knob; "" for what is not a knob of the server.
        value: its new value.
        now: its value now, None where vLLM chose it.
        because: why, with the numbers.
        restart: whether applying it needs a restart.
    """

    setting: str
    value: Any
    now: Any
    because: str
    restart: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """What advice is made from.

    Args:
        metrics: of the server.
        settings: the plan's knobs.
        context: the effective max_model_len.
        expected_tokens: of one request, where known (screenshots and text).
        fixed: knobs that the person set.
    """

    metrics: ServerMetrics
    settings: Mapping[str, Any]
    context: int | None
    expected_tokens: int | None
    fixed: frozenset[str] = frozenset()


def advise(reading: Reading) -> list[Advice]:
    """What to change, the most useful first; empty where nothing would help."""
    found: list[Advice] = []
    for rule in (_preempted, _waiting, _idle_slots, _context, _prefix, _images):
        found += rule(reading)
    settled: set[str] = set()
    kept = []
    for advice in found:
        if advice.setting in settled:
            continue
        if advice.setting:
            settled.add(advice.setting)
        kept.append(advice)
    return kept


def changes(advice: list[Advice], fixed: frozenset[str]) -> dict[str, Any]:
    """What `--apply` changes: knobs of the server that are not the person's own."""
    return {one.setting: one.value for one in advice if one.setting in KNOBS and one.setting not in fixed}


def request_tokens(reading: Reading) -> int | None:
    """Tokens of a request: as measured (prompt and answer of the finished ones), else as planned."""
    metrics = reading.metrics
    known = metrics.prompt_tokens is not None and metrics.generation_tokens is not None
    if known and metrics.finished and metrics.finished >= LEAST_REQUESTS:
        return round(((metrics.prompt_tokens or 0) + (metrics.generation_tokens or 0)) / metrics.finished)
    return reading.expected_tokens


def _slots(reading: Reading) -> int | None:
    """Requests that the KV cache holds at a time: its tokens over the tokens of a request."""
    tokens, each = reading.metrics.kv_tokens, request_tokens(reading)
    return None if tokens is None or not each else max(1, tokens // each)


def _preempted(reading: Reading) -> list[Advice]:
    """Preemption computes requests twice: fewer at a time is faster."""
    metrics, slots = reading.metrics, _slots(reading)
    now = reading.settings.get("max_num_seqs")
    if not metrics.preemptions or not metrics.finished or metrics.preemptions < 0.02 * metrics.finished:
        return []
    share = metrics.preemptions / metrics.finished
    text = (
        f"{metrics.preemptions} preemptions in {metrics.finished} requests ({share:.0%}): the KV cache was too "
        f"small for all at once"
    )
    if slots is not None and (now is None or slots < now):
        return [
            Advice(
                "max_num_seqs", slots, now, f"{text}; it holds {slots} requests of {request_tokens(reading):,} tokens"
            )
        ]
    utilization = reading.settings.get("gpu_memory_utilization")
    if utilization is not None and utilization < 0.92:
        return [
            Advice("gpu_memory_utilization", 0.92, utilization, f"{text}; a larger share of the card makes it larger")
        ]
    return [
        Advice(
            "", None, None, f"{text}; shorter histories, smaller screenshots or 8-bit weights would make room", False
        )
    ]


def _waiting(reading: Reading) -> list[Advice]:
    """Requests wait although the KV cache has room: more at a time."""
    metrics, slots = reading.metrics, _slots(reading)
    now = reading.settings.get("max_num_seqs")
    if not metrics.waiting or now is None or metrics.kv_usage is None:
        return []
    if metrics.waiting_for_capacity:
        text = f"{metrics.waiting_for_capacity} requests wait for room in the KV cache"
        return [Advice("", None, None, f"{text}: a larger card, 8-bit weights, or shorter requests", False)]
    if metrics.kv_usage > 0.8 or slots is None:
        return []
    wanted = min(slots, now + metrics.waiting, _MOST_SEQUENCES)
    if wanted <= now:
        return []
    text = f"{metrics.waiting} requests wait while {1 - metrics.kv_usage:.0%} of the KV cache is free; it holds {slots}"
    return [Advice("max_num_seqs", wanted, now, text)]


def _idle_slots(reading: Reading) -> list[Advice]:
    """Slots that the KV cache could never fill: only worth saying, they cost some memory."""
    slots, now = _slots(reading), reading.settings.get("max_num_seqs")
    if slots is None or now is None or now <= 2 * slots or now <= 2:
        return []
    text = (
        f"the KV cache holds {slots} requests of {request_tokens(reading):,} tokens; more slots only queue inside "
        f"the engine"
    )
    return [Advice("max_num_seqs", slots, now, text)]


def _context(reading: Reading) -> list[Advice]:
    """A cache that not even one longest request fits into."""
    tokens, context = reading.metrics.kv_tokens, reading.context
    if tokens is None or context is None or tokens >= context:
        return []
    text = f"the KV cache holds {tokens:,} tokens, less than one request of the whole context ({context:,})"
    return [Advice("max_model_len", tokens // 128 * 128, context, text)]


def _prefix(reading: Reading) -> list[Advice]:
    share, finished = reading.metrics.prefix_hit_rate, reading.metrics.finished or 0
    if share is None or finished < LEAST_REQUESTS or share >= _LOW_PREFIX_RATE:
        return []
    text = (
        f"only {share:.0%} of prompt tokens come from the prefix cache: a sliding window of screenshots computes "
        f"all of them "
        "anew at every step; the agent's --history block or grow keeps the beginning of the prompt"
    )
    return [Advice("", None, None, text, False)]


def _images(reading: Reading) -> list[Advice]:
    share, finished = reading.metrics.image_hit_rate, reading.metrics.finished or 0
    images = reading.settings.get("images") or 1
    if share is None or finished < LEAST_REQUESTS or share >= _LOW_IMAGE_RATE or images < 2:
        return []
    now = reading.settings.get("mm_processor_cache_gb")
    if now is not None and now < 4:
        text = (
            f"only {share:.0%} of images were processed before: the cache may be too small for the agents that share it"
        )
        return [Advice("mm_processor_cache_gb", 4.0, now, text)]
    return []
