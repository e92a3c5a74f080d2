"""The decision: which model, which cards, which precision, and how many servers. Everything else is `compose`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from serverctl.hardware.facts import Gpu, Hardware
from serverctl.hardware.supported import CannotPlanError, usable_cards
from serverctl.models.model import Model, Precision
from serverctl.plan.advice import does_not_fit, notes_for, warnings_for
from serverctl.plan.cards import best_group, groups, split, tensor_parallel_sizes
from serverctl.plan.compose import Candidate, Layout, compose
from serverctl.plan.cpu import plan_cpu
from serverctl.plan.env import environment, takes_names
from serverctl.plan.gaudi import plan_gaudi
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.own_flags import absorbed
from serverctl.plan.tables import Tables, Task

#: Tensor parallelism pays for its exchanges from this size up, and only over NVLink.
_LATENCY_TP_PARAMETERS = 6e9
#: Published 8-bit checkpoints (fp8 in blocks) are half the download; older cards than these quantise while loading.
_BLOCK_FP8_SM = 80
#: A server for many agents should hold so many of their requests at once; else its batches stay small.
_SERVED_AT_ONCE = 4


def make_plan(hardware: Hardware, goal: Goal, vllm: str, model: Model | None, tables: Tables) -> Plan:
    """The plan for some hardware, a goal and a version of vLLM; without a model, one of the tables' by memory.

    Raises:
        CannotPlanError: nothing works; the message says why and names the ways out.
        UsageError: a preset that does not exist.
    """
    task = Task(hardware, absorbed(goal), tables.presets.get(goal.preset), vllm, tables)
    cards = usable_cards(hardware)
    if model is not None:
        return _plan_model(model, cards, task)
    refusal: CannotPlanError | None = None
    spare: Plan | None = None
    for choice in tables.models:
        try:
            plan = _plan_model(choice, cards, task)
        except CannotPlanError as error:
            refusal = refusal or error
            continue
        spare = spare or plan
        # A model that only just fits gives way: the smaller one with all its screenshots is the better agent.
        if (plan.settings.images or 0) >= _wanted_images(choice, task):
            return _with_model_note(plan)
    if spare is not None:
        return _with_model_note(spare)
    assert refusal is not None
    raise refusal


def _wanted_images(model: Model, task: Task) -> int:
    """Screenshots in a request that are worth trying for."""
    most = task.preset.settings.get("images") or model.history_images
    return _asked_images(task.goal) or min(model.history_images, int(most))


def _asked_images(goal: Goal) -> int:
    """Screenshots in a request that a person or a repair named; 0 where nobody did."""
    return int(goal.overrides.get("images") or goal.adjustments.get("images") or 0)


def _plan_model(model: Model, cards: tuple[Gpu, ...], task: Task) -> Plan:
    if not cards:
        return plan_cpu(model, task)
    if cards[0].vendor == "gaudi":
        alike = best_group(cards)
        _check_parallel(model, alike, task.goal)
        return plan_gaudi(alike, model, task)
    refusal: CannotPlanError | None = None
    for group in groups(cards):
        try:
            return _plan_on(group, cards, model, task)
        except CannotPlanError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _plan_on(group: tuple[Gpu, ...], cards: tuple[Gpu, ...], model: Model, task: Task) -> Plan:
    """The plan on cards that are alike."""
    goal = task.goal
    _check_parallel(model, group, goal)
    if group[0].mig and not takes_names(task.vllm):
        raise CannotPlanError(
            f"vLLM {task.vllm} cannot be told to use {group[0].name}: it takes cards by their number only.",
            "Use a newer vLLM (`mai-server install`), or switch MIG off.",
        )
    candidate = _search(model, group, task)
    if candidate is None:
        raise does_not_fit(model, group, _smallest(model, group, task), goal, _smaller(model, group, task))
    replicas = split(candidate.layout.cards, group, task.preset)
    return Plan(
        model=candidate.model,
        precision=candidate.precision,
        vendor=cards[0].vendor,
        preset=task.preset.name,
        replicas=replicas,
        settings=candidate.settings,
        reasons=candidate.reasons,
        env=environment(candidate.settings, task.preset, replicas[0], task.vllm),
        budget=candidate.budget,
        context=candidate.context,
        extra=goal.extra,
        warnings=warnings_for(candidate, cards, group, goal),
        notes=notes_for(candidate, group, replicas, task),
    )


def _check_parallel(model: Model, group: tuple[Gpu, ...], goal: Goal) -> None:
    """Refuses a person's own numbers of cards where vLLM would: too many, or such that the heads cannot be shared."""
    sizes = [int(goal.overrides.get(f"{kind}_parallel_size") or 1) for kind in ("tensor", "pipeline", "data")]
    wanted = sizes[0] * sizes[1] * sizes[2]
    if wanted > len(group):
        there = f"{len(group)} x {group[0].name}" if len(group) > 1 else f"one {group[0].name}"
        raise CannotPlanError(
            f"Your own settings need {wanted} cards that are alike, and there is {there}.",
            "Ask for fewer (tensor, pipeline and data parallelism multiply), or leave them out.",
        )
    able = tensor_parallel_sizes(model, len(group))
    if sizes[0] not in able:
        raise CannotPlanError(
            f"{sizes[0]} cards cannot share the heads of {model.name}.",
            f"tensor_parallel_size can be: {', '.join(str(size) for size in able)}.",
        )
    if wanted > 1 and group[0].mig:
        raise CannotPlanError("MIG instances cannot work together.", "Ask for one card, or switch MIG off.")


