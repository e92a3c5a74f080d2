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
#: Requests at a time are never raised above this by advice: buffers grow with it.
_MOST_SEQUENCES = 256


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, or to know."""

    setting: str  # the knob; "" for what is not a knob of the server
    value: Any  # its new value
    now: Any  # its value now, None where vLLM chose it
    because: str  # why, with the numbers
    restart: bool = True  # whether applying it needs a restart


@dataclass(frozen=True, slots=True)
class Reading:
    """What advice is made from."""

    metrics: ServerMetrics  # of the server
    settings: Mapping[str, Any]  # the plan's knobs
    context: int | None  # the effective max_model_len
    expected_tokens: int | None  # of one request, where known (screenshots and text)
    fixed: frozenset[str] = frozenset()  # knobs that the person set

    @property
    def request_tokens(self) -> int | None:
        """Tokens of a request: as measured (prompt and answer of the finished ones), else as planned."""
        prompt, answer, finished = self.metrics.prompt_tokens, self.metrics.generation_tokens, self.metrics.finished
        if prompt is not None and answer is not None and finished and finished >= LEAST_REQUESTS:
            return round((prompt + answer) / finished)
        return self.expected_tokens

    @property
    def slots(self) -> int | None:
        """Requests that the KV cache holds at a time: its tokens over the tokens of a request."""
        tokens, each = self.metrics.kv_tokens, self.request_tokens
        return None if tokens is None or not each else max(1, tokens // each)

    def advice(self, setting: str, value: Any, because: str) -> Advice:
        """Another value of a knob."""
        return Advice(setting, value, self.settings.get(setting), because)


def advise(reading: Reading) -> list[Advice]:
    """What to change, the most useful first, each knob once; empty where nothing would help."""
    found: list[Advice] = []
    for rule in (_preempted, _waiting, _idle_slots, _context, _prefix, _images):
        advice = rule(reading)
        if advice is not None and not (advice.setting and any(one.setting == advice.setting for one in found)):
            found.append(advice)
    return found


def changes(advice: list[Advice], fixed: frozenset[str]) -> dict[str, Any]:
    """What `--apply` changes: knobs of the server that are not the person's own."""
    return {one.setting: one.value for one in advice if one.setting in KNOBS and one.setting not in fixed}


def _to_know(because: str) -> Advice:
    """Nothing that a restart of the server would change."""
    return Advice("", None, None, because, restart=False)


def _preempted(reading: Reading) -> Advice | None:
    """Preemption computes requests twice: fewer at a time is faster."""
    metrics, slots = reading.metrics, reading.slots
    if not metrics.preemptions or not metrics.finished or metrics.preemptions < 0.02 * metrics.finished:
        return None
    share = metrics.preemptions / metrics.finished
    text = (
        f"{metrics.preemptions} preemptions in {metrics.finished} requests ({share:.0%}): the KV cache was too small "
        "for all at once"
    )
    now = reading.settings.get("max_num_seqs")
    if slots is not None and (now is None or slots < now):
        held = f"it holds {slots} requests of {reading.request_tokens:,} tokens"
        return reading.advice("max_num_seqs", slots, f"{text}; {held}")
    if (reading.settings.get("gpu_memory_utilization") or 1) < 0.92:
        return reading.advice("gpu_memory_utilization", 0.92, f"{text}; a larger share of the card makes it larger")
    return _to_know(f"{text}; shorter histories, smaller screenshots or 8-bit weights would make room")


def _waiting(reading: Reading) -> Advice | None:
    """Requests wait although the KV cache has room: more at a time."""
    metrics, slots = reading.metrics, reading.slots
    now = reading.settings.get("max_num_seqs")
    if not metrics.waiting or now is None or metrics.kv_usage is None:
        return None
    if metrics.waiting_for_capacity:
        text = f"{metrics.waiting_for_capacity} requests wait for room in the KV cache"
        return _to_know(f"{text}: a larger card, 8-bit weights, or shorter requests")
    wanted = min(slots or 0, now + metrics.waiting, _MOST_SEQUENCES)
    if metrics.kv_usage > 0.8 or wanted <= now:
        return None
    free = f"{1 - metrics.kv_usage:.0%} of the KV cache is free; it holds {slots}"
    return reading.advice("max_num_seqs", wanted, f"{metrics.waiting} requests wait while {free}")


def _idle_slots(reading: Reading) -> Advice | None:
    """Slots that the KV cache could never fill: only worth saying, they cost some memory."""
    slots, now = reading.slots, reading.settings.get("max_num_seqs")
    if slots is None or now is None or now <= 2 * slots or now <= 2:
        return None
    text = f"the KV cache holds {slots} requests of {reading.request_tokens:,} tokens"
    return reading.advice("max_num_seqs", slots, f"{text}; more slots only queue inside the engine")


def _context(reading: Reading) -> Advice | None:
    """A cache that not even one longest request fits into."""
    tokens, context = reading.metrics.kv_tokens, reading.context
    if tokens is None or context is None or tokens >= context:
        return None
    text = f"the KV cache holds {tokens:,} tokens, less than one request of the whole context ({context:,})"
    return Advice("max_model_len", tokens // 128 * 128, context, text)


def _is_low(rate: float | None, least: float, reading: Reading) -> bool:
    return rate is not None and rate < least and (reading.metrics.finished or 0) >= LEAST_REQUESTS


def _prefix(reading: Reading) -> Advice | None:
    share = reading.metrics.prefix_hit_rate
    if not _is_low(share, _LOW_PREFIX_RATE, reading):
        return None
    return _to_know(
        f"only {share:.0%} of prompt tokens come from the prefix cache: a sliding window of screenshots computes all "
        "of them anew at every step; the agent's --history block or grow keeps the beginning of the prompt"
    )


def _images(reading: Reading) -> Advice | None:
    share, cache_gb = reading.metrics.image_hit_rate, reading.settings.get("mm_processor_cache_gb")
    few = (reading.settings.get("images") or 1) < 2
    if few or cache_gb is None or cache_gb >= 4 or not _is_low(share, _LOW_IMAGE_RATE, reading):
        return None
    text = f"only {share:.0%} of images were processed before"
    return reading.advice(
        "mm_processor_cache_gb", 4.0, f"{text}: the cache may be too small for the agents that share it"
    )
