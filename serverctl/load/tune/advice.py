"""Advises against a bottleneck: changes to try in order, and what only the person or the client can do.

Contrary to common advice: KV use above 80 % is no risk, because the cache is allocated beforehand (full means waiting
and preemption). The "maximum concurrency" of vLLM's log is no value for max_num_seqs, because it assumes requests as
long as the context: slots = KV tokens / tokens of a request. Long contexts need a higher utilisation, not a lower one.
vLLM's waiting reason "capacity" is any scheduling capacity, slots as well as room in the cache.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from serverctl.load.metrics import ServerMetrics
from serverctl.load.tune.bottleneck import Bottleneck, Kind, kv_slots, limits
from serverctl.load.window import Window
from serverctl.plan.settings import KNOBS

#: Hit rates of the prefix cache below this deserve a hint: a growing history reaches 0.7 to 0.85 (docs/serving.md).
_LOW_PREFIX_RATE = 0.3


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, or to know."""

    setting: str  # the knob; "" if it is no knob of the server
    value: Any  # its new value
    now: Any  # its value now, None if vLLM chose it
    because: str  # why, with the numbers
    restart: bool = True  # whether applying it needs a restart


@dataclass(frozen=True, slots=True)
class Reading:
    """The input of advice."""

    bottleneck: Bottleneck
    window: Window | None  # the load that was judged
    metrics: ServerMetrics  # of the server now
    settings: Mapping[str, Any]  # the plan's knobs
    context: int | None = None  # the effective max_model_len
    fixed: frozenset[str] = frozenset()  # knobs that the person set
    processor: bool = False  # whether it serves without a card
    cores: int = 1  # of the processor

    @property
    def request_tokens(self) -> int | None:
        """Prompt and output tokens of a mean request, as seen."""
        return None if self.window is None else self.window.request_tokens

    @property
    def kv_slots(self) -> int | None:
        """Requests that the KV cache holds at a time."""
        return kv_slots(self.metrics.kv_tokens, self.request_tokens)

    @property
    def clients(self) -> int:
        """Requests at once, as seen."""
        return 1 if self.window is None else self.window.clients

    def change(self, setting: str, value: Any, because: str) -> Advice:
        """Advise another value of a knob."""
        return Advice(setting, value, self.settings.get(setting), because)


def advise(reading: Reading) -> list[Advice]:
    """All known advice, the most promising first, each knob once."""
    found: list[Advice] = []
    if reading.bottleneck.kind == "client":
        found.append(_to_know("the server waits for its clients; none of its settings would make them faster"))
    for advice in chain.from_iterable(rule(reading) for rule in (*_FOR[reading.bottleneck.kind], _context, _prefix)):
        if not advice.setting or all(one.setting != advice.setting for one in found):
            found.append(advice)
    return found


def changes(advice: list[Advice], fixed: frozenset[str]) -> list[Advice]:
    """The advice that `--apply` may try, in this order: knobs that the person has not set."""
    return [one for one in advice if one.setting in KNOBS and one.setting not in fixed]


def _to_know(because: str) -> Advice:
    """Return advice that changes no setting of the server."""
    return Advice("", None, None, because, restart=False)


def _more_slots(reading: Reading) -> Iterator[Advice]:
    holds, now = reading.kv_slots, reading.settings.get("max_num_seqs")
    if now is None:
        return
    wanted = min(reading.clients, holds or reading.clients, limits("changing")["most_sequences"])
    if wanted > now:
        room = "" if holds is None else f"; the KV cache holds {holds} requests of {reading.request_tokens:,} tokens"
        yield reading.change("max_num_seqs", wanted, f"up to {reading.clients} requests came at once{room}")


