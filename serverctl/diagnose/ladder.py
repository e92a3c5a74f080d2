"""Chooses the next start after a failure, or stops with the reason.

It changes only automatic values, one knob per step, in a limited number of starts. Unless asked, it never shrinks
screenshots below 2 Mpx, the floor of accuracy.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from foundation.printing import counted
from serverctl.diagnose.classify import Failure
from serverctl.diagnose.failures import RETRIES, Kind
from serverctl.plan.draft import CONTEXT_STEPS
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.group import Group, share_of
from serverctl.plan.settings import KNOBS, Settings

#: Maximum number of starts, including the first.
MOST_STARTS = 6
#: Smallest automatic pixel budget of a screenshot: a smaller one would shrink 1080p.
LEAST_EDGE = 2_097_152

#: How an error of Python's begins.
_ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")

Action: TypeAlias = Literal["adjust", "retry", "stop"]


@dataclass(frozen=True, slots=True)
class Step:
    """What to do about a failure."""

    action: Action  # start again with changed values, start again as it was, or stop
    because: str  # one sentence for the person
    #: knobs with their new values; `precision` and `model` stand for the choice of checkpoint
    changes: Mapping[str, Any] = field(default_factory=dict)
    wait_for_memory: bool = True  # whether to wait until the card's memory has come back before the next start
    drop_flags: tuple[str, ...] = ()  # flags that this vLLM turned out not to have


def next_step(failure: Failure, plan: Plan, goal: Goal, earlier: tuple[Kind, ...]) -> Step:
    """The next step after a failed start or a death while serving; `earlier` failures are the oldest first."""
    if len(earlier) + 1 >= MOST_STARTS:
        return Step("stop", f"{MOST_STARTS} starts failed.")
    climb = _LADDERS.get(failure.kind)
    if climb is None and failure.kind not in RETRIES:
        return Step("stop", "Starting again would not help.")
    nothing = Step("stop", "No automatic setting is left to change.")
    return next((climb or _retry)(_View(failure, plan, goal, earlier)), nothing)


@dataclass(frozen=True, slots=True)
class _View:
    failure: Failure
    plan: Plan
    goal: Goal
    earlier: tuple[Kind, ...]

    @property
    def settings(self) -> Settings:
        return self.plan.settings

    @property
    def share(self) -> float | None:
        """The planned share of the card's memory; None if vLLM's default applies or it may not be changed."""
        return self.settings.gpu_memory_utilization if self.may("gpu_memory_utilization") else None

    def may(self, knob: str) -> bool:
        """Return whether a setting may be changed automatically."""
        if knob in self.goal.overrides:
            return False
        reason = self.plan.reasons.get(knob)
        if reason is not None and not reason.automatic:
            return False
        flag = KNOBS[knob].flag if knob in KNOBS else None
        return flag is None or not any(word.split("=")[0].split(".")[0] == flag for word in self.goal.extra)

    def lower(self, knob: str, steps: tuple[int, ...]) -> int | None:
        """Return the first step below a knob's current value; None if there is none or the knob may not be changed."""
        now = self.settings.get(knob)
        return next((step for step in steps if step < now), None) if now is not None and self.may(knob) else None


def _adjust(knob: str, value: Any, because: str) -> Step:
    return Step("adjust", because, {knob: value})


def _free_memory(view: _View) -> Iterator[Step]:
    """Wait for memory to come back once, then ask for less."""
    if Kind.FREE_MEM not in view.earlier:
        yield Step("retry", "other programs held the card's memory: waited for it, and looked again what is free")
    numbers = view.failure.numbers
    now = view.settings.gpu_memory_utilization
    if view.may("gpu_memory_utilization") and {"free_gib", "total_gib"} <= numbers.keys():
        share = share_of(numbers["free_gib"], numbers["total_gib"])
        if share >= 0.05 and (now is None or share < now):
            text = f"{numbers['free_gib']} of {numbers['total_gib']} GiB were free: asks for {share:.0%} of the card"
            yield _adjust("gpu_memory_utilization", share, text)