def _search(model: Model, group: tuple[Gpu, ...], task: Task) -> Candidate | None:
    """The first way that fits: all screenshots before fewer, full precision before quantised, few cards before many.

    Where not all screenshots fit, the KV cache in 8 bits (SM 8.9 and up) comes before fewer screenshots.
    """
    most = _wanted_images(model, task)
    fewest = most if _asked_images(task.goal) else 1
    smaller_cache = replace(task, preset=replace(task.preset, fp8_kv=True))
    for images in range(most, fewest - 1, -1):
        for each in (task, smaller_cache):
            ways = [
                compose(chosen, precision, layout, images, each)
                for chosen, precision in _precisions(model, group[0], each)
                for layout in _layouts(chosen, group, each)
            ]
            if ways := [way for way in ways if way.fits]:
                return _best(ways, group, task)
    return None


def _best(ways: list[Candidate], group: tuple[Gpu, ...], task: Task) -> Candidate:
    """Of the ways that fit, in the order in which they are preferred, the one that the preset wants."""
    preset = task.preset
    if preset.longest_context:
        return max(ways, key=lambda way: way.context)
    if preset.replicas and len(group) > 1:
        return _most_served(ways, group, task.hardware)
    whole = [way for way in ways if way.roomy and way.precision == "16-bit"]
    if preset.tensor_parallel_over_nvlink and task.hardware.all_nvlink(tuple(gpu.index for gpu in group)):
        # More cards cost nothing there but themselves: not where the context is cut short by too few.
        large = (way for way in whole if way.model.shape.parameters > _LATENCY_TP_PARAMETERS)
        whole = [way for way in large if way.whole][:1] or whole
    if whole:
        return whole[0]
    smaller = [way for way in ways if way.precision != "16-bit"]
    if preset.small_weights and smaller:
        return max(smaller, key=lambda way: way.budget.kv_tokens)
    return (smaller or ways)[0]


