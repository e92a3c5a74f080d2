"""Names the bottleneck of a server (one of seven), with the numbers that show it.

vLLM has no metric of the vision tower's share of a prefill, so it is computed from the model's layers. Multiplications
and additions are counted: two for each parameter and token, and four for each pair of tokens, layer and element that
attention looks at (half of them if a token sees only those before it). The share of the arithmetic is the share of
the time if both parts run equally well on the processor; it shows which part is larger, not an exact share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from foundation.configs import load_config
from serverctl.load.window import Parts, Window
from serverctl.models.model import Model
from serverctl.models.shape import TextShape, VisionShape

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

#: The share of Qwen2.5-VL's 32 vision layers that look at the whole image (config.json: fullatt_block_indexes).
_WHOLE_IMAGE_LAYERS = {"qwen2_5_vl": 4 / 32}
#: Assumed text tokens of a prompt that is longer than images of the planned size explain.
_TEXT_TOKENS = 2000
#: From this share of a request's time, the preparation before the engine does more than tokenise text.
_MORE_THAN_TEXT = 0.05


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A verdict."""

    kind: Kind
    because: str  # one sentence with the numbers

    def to_json(self) -> dict[str, str]:
        """The verdict as JSON values."""
        return {"kind": self.kind, "name": NAMES[self.kind], "because": self.because}


