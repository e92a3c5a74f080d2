"""Plans a server on Intel Gaudi, whose vllm-gaudi plugin has its own settings and memory rules.

vLLM's version must match the plugin's (0.30 with 0.30). Graphs are compiled per image shape, so the plan passes the
real screen size; the plugin's default buckets are far below 1080p (extension/bucketing/vision.py).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from foundation.errors import UsageError
from foundation.printing import counted
from serverctl.hardware.facts import GIB, CannotPlanError
from serverctl.models.model import Model
from serverctl.plan.advice import about_servers, cache_warnings, parallel_warnings
from serverctl.plan.draft import (
    ANSWER_TOKENS,
    CONTEXT_STEPS,
    LEAST_TEXT_TOKENS,
    TEXT_TOKENS,
    Candidate,
    Draft,
    Layout,
    check_screenshots,
)
from serverctl.plan.env import of_preset
from serverctl.plan.goal import Plan, PlanInputs, Reason
from serverctl.plan.group import Group
from serverctl.plan.memory import Budget, card_budget
from serverctl.plan.settings import Settings

_SOURCE = "vllm-gaudi 0.30: docs/serving.md"
#: Vision models that the plugin's documentation lists as validated, by Gaudi generation.
_VALIDATED = {"Gaudi 3": ("qwen2_5_vl", "qwen3_vl")}
#: Variables that the plugin reads and that are missing from vLLM's own list.
PLUGIN_ENV = frozenset({
    "VLLM_MULTIMODAL_RESOLUTIONS", "VLLM_MULTIMODAL_BUCKETS", "VLLM_GRAPH_RESERVED_MEM", "VLLM_SKIP_WARMUP",
    "VLLM_FP32_SOFTMAX_VISION",
})  # fmt: skip
#: The plugin uses this share of the memory that is free after profiling, and reserves a part of it for graphs.
_UTILIZATION, _GRAPHS = 0.9, ("VLLM_GRAPH_RESERVED_MEM", "0.1")


#: Sizes and numbers of the pictures that graphs are compiled for, as 1920x1080x1-3.
SIZES = "VLLM_MULTIMODAL_RESOLUTIONS"


def plan_gaudi(group: Group, model: Model, inputs: PlanInputs, answer: int = ANSWER_TOKENS) -> Plan:
    """Plan for Gaudi cards, with room for an answer of `answer` tokens.

    Raises CannotPlanError if the model does not fit on them.
    """
    text_tokens = TEXT_TOKENS + max(0, answer - ANSWER_TOKENS)
    draft = Draft(inputs)
    draft.drop("performance_mode", "max_cudagraph_capture_size", "gpu_memory_utilization", "images")
    draft.decide_model(model, speculation=False)
    draft.decide("dtype", "bfloat16", "the format Gaudi computes in", _SOURCE)
    draft.decide("max_num_seqs", 4, "each number of requests is one more graph to compile", _SOURCE)
    draft.decide("max_num_batched_tokens", 8192, "maximum number of tokens prefilled in one step", _SOURCE)
    if model.shape.vision is not None:
        draft.decide("images", model.history_images, "one graph is compiled for each number of images", _SOURCE)
    count = int(draft.values.get("images", 0))
    tokens = model.image_tokens(*inputs.goal.screen, draft.values.get("longest_edge"))
    room = (step for step in CONTEXT_STEPS if step >= max(16_384, count * tokens + text_tokens))
    length = next(room, CONTEXT_STEPS[-1])
    seen = f"{counted(count, 'screenshot')} of {tokens:,} tokens, " if tokens else ""
    draft.decide("max_model_len", length, f"{seen}prompt and answer", _SOURCE)
    wanted = draft.values["max_model_len"]
    layout, budget = _layout(group, model, draft, inputs, wanted if isinstance(wanted, int) else length)
    draft.bound_slots(budget, count * tokens + LEAST_TEXT_TOKENS + text_tokens - TEXT_TOKENS)
    if layout.tensor_parallel > 1:
        draft.decide("tensor_parallel_size", layout.tensor_parallel, "the model does not fit on fewer cards", _SOURCE)
    settings = draft.settings()
    longest = min(model.shape.text.max_positions, budget.longest_context)
    context = settings.max_model_len if isinstance(settings.max_model_len, int) else longest
    if context > longest:
        raise CannotPlanError(
            f"A context of {context:,} tokens does not fit: the KV cache or the model allows {longest:,}.",
            "Ask for a shorter context, a smaller model or more cards.",
        )
    check_screenshots(count, tokens, context, "Ask for fewer images or a longer context.")
    found = Candidate(model, model.own_precision, layout, settings, draft.reasons, budget, context, needed=0).predicted(
        inputs
    )
    replicas = group.replicas(layout.group, inputs.preset)
    generation, kind = group.first.name[:7], model.shape.vision.kind if model.shape.vision else ""
    warnings = [inputs.tables.warnings["gaudi"], *cache_warnings(found, inputs), *parallel_warnings(found, inputs)]
    if model.shape.vision is None:
        warnings.append(inputs.tables.warnings["blind"].format(model=model.name))
    if kind not in _VALIDATED.get(generation, ()):
        warnings.append(inputs.tables.warnings["not_validated"].format(model=model.name, generation=generation))
    say = inputs.tables.notes
    notes = [say["dimensions"].format(origin=model.origin), *about_servers(group, replicas, inputs)]
    if tokens:
        notes += [
            say["gaudi_graphs"].format(size="{}x{}".format(*inputs.goal.screen), count=count),
            say["gaudi_softmax"],
        ]
    notes += [say["gaudi_warmup"], say["gaudi_memory"]]
    return found.plan(inputs, replicas, _environment(layout.group, count, model, inputs), warnings, notes)


def _layout(group: Group, model: Model, draft: Draft, inputs: PlanInputs, wanted: int) -> tuple[Layout, Budget]:
    """Return the smallest layout whose KV cache holds a context of `wanted` tokens, and the budget of one card.

    If none holds it, return the largest layout. Raises CannotPlanError if the weights leave no room even there.
    """
    wished = draft.values.get("tensor_parallel_size")
    sizes = (int(wished),) if wished else group.tensor_parallel_sizes(model)
    stages, engines = (int(draft.values.get(f"{kind}_parallel_size") or 1) for kind in ("pipeline", "data"))
    most = len(group.cards) // (stages * engines)
    able = [size for size in sizes if size <= most] or [sizes[0]]
    for size in able:
        budget = _budget(model, replace(draft.settings(), tensor_parallel_size=size), group, inputs)
        if budget.longest_context >= wanted and not budget.overcommits:
            break
    if budget.kv <= 0 or size > most or budget.overcommits:
        prefix = f"{wished} of " if wished else ""
        cache = f" and the KV cache {budget.kv / GIB:.0f}" if draft.values.get("kv_cache_memory_bytes") else ""
        raise CannotPlanError(
            f"{model.name} does not fit on {prefix}{len(group.cards)} x {group.first.name}: of a card's "
            f"{group.first.total_gib:.0f} GiB its weights take {budget.weights / GIB:.0f}{cache}.",
            f"Use a smaller model{', a smaller KV cache' if cache else ''} or more cards.",
        )
    return Layout(group.take(size * stages * engines), size, stages), budget


def _budget(model: Model, settings: Settings, group: Group, inputs: PlanInputs) -> Budget:
    """Return a card's budget by the plugin's rule: KV = free * utilisation * (1 - share reserved for graphs)."""
    total = group.first.total_bytes
    budget = card_budget(model, model.own_precision, settings, total, inputs.tables.seeds)
    if settings.kv_cache_memory_bytes is not None:
        return budget
    taken = budget.weights + budget.activations
    share = int((total - taken) * (settings.gpu_memory_utilization or _UTILIZATION))
    graphs = int(share * _reserved_for_graphs(inputs))
    return replace(budget, requested=taken + share, context=0, graphs=graphs, kv=share - graphs)


def largest_size(text: str) -> tuple[int, int]:
    """Return width and height of the largest size of pictures that a text names. Raises UsageError if it names none."""
    found = [(int(width), int(height)) for width, height in re.findall(r"(?:^|,)(\d{1,5})x(\d{1,5})x", text)]
    if not found:
        raise UsageError(f"{SIZES} cannot be {text!r}.", "Write sizes and numbers of pictures, as 1920x1080x1-3.")
    return max(found, key=math.prod)


def _reserved_for_graphs(inputs: PlanInputs) -> float:
    """Return the part of the plugin's share that it keeps for graphs. Raises UsageError for an impossible one."""
    name, usual = _GRAPHS
    text = inputs.tables.environ.get(name, usual)
    try:
        part = float(text)
    except ValueError:
        part = -1
    if not 0 <= part < 1:
        raise UsageError(f"{name} cannot be {text!r}.", "It is a share from 0 to below 1: 0.1 is the plugin's own.")
    return part


