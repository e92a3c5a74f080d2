"""The decision: which model, which cards, which precision, and how many servers. Everything else is `compose`."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

from serverctl.hardware.facts import GIB, Gpu, Hardware
from serverctl.models.find import find_model
from serverctl.models.model import Model, Precision
from serverctl.plan.compose import TEXT_TOKENS, Candidate, Layout, compose, tensor_parallel_sizes
from serverctl.plan.cpu import plan_cpu
from serverctl.plan.env import environment, takes_names
from serverctl.plan.extra import absorbed
from serverctl.plan.gate import usable_cards
from serverctl.plan.gaudi import plan_gaudi
from serverctl.plan.goal import CannotPlanError, Goal, Plan
from serverctl.plan.presets import Preset, load_preset
from serverctl.plan.words import does_not_fit, expected_attention, notes_for, warnings_for

#: Without a named model: the first that fits well. 8B answers a step in a fraction of 32B's time.
AUTOMATIC_MODELS = ("MAI-UI-8B", "MAI-UI-2B")
#: Tensor parallelism pays for its exchanges from this size up, and only over NVLink.
_LATENCY_TP_PARAMETERS = 6e9
#: A server for many agents should hold so many of their requests at once; else its batches stay small.
_SERVED_AT_ONCE = 4

_Way: TypeAlias = tuple[Model, Precision, Layout, Candidate]

FindModel = Callable[[str], Model]


def make_plan(
    hardware: Hardware,
    goal: Goal,
    vllm: str,
    find: FindModel = find_model,
    default_models: tuple[str, ...] = AUTOMATIC_MODELS,
) -> Plan:
    """The plan for some hardware and a goal.

    Args:
        hardware: found or imagined.
        goal: what is wanted.
        vllm: the version of vLLM that will serve.
        find: finds a model by its name.
        default_models: tried in turn where no model is named.

    Raises:
        CannotPlanError: nothing works; the message says why and names the ways out.
        UsageError: a model or preset that does not exist.
    """
    preset = load_preset(goal.preset)
    cards = usable_cards(hardware)
    goal = absorbed(goal)
    wished = goal.adjustments.get("model") or goal.model
    names = (str(wished),) if wished else default_models
    refusal: CannotPlanError | None = None
    spare: Plan | None = None
    for name in names:
        model = find(name)
        try:
            plan = _plan_model(hardware, cards, model, preset, goal, vllm)
        except CannotPlanError as error:
            refusal = refusal or error
            continue
        if wished:
            return plan
        spare = spare or plan
        # A model that only just fits gives way: the smaller one with all its screenshots is the better agent.
        if (plan.settings.images or 0) >= _wanted_images(model, preset, goal):
            return _with_model_note(plan, cards)
    if spare is not None:
        return _with_model_note(spare, cards)
    assert refusal is not None
    raise refusal


def _wanted_images(model: Model, preset: Preset, goal: Goal) -> int:
    """Screenshots in a request that are worth trying for."""
    asked = goal.overrides.get("images") or goal.adjustments.get("images")
    return int(asked or min(model.history_images, preset.settings.get("images") or model.history_images))


def _plan_model(
    hardware: Hardware, cards: tuple[Gpu, ...], model: Model, preset: Preset, goal: Goal, vllm: str
) -> Plan:
    if not cards:
        return plan_cpu(hardware, model, preset, goal, vllm)
    if cards[0].vendor == "gaudi":
        alike = best_group(cards)
        _check_parallel(model, alike, goal)
        return plan_gaudi(alike, model, preset, goal)
    refusal: CannotPlanError | None = None
    for group in groups(cards):
        try:
            return _plan_on(group, hardware, cards, model, preset, goal, vllm)
        except CannotPlanError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _plan_on(
    group: tuple[Gpu, ...],
    hardware: Hardware,
    cards: tuple[Gpu, ...],
    model: Model,
    preset: Preset,
    goal: Goal,
    vllm: str,
) -> Plan:
    """The plan on cards that are alike."""
    _check_parallel(model, group, goal)
    if group[0].mig and not takes_names(vllm):
        raise CannotPlanError(
            f"vLLM {vllm} cannot be told to use {group[0].name}: it takes cards by their number only.",
            "Use a newer vLLM (`mai-server install`), or switch MIG off.",
        )
    found = _search(model, group, hardware, preset, goal, vllm)
    if found is None:
        smaller = _smaller(model, group, hardware, preset, goal, vllm)
        raise does_not_fit(model, group, _smallest(model, group, preset, goal, vllm), goal, smaller)
    chosen, precision, layout, candidate = found
    replicas = _replicas(layout, group, preset)
    return Plan(
        model=chosen,
        precision=precision,
        vendor=cards[0].vendor,
        preset=preset.name,
        replicas=replicas,
        settings=candidate.settings,
        reasons=candidate.reasons,
        env=environment(candidate.settings, preset, replicas[0], vllm),
        budget=candidate.budget,
        context=candidate.context,
        extra=goal.extra,
        warnings=warnings_for(chosen, candidate, cards, group, goal),
        notes=notes_for(chosen, precision, layout, group, replicas, hardware, goal.overrides.get("attention_backend")),
    )


def groups(cards: tuple[Gpu, ...]) -> list[tuple[Gpu, ...]]:
    """Cards that are alike, the best kind first: parallel cards must be alike.

    The most memory counts; kinds within a tenth of it are told apart by their generation. In a group, the card with the
    most room comes first.
    """
    kinds: dict[tuple[str, int], list[Gpu]] = {}
    for gpu in cards:
        kinds.setdefault((gpu.name, round(gpu.total_bytes / GIB)), []).append(gpu)
    most = max(gpu.total_bytes for gpu in cards)

    def worth(kind: list[Gpu]) -> tuple[bool, int, int, int]:
        gpu, near = kind[0], kind[0].total_bytes >= 0.9 * most
        return near, gpu.sm or 0 if near else 0, gpu.total_bytes, len(kind)

    ordered = sorted(kinds.values(), key=worth, reverse=True)
    return [tuple(sorted(kind, key=lambda gpu: (-_room(gpu), gpu.index))) for kind in ordered]


def _room(gpu: Gpu) -> int:
    """What a server could have of a card, in GiB: a display keeps some, and so do other programs."""
    whole = gpu.total_bytes * (0.88 if gpu.display else 0.92)
    return int(whole if gpu.free_bytes is None else min(whole, gpu.free_bytes)) // GIB


def best_group(cards: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The best kind of card among mixed ones."""
    return groups(cards)[0]


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


