"""The plan for Intel Gaudi: another vLLM (the vllm-gaudi plugin), other knobs, other memory rules.

vLLM's version must match the plugin's (0.26 with 0.26). Graphs are compiled by image shape, so the real screen is
named beforehand; the plugin's own buckets are far below 1080p (extension/bucketing/vision.py).
"""

from dataclasses import replace

from serverctl.hardware.facts import GIB, Gpu
from serverctl.hardware.supported import CannotPlanError
from serverctl.models.model import Model, Precision
from serverctl.plan.advice import several_servers
from serverctl.plan.cards import split, tensor_parallel_sizes
from serverctl.plan.compose import (
    CONTEXT_STEPS,
    LEAST_TEXT_TOKENS,
    TEXT_TOKENS,
    Draft,
    capped_slots,
    decide_reasoning_parser,
)
from serverctl.plan.env import of_preset
from serverctl.plan.goal import Plan, Reason
from serverctl.plan.memory import Budget, Seeds, card_budget
from serverctl.plan.settings import Settings
from serverctl.plan.tables import Task

_SOURCE = "vllm-gaudi 0.26: docs/serving.md"
#: What the plugin's makers list as validated, by the number of the generation.
_VALIDATED = {"Gaudi 3": ("qwen2_5_vl", "qwen3_vl"), "Gaudi 2": ("qwen2_5_vl",)}


#: Variables that the plugin reads and vLLM's own list does not name.
PLUGIN_ENV = frozenset({"VLLM_MULTIMODAL_RESOLUTIONS", "VLLM_GRAPH_RESERVED_MEM", "VLLM_SKIP_WARMUP"})
#: The plugin takes this share of what is free after profiling, and keeps a part of that for graphs.
_UTILIZATION, _GRAPHS = 0.9, 0.1


def _budget(model: Model, precision: Precision, settings: Settings, card: Gpu, seeds: Seeds) -> Budget:
    """A card's budget by the plugin's rule: KV = free * utilisation * (1 - what graphs reserve)."""
    budget = card_budget(model, precision, settings, card.total_bytes, seeds)
    if settings.kv_cache_memory_bytes is not None:
        return budget
    free = card.total_bytes - budget.weights - budget.activations
    share = settings.gpu_memory_utilization or _UTILIZATION
    graphs = int(free * share * _GRAPHS)
    return replace(
        budget,
        requested=budget.weights + budget.activations + int(free * share),
        context=0,
        graphs=graphs,
        kv=int(free * share) - graphs,
    )


def plan_gaudi(cards: tuple[Gpu, ...], model: Model, task: Task) -> Plan:
    """A plan on Gaudi cards. Raises CannotPlanError where the model does not fit on them."""
    goal, preset, seeds = task.goal, task.preset, task.tables.memory.seeds
    draft = Draft(goal, preset)
    draft.drop("performance_mode", "max_cudagraph_capture_size", "gpu_memory_utilization", "images")
    card = cards[0]
    precision = model.own_precision
    wished = draft.values.get("tensor_parallel_size")
    sizes = (int(wished),) if wished else tensor_parallel_sizes(model, len(cards))
    stages, engines = (int(draft.values.get(f"{kind}_parallel_size") or 1) for kind in ("pipeline", "data"))
    most = len(cards) // (stages * engines)
    decide_reasoning_parser(draft, model)
    draft.decide("dtype", "bfloat16", "the format Gaudi computes in", _SOURCE)
    draft.decide("max_num_seqs", 4, "each number of requests is one more graph to compile", _SOURCE)
    draft.decide("max_num_batched_tokens", 8192, "a screenshot and its prompt in one step", _SOURCE)
    draft.decide("images", model.history_images, "one graph is compiled for each number of images", _SOURCE)
    count = int(draft.values["images"])
    tokens = model.image_tokens(*goal.screen, draft.values.get("longest_edge"))
    room = (step for step in CONTEXT_STEPS if step >= max(16_384, count * tokens + TEXT_TOKENS))
    length = next(room, CONTEXT_STEPS[-1])
    draft.decide("max_model_len", length, f"{count} screenshots of {tokens:,} tokens, prompt and answer", _SOURCE)
    able = [n for n in sizes if n <= most] or [sizes[0]]
    budgets = {
        n: _budget(model, precision, replace(draft.settings(), tensor_parallel_size=n), card, seeds) for n in able
    }
    wanted = draft.values["max_model_len"]
    wanted = wanted if isinstance(wanted, int) else length
    size = next((n for n in able if budgets[n].longest_context >= wanted), able[-1])
    capped_slots(draft, preset, budgets[size], count * tokens + LEAST_TEXT_TOKENS)
    if size > 1:
        draft.decide("tensor_parallel_size", size, "the model does not fit on fewer cards", _SOURCE)
    used = cards[: size * stages * engines]
    replicas = split(used, cards, preset)
    settings, budget = draft.settings(), budgets[size]
    if budget.kv <= 0 or size > most:
        asked = f"{wished} of " if wished else ""
        raise CannotPlanError(
            f"{model.name} does not fit on {asked}{len(cards)} x {card.name}: of a card's {card.total_gib:.0f} GiB its "
            f"weights take {budget.weights / GIB:.0f}.",
            "Use a smaller model or more cards.",
        )
    longest = min(model.shape.text.max_positions, budget.longest_context)
    context = settings.max_model_len if isinstance(settings.max_model_len, int) else longest
    if context > longest:
        raise CannotPlanError(
            f"A context of {context:,} tokens does not fit: the KV cache or the model allows {longest:,}.",
            "Ask for a shorter context, a smaller model or more cards.",
        )
    if count * tokens + LEAST_TEXT_TOKENS > context:
        raise CannotPlanError(
            f"{count} screenshots of {tokens:,} tokens do not fit into a context of {context:,}.",
            "Ask for fewer images or a longer context.",
        )
    width, height = goal.screen
    env = {
        "VLLM_MULTIMODAL_RESOLUTIONS": (
            f"{width}x{height}x1-{count}",
            Reason("graphs for exactly this screen: without it every screenshot is compiled anew", _SOURCE),
        ),
        "HABANA_VISIBLE_MODULES": (
            ",".join(str(gpu.index) for gpu in used),
            Reason("pins the server to its cards", _SOURCE),
        ),
        "VLLM_NO_USAGE_STATS": ("1", Reason("nothing is reported to anybody", "vllm/envs.py")),
    }
    generation = card.name[:7]
    kind = model.shape.vision.kind if model.shape.vision else ""
    warnings = ["Gaudi plans were written from the plugin's source and documentation; they were not run."]
    if kind not in _VALIDATED.get(generation, ()):
        warnings.append(f"The plugin's makers list no {model.name}-like model as validated on {generation}.")
    return Plan(
        model=model,
        precision=precision,
        vendor="gaudi",
        preset=preset.name,
        replicas=replicas,
        settings=draft.settings(),
        reasons=draft.reasons,
        env={**env, **of_preset(preset)},
        budget=budget,
        context=context,
        extra=goal.extra,
        warnings=tuple(warnings),
        notes=(
            f"Dimensions: {model.origin}.",
            *several_servers(replicas),
            "Out of memory while graphs are captured: raise VLLM_GRAPH_RESERVED_MEM from 0.1 to 0.2 or 0.4. Out of "
            "memory at the start: lower --gpu-memory-utilization, there a share of what is free after profiling.",
        ),
    )