def _shrink(view: _View) -> Iterator[Step]:
    """Less working memory, one knob a step: pixels, batch, requests, then a larger share, then smaller weights."""
    if (dummies := view.failure.numbers.get("dummy_requests", 0)) > 1 and view.may("max_num_seqs"):
        fewer = max(1, int(dummies) // 4)
        yield _adjust("max_num_seqs", fewer, f"{fewer} requests at a time: the sampler's memory grows with them")
    if edge := view.lower("longest_edge", (4_194_304, LEAST_EDGE)):
        text = f"screenshots of at most {edge / 1e6:.1f} Mpx: the largest image is what vLLM measures"
        yield _adjust("longest_edge", edge, text)
    if batched := view.lower("max_num_batched_tokens", (8192, 4096, 2048)):
        yield _adjust("max_num_batched_tokens", batched, f"prefills {batched:,} tokens a step")
    if sequences := view.lower("max_num_seqs", (4, 2, 1)):
        yield _adjust("max_num_seqs", sequences, f"{counted(sequences, 'request')} at a time")
    if view.share is not None and view.failure.kind is not Kind.PROFILE_OOM:
        raised = round(view.share + 0.03, 2)
        # If the free memory is unknown, do not exceed vLLM's default share.
        if raised <= min(0.95, Group(view.plan.gpus).free_share or 0.92):
            yield _adjust("gpu_memory_utilization", raised, f"uses {raised:.0%} of the card")
    yield from _smaller_weights(view)


def _smaller_weights(view: _View) -> Iterator[Step]:
    """Use 8-bit weights, then a 4-bit checkpoint, then a smaller model if the user named none."""
    plan = view.plan
    nvidia = plan.vendor == "nvidia"
    if plan.precision == "16-bit" and nvidia and view.may("quantization") and plan.model.own_precision == "16-bit":
        yield _adjust("precision", "fp8", "8-bit weights")
    smaller = plan.precision in ("16-bit", "fp8") and any(q.bits == 4 for q in plan.model.quantized)
    if smaller and view.may("quantization"):
        yield _adjust("precision", "w4", "a 4-bit checkpoint")
    if view.goal.model is None and plan.model.name != "MAI-UI-2B":
        yield _adjust("model", "MAI-UI-2B", "the smaller model: the larger one does not fit here")


def _kv_short(view: _View) -> Iterator[Step]:
    """Use the context that vLLM says fits, if an agent can use it; then an 8-bit KV cache; then less working memory."""
    fits = int(view.failure.numbers.get("fits", 0))
    tokens = view.plan.model.image_tokens(*view.goal.screen, view.settings.longest_edge)
    floor = min(CONTEXT_STEPS[0], tokens + 3072)
    length = fits // 128 * 128
    if view.may("max_model_len") and fits >= floor and view.settings.max_model_len != length:
        yield _adjust("max_model_len", length, f"a context of {length:,} tokens: vLLM says that {fits:,} fit")
    has_fp8 = bool(view.plan.gpus) and (view.plan.gpus[0].sm or 0) >= 89
    if has_fp8 and view.may("kv_cache_dtype") and view.settings.kv_cache_dtype is None:
        yield _adjust("kv_cache_dtype", "fp8", "the KV cache in 8 bits")
    if view.settings.kv_cache_memory_bytes is None:
        yield from _shrink(view)


def _graphs(view: _View) -> Iterator[Step]:
    """Fewer graphs; if that failed, a smaller share of the card; then no graphs."""
    if view.settings.enforce_eager is None and view.may("max_cudagraph_capture_size"):
        size = view.settings.max_cudagraph_capture_size
        smaller = 8 if size is None or size > 8 else 4 if size > 4 else None
        if smaller is not None:
            yield _adjust("max_cudagraph_capture_size", smaller, f"CUDA graphs for batches up to {smaller} only")
    again = Kind.GRAPH_OOM in view.earlier[-1:] and "gpu_memory_utilization" not in view.goal.adjustments
    if view.share is not None and again:
        yield _adjust("gpu_memory_utilization", round(view.share - 0.03, 2), "leaves 3 % of the card for graphs")
    if not view.settings.enforce_eager and view.may("enforce_eager"):
        yield _adjust("enforce_eager", True, "no CUDA graphs: each token takes longer")


def _runtime(view: _View) -> Iterator[Step]:
    if view.share is not None and view.share > 0.5:
        lower = round(view.share - 0.04, 2)
        yield _adjust("gpu_memory_utilization", lower, f"uses {lower:.0%} of the card, so that requests have room")
    yield from _graphs(view)


def _hpu_memory(view: _View) -> Iterator[Step]:
    """On Gaudi a smaller share for the KV cache leaves more for pictures and graphs; fewer graphs come first."""
    if view.failure.kind is Kind.HPU_GRAPH_OOM and (fewer := view.lower("max_num_seqs", (4, 2, 1))):
        yield _adjust("max_num_seqs", fewer, f"{fewer} requests at a time: each number of them is one more graph")
    share = view.settings.gpu_memory_utilization or 0.9
    if view.plan.vendor != "gaudi" or not view.may("gpu_memory_utilization"):
        return
    if (lower := next((step for step in (0.5, 0.3) if step < share), None)) is not None:
        yield _adjust("gpu_memory_utilization", lower, f"{lower:.0%} of what is free for the KV cache")


def _retry(view: _View) -> Iterator[Step]:
    """Retry once. A start that ended with a Python error or a missing processor instruction is not retried."""
    failure = view.failure
    unknown = failure.kind in (Kind.EXITED, Kind.ENGINE_DIED) and _ERROR.search(failure.evidence)
    useless = unknown or (failure.kind is Kind.CRASHED and failure.numbers.get("signal") == "SIGILL")
    if failure.kind not in view.earlier and (failure.serving or not useless):
        yield Step("retry", RETRIES[failure.kind])


def _port(_: _View) -> Iterator[Step]:
    yield Step("retry", "another program took the port: another one is used", wait_for_memory=False)


def _flag(view: _View) -> Iterator[Step]:
    """Drop a flag of ours that the parser refuses; a person corrects their own flags."""
    flags = tuple(word for word in view.failure.numbers.get("flags", ()) if word.startswith("--"))
    own = {word.split("=")[0] for word in view.goal.extra}
    if flags and not own.intersection(flags):
        yield Step(
            "retry", f"this vLLM does not take {' '.join(flags)}: left out", wait_for_memory=False, drop_flags=flags
        )


def _set(knob: str, value: Any, because: str) -> Callable[[_View], Iterator[Step]]:
    def climb(view: _View) -> Iterator[Step]:
        if view.may(knob) and view.settings.get(knob) != value:
            yield _adjust(knob, value, because)

    return climb


def _other_quantization(view: _View) -> Iterator[Step]:
    if "fp8e4nv" in view.failure.evidence and view.settings.kv_cache_dtype is not None and view.may("kv_cache_dtype"):
        yield _adjust("kv_cache_dtype", None, "the KV cache in 16 bits: this card has no 8-bit floats")
    if view.may("quantization") and view.settings.quantization == "fp8_per_channel":
        yield _adjust("quantization", "fp8_per_tensor", "8-bit weights computed in 16 bits, which older cards can")
    yield from (step for step in _smaller_weights(view) if step.changes.get("precision") != "fp8")


def _max_len(view: _View) -> Iterator[Step]:
    most = view.failure.numbers.get("most")
    if most and view.may("max_model_len") and view.settings.max_model_len != int(most):
        yield _adjust("max_model_len", int(most), f"the model was made for {most:,} tokens")


def _attention(view: _View) -> Iterator[Step]:
    if view.settings.attention_backend is not None and view.may("attention_backend"):
        yield _adjust("attention_backend", None, "vLLM chooses the attention backend")
    if view.settings.kv_cache_dtype is not None and view.may("kv_cache_dtype"):
        yield _adjust("kv_cache_dtype", None, "the KV cache in 16 bits, which every backend has")


_LADDERS: Mapping[Kind, Callable[[_View], Iterator[Step]]] = {
    Kind.FREE_MEM: _free_memory,
    Kind.NO_KV: _shrink,
    Kind.AUTOFIT_ZERO: _shrink,
    Kind.PROFILE_OOM: _shrink,
    Kind.KV_SHORT: _kv_short,
    Kind.LOAD_OOM: _smaller_weights,
    Kind.GRAPH_OOM: _graphs,
    Kind.RUNTIME_OOM: _runtime,
    Kind.HPU_OOM: _hpu_memory,
    Kind.HPU_GRAPH_OOM: _hpu_memory,
    Kind.PORT: _port,
    Kind.FLAG: _flag,
    Kind.BF16: _set("dtype", "half", "this card has no bfloat16"),
    Kind.QUANT_ONLINE: _set("quantization", "fp8_per_tensor", "the name of the method in this vLLM"),
    Kind.QUANT_CC: _other_quantization,
    Kind.MAX_LEN: _max_len,
    Kind.ATTENTION: _attention,
}