def kv_slots(kv_tokens: int | None, request_tokens: int | None) -> int | None:
    """Return how many requests of this length the KV cache holds at a time; None if either number is unknown."""
    return None if kv_tokens is None or not request_tokens else max(1, kv_tokens // request_tokens)


@cache
def limits(part: Literal["judging", "changing", "trial"]) -> Mapping[str, Any]:
    """The thresholds of verdicts, or the bounds of changes or trials (configs/tuning.toml)."""
    found: Mapping[str, Any] = load_config("tuning.toml")[part]
    return found


def enough(window: Window | None) -> bool:
    """Whether enough requests ended in a window for a verdict."""
    return window is not None and window.finished >= limits("judging")["least_requests"]


def find_bottleneck(window: Window | None, slots: int | None, kv_tokens: int | None, vision: float = 0.0) -> Bottleneck:
    """Name what limited a server in the window of one load.

    `slots` is max_num_seqs, `kv_tokens` what the KV cache holds, and `vision` the vision tower's part of a prefill.
    """
    count = 0 if window is None else window.finished
    if window is None or not (enough(window) or _idles(window)):
        return Bottleneck(
            "unknown", f"{count} requests say nothing; {limits('judging')['least_requests']} are the least"
        )
    parts = window.parts
    if parts is None or parts.whole <= 0:
        return Bottleneck("unknown", "the server does not tell where the time of its requests goes")
    preempted = (window.grown("preemptions") or 0) / window.finished
    if preempted > limits("judging")["much_preemption"]:
        return Bottleneck("kv", f"{preempted:.0%} of the requests were thrown out of the KV cache and computed again")
    if parts.share("queue") >= limits("judging")["much_waiting"]:
        return _of_waiting(window, parts, slots, kv_tokens, vision)
    largest = _of_service(window, parts, vision)
    if not _idles(window):
        return largest
    return Bottleneck(
        "client",
        f"only {window.at_once:.2f} requests were in the server in the mean, so it waited for them; "
        f"of a request's own time, {largest.because}",
    )


def _idles(window: Window) -> bool:
    """Whether a server is mostly idle: a few requests in a long window are enough to see that."""
    long = (window.seconds or 0) >= limits("judging")["least_seconds"] and window.finished > 1
    return window.at_once is not None and window.at_once < limits("judging")["idle_below"] and (long or enough(window))


def _of_waiting(window: Window, parts: Parts, slots: int | None, kv_tokens: int | None, vision: float) -> Bottleneck:
    """Name what requests wait for: a slot, room in the cache, or the steps of the engine itself."""
    text = f"requests wait {parts.queue:.2f} s of their {parts.whole:.2f} s"
    running, use, request = window.most("running"), window.kv_use_while_waiting, window.request_tokens
    holds = kv_slots(kv_tokens, request)
    tower = f" (the vision tower {vision:.0%} of that)" if vision else ""
    prompts: Kind = "images" if vision > 0.5 else "prefill"
    taken = running >= slots if slots and running is not None else slots and (holds is None or slots <= holds)
    full = bool(taken) and slots is not None and (window.since_start or window.clients > slots)
    if full and (holds is None or slots is None or holds > slots):
        service, prefill = parts.prefill + parts.decode, parts.prefill + window.beside_prefills * parts.decode
        gain = service / prefill if prefill > 0 else float("inf")
        if gain < limits("judging")["least_gain_of_slots"]:
            share = f"{prefill / service:.0%} of what each then takes are prompts{tower}"
            return Bottleneck(prompts, f"{text}, and {share}: more slots would only wait inside the engine")
        free = "" if holds is None else f", and the KV cache has room for {holds}"
        return Bottleneck("slots", f"{text} for one of {slots} slots{free}")
    # Is there room for one more request? Half a request of tolerance: requests differ, and snapshots are rare.
    is_full = running is None or holds is None or abs(running - holds) <= 1
    if use is not None and kv_tokens and request:
        is_full = use >= 1 - 1.5 * request / kv_tokens
    if holds is not None and (slots is None or holds <= slots) and is_full:
        used = "" if use is None else f", {use:.0%} of it in use while they waited"
        held = f"its {kv_tokens:,} tokens hold {holds} requests of {request:,}"
        return Bottleneck("kv", f"{text} for room in the KV cache: {held}{used}")
    return Bottleneck(prompts, f"{text} although slots and KV cache have room: for the prompts before them{tower}")


def _of_service(window: Window, parts: Parts, vision: float) -> Bottleneck:
    """Name the largest part of a request's time while no request waits."""
    slowed = window.beside_prefills * parts.decode
    prefill = parts.prefill + slowed
    tower = vision * prefill
    seconds: dict[Kind, float] = {
        "images": parts.images + tower, "prefill": prefill - tower, "decode": parts.decode - slowed,
    }  # fmt: skip
    kind = max(seconds, key=lambda one: seconds[one])
    others = f", {slowed:.2f} s of it for prompts of other requests during its answer" if slowed >= 0.01 else ""
    before = f"{parts.images:.2f} s before the engine has them, {tower:.2f} s in the vision tower"
    cause = {
        "images": f"are spent on its images ({before})",
        "prefill": f"are spent on computing prompts{others}",
        "decode": "are spent on writing the answer",
    }[kind]
    return Bottleneck(kind, f"{seconds[kind]:.2f} s of {parts.whole:.2f} s ({seconds[kind] / parts.whole:.0%}) {cause}")


def _vision_operations(vision: VisionShape, tokens: float) -> float:
    patches = tokens * vision.merge**2
    looking = vision.depth * _WHOLE_IMAGE_LAYERS.get(vision.kind, 1.0)
    return 2 * vision.parameters * patches + 4 * patches**2 * vision.hidden * looking


def _prompt_operations(text: TextShape, tokens: float) -> float:
    """Return the operations of a prompt without cached tokens."""
    parameters: float = text.block_parameters
    if text.experts:
        idle = (text.experts - text.experts_used) * 3 * text.hidden * text.expert_intermediate
        parameters -= text.layers * idle
    return 2 * parameters * tokens + 2 * tokens**2 * text.heads * text.head_dim * text.layers


def vision_share(
    model: Model,
    screen: tuple[int, int],
    longest_edge: int | None,
    images: float,
    prompt_tokens: float,
) -> float:
    """The vision tower's part of the arithmetic of a prefill, 0 to 1.

    `images` and `prompt_tokens` are those of a mean request. The tokens of a picture are estimated from the planned
    screen, the prompt and the pixel budget `longest_edge` (None for the model's own).
    """
    vision = model.shape.vision
    if vision is None or images <= 0 or prompt_tokens <= 0:
        return 0.0
    most = (longest_edge or model.max_pixels) / model.factor**2
    planned = model.image_tokens(*screen, longest_edge)
    each = min(max(planned, (prompt_tokens - _TEXT_TOKENS) / images), prompt_tokens / images, most)
    seen = images * _vision_operations(vision, each)
    return seen / (seen + _prompt_operations(model.shape.text, prompt_tokens))


def unseen_images(window: Window, model: Model, screen: tuple[int, int], settings: Mapping[str, Any]) -> float:
    """Estimate the images of a mean request if nothing counts them: as many planned screens as fit into its prompt."""
    parts, prompt = window.parts, window.prompt_tokens
    if parts is None or prompt is None or parts.images < _MORE_THAN_TEXT * (parts.whole - parts.queue):
        return 0.0
    each = model.image_tokens(*screen, settings.get("longest_edge"))
    return float(max(1, min(prompt // each, settings.get("images") or 1)))
