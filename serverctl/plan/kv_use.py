"""Says what the use of a running server's KV cache means for its slots: the same rule for logs and for metrics."""

from dataclasses import dataclass

#: From the first share on the KV cache counts as full, below the second as hardly used: the serving guides aim between.
_FULL, _LOW = 0.85, 0.30
#: The share that suggested slots should fill.
_AIM = 0.60
#: vLLM's largest sensible number of slots.
_MOST_SLOTS = 1024


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
            f"The KV cache is hardly used: {share} by {use.running} requests at a time.",
            f"It holds about {fitting} such requests: send more at a time (with --set max_num_seqs={fitting}), or use "
            "the memory for a longer context or a larger model.",
        )
    return None