def _larger_cache(reading: Reading) -> Iterator[Advice]:
    """A larger KV cache: in bytes if it was given in bytes, else a larger share of the card."""
    settings, request, held = reading.settings, reading.request_tokens, reading.metrics.kv_tokens
    size = settings.get("kv_cache_memory_bytes")
    if size and request and held:
        # Add room for one more request, because the next request is prefilled meanwhile and some blocks are half full.
        wanted = min((reading.clients + 1) * request / held, limits("changing")["most_kv_growth"])
        if wanted > 1.1:
            grown = -(-int(size * wanted) // 2**20) * 2**20
            because = f"{reading.clients} requests of {request:,} tokens need {wanted:.1f} times the cache of now"
            yield reading.change("kv_cache_memory_bytes", grown, because)
    share = settings.get("gpu_memory_utilization")
    if not reading.processor and not size and share is not None and share < limits("changing")["most_utilization"]:
        because = "a larger share of the card is a larger cache"
        yield reading.change("gpu_memory_utilization", limits("changing")["most_utilization"], because)
    if not reading.processor and settings.get("kv_cache_dtype") is None:
        yield _to_know(
            "--set kv_cache_dtype=fp8 would hold twice as many tokens (compute capability 8.9 and newer); what that "
            "costs in accuracy is not measured"
        )


def _fewer_at_a_time(reading: Reading) -> Iterator[Advice]:
    """Advise as many slots as the cache holds requests, because preemption costs more than waiting."""
    holds, now = reading.kv_slots, reading.settings.get("max_num_seqs")
    preempted = reading.window is not None and (reading.window.grown("preemptions") or 0) > 0
    if preempted and holds is not None and (now is None or holds < now):
        yield reading.change("max_num_seqs", holds, f"the KV cache holds {holds} requests; more are thrown out again")


def _smaller_images(reading: Reading) -> Iterator[Advice]:
    edge, least = reading.settings.get("longest_edge"), limits("changing")["least_pixels"]
    if reading.window is None or not reading.window.images or edge is None or edge <= least:
        return
    yield reading.change(
        "longest_edge",
        least,
        f"screenshots have up to {edge:,} pixels; {least:,} keep 1920x1080 whole, but small things on larger screens "
        "are harder to hit",
    )


def _more_renderers(reading: Reading) -> Iterator[Advice]:
    """More threads for images: by default (renderer_num_workers is 1), vLLM prepares one request's images at a time."""
    parts = None if reading.window is None else reading.window.parts
    if parts is None or parts.share("images") < limits("changing")["much_before_the_engine"]:
        return  # the vision tower takes the time, and threads do not help it
    now = reading.settings.get("renderer_num_workers") or 1
    wanted = min(reading.clients, reading.cores, limits("changing")["most_renderers"])
    if wanted > now:
        because = f"up to {reading.clients} requests came at once, and {now} thread prepares their images"
        yield reading.change("renderer_num_workers", wanted, because)


def _image_cache_off(reading: Reading) -> Iterator[Advice]:
    if reading.settings.get("mm_processor_cache_gb") == 0:
        because = "no processed image is kept: those of an agent's history are prepared again at every step"
        yield reading.change("mm_processor_cache_gb", limits("changing")["image_cache_gb"], because)


def _larger_steps(reading: Reading) -> Iterator[Advice]:
    """A larger step, if a prompt takes several steps of the engine to compute."""
    budget = reading.settings.get("max_num_batched_tokens")
    prompt = None if reading.window is None else reading.window.prompt_tokens
    if budget is None or prompt is None or prompt <= budget:
        return
    wanted = min(2 ** (int(prompt) - 1).bit_length(), limits("changing")["most_batched_tokens"])
    if wanted > budget:
        because = f"a prompt of {prompt:,.0f} tokens is computed in steps of {budget:,}"
        yield reading.change("max_num_batched_tokens", wanted, because)


def _quicker_decode(reading: Reading) -> Iterator[Advice]:
    if not reading.processor and reading.settings.get("enforce_eager"):
        yield reading.change("enforce_eager", False, "without CUDA graphs every token waits for the processor")
    if reading.settings.get("spec_method") is None:
        yield _to_know(
            "guessing tokens ahead may help where answers repeat the history: `mai-server bench --replay RUN --compare "
            "latency speculative` measures it on your own runs"
        )
    if not reading.processor and reading.settings.get("quantization") is None:
        yield _to_know("8-bit weights (--set quantization=fp8_per_channel) are read in half the time for every token")


def _context(reading: Reading) -> Iterator[Advice]:
    """A shorter context, if the cache does not hold one request of the whole context."""
    tokens, context = reading.metrics.kv_tokens, reading.context
    if tokens is None or context is None or tokens >= context:
        return
    text = f"the KV cache holds {tokens:,} tokens, less than one request of the whole context ({context:,})"
    yield Advice("max_model_len", tokens // 128 * 128, context, text)


def _prefix_cache(reading: Reading) -> Iterator[Advice]:
    if reading.settings.get("enable_prefix_caching") is False:
        because = "the prefix cache is off: the history of an agent is computed anew at every step"
        yield reading.change("enable_prefix_caching", True, because)


def _prefix(reading: Reading) -> Iterator[Advice]:
    """How the client can use the prefix cache, if prompts take the time and few tokens are cached."""
    window = reading.window
    hits = None if window is None else window.prefix_hits
    if window is None or hits is None or hits >= _LOW_PREFIX_RATE or not window.images:
        return
    if reading.bottleneck.kind in ("prefill", "images", "kv"):
        yield _to_know(
            f"only {hits:.0%} of prompt tokens come from the prefix cache: a sliding window of screenshots "
            "computes all of them anew at every step; the agent's --history block or grow keeps the prompt's beginning"
        )


_Rule = Callable[[Reading], Iterator[Advice]]
_FOR: Mapping[Kind, tuple[_Rule, ...]] = {
    "slots": (_more_slots,),
    "kv": (_larger_cache, _fewer_at_a_time, _smaller_images),
    "prefill": (_prefix_cache, _larger_steps, _smaller_images),
    "decode": (_quicker_decode,),
    "images": (_image_cache_off, _prefix_cache, _more_renderers, _smaller_images),
    "client": (),
    "unknown": (),
}