def _most_served(ways: list[Candidate], group: tuple[Gpu, ...], hardware: Hardware) -> Candidate:
    """Where many agents are served: full precision and few cards a server, as long as each holds several requests.

    Over PCIe few cards count first: sharing a model there costs more than 8-bit weights do.
    """
    enough = [way for way in ways if way.budget.held(way.needed) >= _SERVED_AT_ONCE]
    if not hardware.all_nvlink(tuple(gpu.index for gpu in group)):
        enough.sort(key=lambda way: len(way.layout.cards))
    if enough:
        return enough[0]
    return max(ways, key=lambda way: len(group) // len(way.layout.cards) * way.budget.kv_tokens)


def _smaller(model: Model, group: tuple[Gpu, ...], task: Task) -> str:
    """The largest of our own models that is smaller and fits; "" where none does."""
    smaller = (other for other in task.tables.models if other.shape.parameters < model.shape.parameters)
    return next((other.name for other in smaller if _search(other, group, task)), "")


def _precisions(model: Model, gpu: Gpu, task: Task) -> Iterator[tuple[Model, Precision]]:
    """Checkpoints and precisions to try, in order. A quantised repository is served as it is."""
    if model.own_precision != "16-bit":
        yield model, model.own_precision
        return
    quantization = task.goal.overrides.get("quantization")
    if quantization is not None:
        yield model, "fp8" if "8" in quantization else "w4"
        return
    ways: list[tuple[Model, Precision]] = [(model, "16-bit")]
    if gpu.vendor == "nvidia":
        published = [(found.bits, model.as_checkpoint(found)) for found in model.quantized]
        eight = [
            found for bits, found in published if bits == 8 and model.local is None and (gpu.sm or 0) >= _BLOCK_FP8_SM
        ]
        ways += [((eight or [model])[0], "fp8"), *((found, "w4") for bits, found in published if bits == 4)]
    start = task.goal.adjustments.get("precision")
    if start is not None:
        order: tuple[Precision, ...] = ("16-bit", "fp8", "w4")
        ways = [way for way in ways if order.index(way[1]) >= order.index(start)] or ways
    yield from ways


def _layouts(model: Model, group: tuple[Gpu, ...], task: Task) -> Iterator[Layout]:
    """Ways to share the model over cards, the simplest first."""
    goal, preset = task.goal, task.preset
    wished = goal.overrides.get("tensor_parallel_size")
    stages = int(goal.overrides.get("pipeline_parallel_size") or 1)
    count = int(goal.overrides.get("data_parallel_size") or 1)  # engines behind one port, each with its own cards
    if wished is not None or stages > 1:
        size = int(wished or 1)
        yield Layout(group[: size * stages * count], size, stages, "your own setting")
        return
    alone = preset.single_card or group[0].mig  # a process sees one MIG instance only
    sizes = (1,) if alone else tensor_parallel_sizes(model, len(group) // count)
    pair = next(
        (pair for pair in combinations(group, 2) if task.hardware.link(pair[0].index, pair[1].index) == "nvlink"), ()
    )
    large = model.shape.parameters > _LATENCY_TP_PARAMETERS
    if preset.tensor_parallel_over_nvlink and 2 in sizes and large and pair and count == 1:
        yield Layout(pair, 2, 1, "two cards joined by NVLink halve the time per token of a model of this size")
    for size in sizes:
        yield Layout(group[: size * count], size, 1, f"the model does not fit well on fewer than {size} of these cards")
    if len(group) > 1 and not alone and count == 1 and max(sizes) < len(group):
        text = f"{len(group)} cards do not divide the model's heads, so they share its layers"
        yield Layout(group, 1, len(group), text)


def _smallest(model: Model, group: tuple[Gpu, ...], task: Task) -> Candidate:
    """The try that takes the least memory of a card, for saying what it would have needed."""
    own = task.goal.overrides
    size = int(own.get("tensor_parallel_size") or max(tensor_parallel_sizes(model, len(group))))
    eight = model.own_precision == "16-bit" and group[0].vendor == "nvidia" and "quantization" not in own
    precision: Precision = "fp8" if eight else next(_precisions(model, group[0], task))[1]
    size = 1 if task.preset.single_card or group[0].mig else size
    return compose(model, precision, Layout(group[:size], size, 1, ""), 1, task)


def _with_model_note(plan: Plan) -> Plan:
    if not plan.gpus:
        return plan
    text = f"{plan.model.name} was chosen by memory; another is named with --model."
    return replace(plan, notes=(text, *plan.notes))
