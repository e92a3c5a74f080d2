"""What holds a server up: one of seven names, and the numbers that say so."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from foundation.configs import load_config
from serverctl.load.window import Parts, Window

#: "client": the server waits for its clients. "unknown": there is nothing to judge by.
Kind: TypeAlias = Literal["slots", "kv", "prefill", "decode", "images", "client", "unknown"]

NAMES: Mapping[Kind, str] = {
    "slots": "slots (requests at a time)",
    "kv": "the KV cache",
    "prefill": "prefill (computing prompts)",
    "decode": "decode (writing answers)",
    "images": "image processing (scaling and the vision tower)",
    "client": "the clients (too little load)",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A verdict."""

    kind: Kind
    because: str  # one sentence with the numbers

    def to_json(self) -> dict[str, str]:
        """As JSON values."""
        return {"kind": self.kind, "name": NAMES[self.kind], "because": self.because}


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds how many requests a server serves at a time."""

    slots: int | None  # max_num_seqs; None where vLLM chose it
    kv_tokens: int | None  # of all engines' caches
    request_tokens: int | None  # of a request as measured

    @property
    def kv_slots(self) -> int | None:
        """Requests that the KV cache holds at a time."""
        if self.kv_tokens is None or not self.request_tokens:
            return None
        return max(1, self.kv_tokens // self.request_tokens)

    def is_full(self, running: float | None, use: float | None) -> bool:
        """Whether the KV cache had no room for one request more, by the most that ran and was in use while some waited.

        Where it is not known what was in use, as many as it holds must have run.
        """
        holds = self.kv_slots
        assert holds is not None
        assert self.kv_tokens is not None
        assert self.request_tokens is not None
        if use is not None:  # half a request of tolerance: requests differ, and it is seen only now and then
            return use >= 1 - 1.5 * self.request_tokens / self.kv_tokens
        return running is None or holds - 1 <= running <= holds + 1


@cache
def judging() -> Mapping[str, Any]:
    """The numbers that are judged by (configs/tuning.toml)."""
    table: Mapping[str, Any] = load_config("tuning.toml")["judging"]
    return table


def enough(window: Window | None) -> bool:
    """Whether so many requests ended in a window that it says something."""
    return window is not None and window.finished >= judging()["least_requests"]


def find_bottleneck(window: Window | None, slots: int | None, kv_tokens: int | None, vision: float = 0.0) -> Bottleneck:
    """What held a server up in a window of time.

    Args:
        window: of one load; None where there was none.
        slots: max_num_seqs, None where it is not known.
        kv_tokens: tokens that the KV cache holds, None where it is not known.
        vision: 0 to 1: the vision tower's part of a prefill (`arithmetic.vision_share`).
    """
    count = 0 if window is None else window.finished
    if window is None or not (enough(window) or _idles(window)):
        return Bottleneck("unknown", f"{count} requests say nothing; {judging()['least_requests']} are the least")
    parts = window.parts
    if parts is None or parts.whole <= 0:
        return Bottleneck("unknown", "the server does not tell where the time of its requests goes")
    limits = Limits(slots, kv_tokens, window.request_tokens)
    preempted = (window.grown("preemptions") or 0) / window.finished
    if preempted > judging()["much_preemption"]:
        return Bottleneck("kv", f"{preempted:.0%} of the requests were thrown out of the KV cache and computed again")
    if parts.share("queue") >= judging()["much_waiting"]:
        return _of_waiting(window, parts, limits, vision)
    if _idles(window):
        largest = _of_service(window, parts, vision)
        return Bottleneck(
            "client",
            f"only {window.at_once:.2f} requests were in the server in the mean, so it waited for them; "
            f"of a request's own time, {largest.because}",
        )
    return _of_service(window, parts, vision)


def _idles(window: Window) -> bool:
    """Whether a server has mostly nothing to do: that takes fewer requests to see, and some time."""
    long = (window.seconds or 0) >= judging()["least_seconds"] and window.finished > 1
    return window.at_once is not None and window.at_once < judging()["idle_below"] and (long or enough(window))


def _of_waiting(window: Window, parts: Parts, limits: Limits, vision: float) -> Bottleneck:
    """Why requests wait: for one of the slots, for room in the cache, or for the steps of the engine itself."""
    p50 = window.queue_quantile(0.5)
    half = "" if p50 is None else f", half of them {p50:.2f} s and more"
    text = f"requests wait {parts.queue:.2f} s of their {parts.whole:.2f} s{half}"
    running, use, holds = window.most("running"), window.most_while_waiting("kv_use"), limits.kv_slots
    slots = limits.slots
    full = slots is not None and (running >= slots if running is not None else (holds is None or slots <= holds))
    if full and (holds is None or slots is None or holds > slots):
        service, prefill = parts.prefill + parts.decode, parts.prefill + window.beside_prefills * parts.decode
        gain = service / prefill if prefill > 0 else float("inf")
        if gain < judging()["least_gain_of_slots"]:
            return Bottleneck(
                _of_prefill(vision),
                f"{text}, and {prefill / service:.0%} of what each then takes are prompts"
                f"{_said(vision)}: more slots would only wait inside the engine",
            )
        free = "" if holds is None else f", and the KV cache has room for {holds}"
        return Bottleneck("slots", f"{text} for one of {slots} slots{free}")
    if holds is not None and (slots is None or holds <= slots) and limits.is_full(running, use):
        used = "" if use is None else f", {use:.0%} of it in use while they waited"
        held = f"its {limits.kv_tokens:,} tokens hold {holds} of {limits.request_tokens:,}"
        return Bottleneck("kv", f"{text} for room in the KV cache: {held}{used}")
    because = f"{text} although slots and KV cache have room: for the prompts before them{_said(vision)}"
    return Bottleneck(_of_prefill(vision), because)


def _of_prefill(vision: float) -> Kind:
    """What a long prefill is: mostly the vision tower's work, or the prompt's."""
    return "images" if vision > 0.5 else "prefill"


def _said(vision: float) -> str:
    return f" (the vision tower {vision:.0%} of that)" if vision else ""


def _of_service(window: Window, parts: Parts, vision: float) -> Bottleneck:
    """The largest part of what a request takes when nothing waits."""
    slowed = window.beside_prefills * parts.decode
    prefill = parts.prefill + slowed
    tower = vision * prefill
    seconds: dict[Kind, float] = {
        "images": parts.images + tower, "prefill": prefill - tower, "decode": parts.decode - slowed,
    }  # fmt: skip
    kind = max(seconds, key=lambda one: seconds[one])
    what = {
        "images": f"are spent on its images ({parts.images:.2f} s before the engine has them, {tower:.2f} s in the "
        "vision tower)",
        "prefill": "are spent on computing prompts"
        + (f", {slowed:.2f} s of it prompts of others that its answer is written beside" if slowed >= 0.01 else ""),
        "decode": "are spent on writing the answer",
    }[kind]
    share = seconds[kind] / parts.whole
    return Bottleneck(kind, f"{seconds[kind]:.2f} s of {parts.whole:.2f} s ({share:.0%}) {what}")