def _environment(used: Group, images: int, model: Model, inputs: PlanInputs) -> Mapping[str, tuple[str, Reason]]:
    width, height = inputs.goal.screen
    graphs = Reason("graphs for exactly this screen: without it every screenshot is compiled anew", _SOURCE)
    sizes = {SIZES: (f"{width}x{height}x1-{images}", graphs)} if images else {}
    cards = ",".join(str(gpu.index) for gpu in used.cards)
    hybrid = Reason("the plugin asks for it with hybrids of Gated DeltaNet: better graphs", _SOURCE)
    names = ("ENABLE_EXPERIMENTAL_FLAGS", "ENABLE_SKIP_REMOVAL_OF_GRAPH_INPUT_IDENTITY_NODES")
    yours = Reason("from your environment", "you", automatic=False)
    return {
        **(dict.fromkeys(names, ("true", hybrid)) if model.shape.text.linear else {}),
        **sizes,
        **{name: (value, yours) for name, value in inputs.tables.environ.items() if name in (_GRAPHS[0], *sizes)},
        "HABANA_VISIBLE_MODULES": (cards, Reason("pins the server to its cards", _SOURCE)),
        "VLLM_NO_USAGE_STATS": ("1", Reason("nothing is reported to anybody", "vllm/envs.py")),
        **of_preset(inputs.preset),
    }