def _search(
    model: Model, group: tuple[Gpu, ...], hardware: Hardware, preset: Preset, goal: Goal, vllm: str
) -> _Way | None:
    """The first way that fits: all screenshots before fewer, full precision before quantised, few cards before many."""
    most = _wanted_images(model, preset, goal)
    fewest = most if goal.overrides.get("images") or goal.adjustments.get("images") else 1
    for images in range(most, fewest - 1, -1):
        ways = [
            (chosen, precision, layout, compose(chosen, precision, layout, images, preset, goal, vllm))
            for chosen, precision in _precisions(model, group[0], preset, goal)
            for layout in _layouts(chosen, group, hardware, preset, goal)
        ]
        ways = [way for way in ways if way[3].fits]
        if not ways:
            continue
        if preset.longest_context:
            return max(ways, key=lambda way: way[3].context)
        if preset.replicas and len(group) > 1:
            return _most_served(ways, group, hardware)
        return next((way for way in ways if way[3].roomy or way[1] != "16-bit"), ways[0])
    return None


def _most_served(ways: list[_Way], group: tuple[Gpu, ...], hardware: Hardware) -> _Way:
    """Where many agents are served: full precision and few cards a server, as long as each holds several requests.

    Over PCIe few cards count first: sharing a model there costs more than 8-bit weights do.
    """
    enough = [way for way in ways if way[3].budget.kv_tokens // max(1, way[3].needed) >= _SERVED_AT_ONCE]
    if not hardware.all_nvlink(tuple(gpu.index for gpu in group)):
        enough.sort(key=lambda way: len(way[2].cards))
    return enough[0] if enough else max(ways, key=lambda way: len(group) // len(way[2].cards) * way[3].budget.kv_tokens)


def _smaller(model: Model, group: tuple[Gpu, ...], hardware: Hardware, preset: Preset, goal: Goal, vllm: str) -> str:
    """The largest of our own models that is smaller and fits; "" where none does."""
    for name in AUTOMATIC_MODELS:
        other = find_model(name, allow_network=False)
        if other.shape.parameters < model.shape.parameters and _search(other, group, hardware, preset, goal, vllm):
            return name
    return ""


def _precisions(model: Model, gpu: Gpu, preset: Preset, goal: Goal) -> Iterator[tuple[Model, Precision]]:
    """Checkpoints and precisions to try, in order. A quantised repository is served as it is."""
    if model.own_precision != "16-bit":
        yield model, model.own_precision
        return
    quantization = goal.overrides.get("quantization")
    if quantization is not None:
        yield model, "fp8" if "8" in quantization else "w4"
        return
    small = [(model.as_checkpoint(found), "w4") for found in model.quantized if found.bits == 4]
    ways: list[tuple[Model, Precision]] = [(model, "16-bit"), (model, "fp8")]
    ways += [(chosen, "w4") for chosen, _ in small]
    if gpu.vendor != "nvidia":
        ways = [(model, "16-bit")]
    if preset.small_weights:
        ways = ways[1:] + ways[:1]
    start = goal.adjustments.get("precision")
    if start is not None:
        order: tuple[Precision, ...] = ("16-bit", "fp8", "w4")
        ways = [way for way in ways if order.index(way[1]) >= order.index(start)] or ways
    yield from ways


def _layouts(model: Model, group: tuple[Gpu, ...], hardware: Hardware, preset: Preset, goal: Goal) -> Iterator[Layout]:
    """Ways to share the model over cards, the simplest first."""
    wished = goal.overrides.get("tensor_parallel_size")
    stages = int(goal.overrides.get("pipeline_parallel_size") or 1)
    count = engines(goal)
    if wished is not None or stages > 1:
        size = int(wished or 1)
        yield Layout(group[: size * stages * count], size, stages, "your own setting")
        return
    alone = preset.single_card or group[0].mig  # a process sees one MIG instance only
    sizes = (1,) if alone else tensor_parallel_sizes(model, len(group) // count)
    pair = next(
        (pair for pair in combinations(group, 2) if hardware.link(pair[0].index, pair[1].index) == "nvlink"), ()
    )
    large = model.shape.parameters > _LATENCY_TP_PARAMETERS
    if preset.tensor_parallel_over_nvlink and 2 in sizes and large and pair and count == 1:
        yield Layout(pair, 2, 1, "two cards joined by NVLink halve the time per token of a model of this size")
    for size in sizes:
        yield Layout(group[: size * count], size, 1, f"the model does not fit well on fewer than {size} of these cards")
    if len(group) > 1 and not alone and count == 1 and max(sizes) < len(group):
        text = f"{len(group)} cards do not divide the model's heads, so they share its layers"
        yield Layout(group, 1, len(group), text)


def engines(goal: Goal) -> int:
    """Engines behind one port that a person asked for: each has its own cards."""
    return int(goal.overrides.get("data_parallel_size") or 1)


def _smallest(
    model: Model, group: tuple[Gpu, ...], preset: Preset, goal: Goal, vllm: str
) -> tuple[Precision, Candidate]:
    """The try that takes the least memory of a card, for saying what it would have needed."""
    size = int(goal.overrides.get("tensor_parallel_size") or max(tensor_parallel_sizes(model, len(group))))
    eight = model.own_precision == "16-bit" and group[0].vendor == "nvidia" and "quantization" not in goal.overrides
    precision: Precision = "fp8" if eight else next(_precisions(model, group[0], preset, goal))[1]
    size = 1 if preset.single_card or group[0].mig else size
    return precision, compose(model, precision, Layout(group[:size], size, 1, ""), 1, preset, goal, vllm)


def _with_model_note(plan: Plan, cards: tuple[Gpu, ...]) -> Plan:
    if not cards:
        return plan
    text = f"{plan.model.name} was chosen by memory; another is named with --model."
    return replace(plan, notes=(text, *plan.notes))


def _replicas(layout: Layout, group: tuple[Gpu, ...], preset: Preset) -> tuple[tuple[Gpu, ...], ...]:
    """Independent servers, each with its own cards: only where many agents are wanted."""
    size = len(layout.cards)
    if not preset.replicas or size > len(group) // 2:
        return (layout.cards,)
    return tuple(group[start : start + size] for start in range(0, len(group) - size + 1, size))


__all__ = ["AUTOMATIC_MODELS", "TEXT_TOKENS", "best_group", "expected_attention", "make_plan", "tensor_parallel_sizes"]
