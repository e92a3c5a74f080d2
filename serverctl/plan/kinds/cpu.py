"""Plans a server on the CPU: slow, meant for trying things out with a small model."""

from serverctl.hardware.facts import GIB, CannotPlanError, size_in_words
from serverctl.models.model import Model
from serverctl.plan.advice import cache_warnings, speculation_warnings
from serverctl.plan.draft import (
    ANSWER_TOKENS,
    CONTEXT_STEPS,
    SCREENSHOTS_IN_BLOCKS,
    TEXT_TOKENS,
    Candidate,
    Draft,
    Layout,
    answer_rooms,
    check_screenshots,
    too_long,
)
from serverctl.plan.env import environment
from serverctl.plan.goal import Plan, PlanInputs
from serverctl.plan.group import Group
from serverctl.plan.memory import Budget, cpu_budget
from serverctl.plan.settings import Settings

_SOURCE = "configs/memory.toml"


def plan_cpu(model: Model, inputs: PlanInputs) -> Plan:
    """Plan without a GPU. Raises CannotPlanError if the model does not fit into memory or would be far too slow."""
    goal, cpu, table = inputs.goal, inputs.hardware.cpu, inputs.tables.processor
    billions = model.shape.parameters / 1e9
    if billions > table.most_billion and not goal.force:
        raise CannotPlanError(
            f"{model.name} has {billions:.1f} billion parameters: on a plain processor one step would take minutes.",
            "Use --model MAI-UI-2B for trying it out, or --force. The literal engine (--engine literal) needs none.",
        )
    draft = _draft(model, inputs)
    budget = cpu_budget(model, draft.settings(), cpu.free_bytes, table)
    longest = min(table.max_model_len, model.shape.text.max_positions, budget.longest_context)
    fitting = max((step for step in CONTEXT_STEPS if step <= longest), default=longest)
    draft.decide("max_model_len", fitting, "holds the history that the prefix cache serves", _SOURCE)
    settings = draft.settings()
    tokens = model.image_tokens(*goal.screen, settings.longest_edge)
    context = _context(model, settings, budget)
    if tokens:
        most = settings.images or SCREENSHOTS_IN_BLOCKS * model.history_images
        thoughts = min(answer_rooms(model, inputs)[0][0] - ANSWER_TOKENS, context // 2)
        images = max(1, min(most, (context - TEXT_TOKENS // 2 - thoughts) // tokens))
        draft.decide("images", images, f"screenshots of {tokens:,} tokens that fit", _SOURCE)
        remedy = "Ask for fewer or smaller screenshots (images, longest_edge), or for a longer context."
        check_screenshots(settings.images or images, tokens, context, remedy)
    if budget.requested > cpu.free_bytes and not goal.force:
        raise CannotPlanError(
            f"{model.name} needs about {budget.requested / GIB:.1f} GiB of memory, and "
            f"{cpu.free_bytes / GIB:.1f} GiB are free.",
            "Close other programs, use a smaller model, or --force.",
        )
    say = inputs.tables.warnings
    warnings = [*speculation_warnings(model, settings, inputs), say["processor"]]
    if not {"avx512f", "avx2", "asimd"} & set(cpu.features):
        warnings.append(say["no_avx2"])
    if model.shape.vision is None:
        warnings.append(say["blind"].format(model=model.name))
    if tokens < model.image_tokens(*goal.screen):
        warnings.append(say["shrunk_on_processor"].format(edge=settings.longest_edge))
    layout, precision = Layout(Group(())), model.own_precision
    found = Candidate(model, precision, layout, draft.settings(), draft.reasons, budget, context, needed=0).predicted(
        inputs
    )
    warnings += cache_warnings(found, inputs)
    env = environment(found.settings, inputs.preset, (), inputs.vllm)
    return found.plan(inputs, ((),), env, warnings, [inputs.tables.notes["dimensions"].format(origin=model.origin)])


def _draft(model: Model, inputs: PlanInputs) -> Draft:
    table = inputs.tables.processor
    draft = Draft(inputs)
    draft.drop("performance_mode", "max_cudagraph_capture_size", "gpu_memory_utilization", "images")
    draft.decide_model(model)
    for name, value, why in (
        ("dtype", "bfloat16", "what vLLM's CPU build computes fastest"),
        ("kv_cache_memory_bytes", table.kv_cache_bytes, "a share of memory would take nearly all of it"),
        ("max_num_seqs", 1, "one request has all the cores"),
        ("enforce_eager", True, "compilation takes longer than it saves here"),
    ):
        draft.decide(name, value, why, _SOURCE)
    draft.decide("max_num_batched_tokens", 2048, "vLLM's default on a processor", "vllm/engine/arg_utils.py")
    if model.shape.vision is not None:
        edge = min(table.longest_edge, model.max_pixels)
        draft.decide("longest_edge", edge, "fewer tokens: a processor prefills slowly", _SOURCE)
        draft.decide("mm_processor_cache_gb", 1.0, "repeated screenshots are processed once", "docs/serving.md")
    return draft


def _context(model: Model, settings: Settings, budget: Budget) -> int:
    """Return the context in tokens. Raises CannotPlanError if it exceeds the KV cache or the model's maximum."""
    most, context = model.shape.text.max_positions, settings.max_model_len
    if not isinstance(context, int):
        return min(most, budget.longest_context)
    if context > most:
        raise too_long(model, context)
    if context > budget.longest_context:
        raise CannotPlanError(
            f"A context of {context:,} tokens does not fit into a KV cache of {size_in_words(budget.kv)}: it has "
            f"room for {budget.longest_context:,}.",
            # vLLM reserves one block.
            "Ask for a shorter context, or for more cache with --set kv_cache_memory_bytes="
            f"{budget.request_bytes(context + budget.block)}.",
        )
    return context
