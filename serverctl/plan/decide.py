"""Chooses the model, the cards, the precision and the number of servers."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import TypeVar

from foundation.errors import UsageError
from serverctl.hardware.facts import CannotPlanError, Hardware, usable_cards
from serverctl.models.model import Model, Precision
from serverctl.plan.advice import does_not_fit, notes_for, warnings_for
from serverctl.plan.draft import LATENCY_TP_PARAMETERS, Candidate, Layout, answer_rooms
from serverctl.plan.env import environment, takes_names
from serverctl.plan.goal import Goal, Plan, PlanInputs, Tables
from serverctl.plan.group import Group, groups
from serverctl.plan.kinds.cpu import plan_cpu
from serverctl.plan.kinds.gaudi import plan_gaudi
from serverctl.plan.kinds.gpu import compose, eight_bits
from serverctl.plan.quantization import check_quantization, wished_ways
from serverctl.plan.user_flags import absorbed

_T = TypeVar("_T")
#: Compute capability from which published 8-bit checkpoints (block-wise fp8) are used: half the download. Older cards
#: quantise while loading.
_BLOCK_FP8_SM = 80
#: Concurrent requests that a server for many agents should hold; with fewer, its batches stay small.
_SERVED_AT_ONCE = 4


def make_plan(hardware: Hardware, goal: Goal, vllm: str, model: Model | None, tables: Tables) -> Plan:
    """Return a plan for the hardware, the goal and the version of vLLM. Without a model, choose one by memory.

    Raises:
        CannotPlanError: nothing works; the message gives the reason and the alternatives.
        UsageError: the preset does not exist.
    """
    inputs = PlanInputs(hardware, absorbed(goal), tables.presets.get(goal.preset), vllm, tables)
    kinds = groups(usable_cards(hardware))
    if model is not None:
        return _plan_model(model, kinds, inputs)
    plan = _first_whole(_not_larger(kinds, inputs), kinds, inputs)
    if not plan.gpus:
        return plan
    return replace(plan, notes=(f"{plan.model.name} was chosen by memory; another is named with --model.", *plan.notes))


def _not_larger(kinds: list[Group], inputs: PlanInputs) -> tuple[Model, ...]:
    """Return the model that suits the hardware, and the smaller ones.

    The choice does not depend on the preset and the user's settings: a wish for less memory must not lead to a larger
    model. Settings that the model cannot meet lead to a smaller one.
    """
    models = inputs.tables.models
    plain = replace(
        inputs, goal=Goal(screen=inputs.goal.screen, force=inputs.goal.force), preset=inputs.tables.presets.get(None)
    )
    try:
        chosen = _first_whole(models, kinds, plain).model.name
    except CannotPlanError:
        return models[-1:]
    return models[[model.name for model in models].index(chosen) :]


def _first_whole(models: Iterable[Model], kinds: list[Group], inputs: PlanInputs) -> Plan:
    """Plan with the first model that holds all its screenshots: a model that barely fits is a worse agent.

    Without such a model, return the first plan that works. Raises the first model's CannotPlanError if none works.
    """
    plans = _all_that_work(models, lambda choice: _plan_model(choice, kinds, inputs))
    spare = next(plans)
    for plan in chain((spare,), plans):
        if (plan.settings.images or 0) >= _wanted_images(plan.model, inputs):
            return plan
    return spare


def _all_that_work(choices: Iterable[_T], make: Callable[[_T], Plan]) -> Iterator[Plan]:
    """Yield a plan for each choice that works. Raises the first choice's CannotPlanError if none works."""
    refusals: list[CannotPlanError] = []
    worked = False
    for choice in choices:
        try:
            yield make(choice)
            worked = True
        except CannotPlanError as error:
            refusals.append(error)
    if refusals and not worked:
        raise refusals[0]


def _wanted_images(model: Model, inputs: PlanInputs) -> int:
    most = inputs.preset.settings.get("images") or model.history_images
    return _asked_images(inputs.goal) or min(model.history_images, int(most))


def _asked_images(goal: Goal) -> int:
    """Return the number of screenshots in a request that the user or a repair set; 0 if unset."""
    return int(goal.overrides.get("images") or goal.adjustments.get("images") or 0)


def _plan_model(model: Model, kinds: list[Group], inputs: PlanInputs) -> Plan:
    if not kinds:
        check_quantization(model, inputs.quantization_wish(None), inputs.tables.quantization)
        return plan_cpu(model, inputs)
    return next(_all_that_work(kinds, lambda group: _plan_on(group, kinds, model, inputs)))


def _plan_on(group: Group, kinds: list[Group], model: Model, inputs: PlanInputs) -> Plan:
    check_quantization(model, inputs.quantization_wish(group.first.sm), inputs.tables.quantization)
    _check_parallel(model, group, inputs.goal)
    if group.first.vendor == "gaudi":
        rooms = chain.from_iterable(answer_rooms(model, inputs))
        return next(_all_that_work(rooms, lambda answer: plan_gaudi(group, model, inputs, answer)))
    if group.first.mig and not takes_names(inputs.vllm):
        raise CannotPlanError(
            f"vLLM {inputs.vllm} cannot be told to use {group.first.name}: it takes cards by their number only.",
            "Use a newer vLLM (`mai-server install`), or switch MIG off.",
        )
    found = _search(model, group, inputs)
    if found is None:
        smaller = (other for other in inputs.tables.models if other.shape.parameters < model.shape.parameters)
        name = next((other.name for other in smaller if _search(other, group, inputs)), "")
        raise does_not_fit(model, group, _smallest(model, group, inputs), inputs.goal, name)
    found = found.predicted(inputs)
    replicas = group.replicas(found.layout.group, inputs.preset)
    env = environment(found.settings, inputs.preset, replicas[0], inputs.vllm)
    others = {gpu.name for kind in kinds for gpu in kind.cards} - {group.first.name} if len(kinds) > 1 else None
    warnings = warnings_for(found, group, others, inputs)
    notes = notes_for(found, group, replicas, inputs, _other_precision(found, model, group, inputs))
    return found.plan(inputs, replicas, env, [*warnings], [*notes])


def _other_precision(found: Candidate, model: Model, group: Group, inputs: PlanInputs) -> Candidate | None:
    """Return the candidate with the other precision if the choice is close: 16 bits, or 8 for more context.

    None if it does not fit, if nothing is gained by it, or if the user chose.
    """
    goal = inputs.goal
    chosen = "quantization" in goal.overrides or "precision" in goal.adjustments
    if chosen or model.own_precision != "16-bit" or group.first.vendor != "nvidia":
        return None
    full = found.precision == "16-bit"
    if full and found.whole:
        return None
    wish = eight_bits(group.first.sm) if full else None
    other = _search(
        model, group, replace(inputs, goal=replace(goal, overrides={**goal.overrides, "quantization": wish}))
    )
    return None if other is None or (full and other.context <= found.context) else other


def _check_parallel(model: Model, group: Group, goal: Goal) -> None:
    """Raise CannotPlanError for parallel sizes that vLLM would reject: too many cards, or no divisor of the heads."""
    sizes = [int(goal.overrides.get(f"{kind}_parallel_size") or 1) for kind in ("tensor", "pipeline", "data")]
    wanted = sizes[0] * sizes[1] * sizes[2]
    if wanted > len(group.cards):
        available = group.name if len(group.cards) > 1 else f"one {group.name}"
        raise CannotPlanError(
            f"Your own settings need {wanted} cards that are alike, and there is {available}.",
            "Ask for fewer (tensor, pipeline and data parallelism multiply), or leave them out.",
        )
    able = group.tensor_parallel_sizes(model)
    if sizes[0] not in able:
        raise CannotPlanError(
            f"{sizes[0]} cards cannot share the heads of {model.name}.",
            f"tensor_parallel_size can be: {', '.join(str(size) for size in able)}.",
        )
    if wanted > 1 and group.first.mig:
        raise CannotPlanError("MIG instances cannot work together.", "Ask for one card, or switch MIG off.")


def _search(model: Model, group: Group, inputs: PlanInputs) -> Candidate | None:
    """Return the preferred candidate that fits; None if none fits.

    The order: all screenshots before fewer, full precision before quantised, few cards before many. An 8-bit KV cache
    (SM 8.9 and up) is tried before fewer screenshots, and fewer screenshots before thoughts that are cut off.
    """
    most = _wanted_images(model, inputs)
    fewest = most if _asked_images(inputs.goal) else 1
    caches = (inputs, replace(inputs, preset=replace(inputs.preset, fp8_kv=True)))
    for rooms in answer_rooms(model, inputs):
        for images, answer in product(range(most, fewest - 1, -1), rooms):
            tried = [[way for way in _ways(model, group, each, images, answer) if way.fits] for each in caches]
            if inputs.preset.longest_context and any(tried):
                return _best([way for ways in tried for way in ways], group, inputs)
            if found := next((ways for ways in tried if ways), None):
                return _best(found, group, inputs)
    return None


def _ways(model: Model, group: Group, inputs: PlanInputs, images: int, answer: int) -> list[Candidate]:
    """Return the candidates for every precision and layout, in order of preference."""
    return [
        compose(chosen, precision, layout, images, inputs, answer)
        for chosen, precision in _precisions(model, group, inputs)
        for layout in _layouts(chosen, group, inputs)
    ]


def _best(ways: list[Candidate], group: Group, inputs: PlanInputs) -> Candidate:
    """Return the preset's choice among the candidates that fit, which are sorted by preference."""
    preset = inputs.preset
    if preset.longest_context:
        return max(ways, key=lambda way: way.context)
    if preset.replicas and len(group.cards) > 1:
        return _most_served(ways, group, inputs.hardware)
    unquantized = [way for way in ways if way.roomy and way.precision == "16-bit"]
    if preset.tensor_parallel_over_nvlink and group.all_nvlink(inputs.hardware):
        # Over NVLink more cards only make it faster. Require the full context: too few cards would shorten it.
        large = (way for way in unquantized if way.model.shape.parameters > LATENCY_TP_PARAMETERS)
        unquantized = [way for way in large if way.whole][:1] or unquantized
    if unquantized:
        return unquantized[0]
    smaller = [way for way in ways if way.precision != "16-bit"]
    if preset.small_weights and smaller:
        return max(smaller, key=lambda way: way.budget.kv_tokens)
    return (smaller or ways)[0]


def _most_served(ways: list[Candidate], group: Group, hardware: Hardware) -> Candidate:
    """Return the candidate for serving many agents: full precision first, then few cards per server.

    Each server must hold several requests. Over PCIe, few cards come first: splitting a model there costs more than
    8-bit weights.
    """
    enough = [way for way in ways if way.budget.held(way.needed) >= _SERVED_AT_ONCE]
    if not group.all_nvlink(hardware):
        enough.sort(key=lambda way: len(way.layout.group.cards))
    if enough:
        return enough[0]
    return max(ways, key=lambda way: len(group.cards) // len(way.layout.group.cards) * way.budget.kv_tokens)


def _precisions(model: Model, group: Group, inputs: PlanInputs) -> list[tuple[Model, Precision]]:
    """Return the checkpoints and precisions to try, in order. A quantised repository is served as it is."""
    if inputs.goal.overrides.get("dtype") == "float32":
        if model.own_precision != "16-bit" or inputs.goal.overrides.get("quantization"):
            raise UsageError("Quantised weights are not computed in float32.", "Leave out dtype or quantization.")
        return [(model, "16-bit")]
    if model.own_precision != "16-bit":
        return [(model, model.own_precision)]
    if "quantization" in inputs.goal.overrides:
        wished = inputs.goal.overrides["quantization"] or "none"
        return [wished_ways(model, wished, inputs.tables.quantization)]
    ways: list[tuple[Model, Precision]] = [(model, "16-bit")]
    if group.first.vendor == "nvidia":
        published = [(found.bits, model.as_checkpoint(found)) for found in model.quantized]
        blocks = model.local is None and (group.first.sm or 0) >= _BLOCK_FP8_SM
        eight = [found for bits, found in published if bits == 8 and blocks]
        ways += [((eight or [model])[0], "fp8"), *((found, "w4") for bits, found in published if bits == 4)]
    start = inputs.goal.adjustments.get("precision")
    if start is not None:
        order: tuple[Precision, ...] = ("16-bit", "fp8", "w4")
        ways = [way for way in ways if order.index(way[1]) >= order.index(start)] or ways
    return ways


def _layouts(model: Model, group: Group, inputs: PlanInputs) -> Iterator[Layout]:
    """Yield the ways to split the model over cards, the simplest first."""
    goal, preset, cards = inputs.goal, inputs.preset, group.cards
    wished = goal.overrides.get("tensor_parallel_size")
    stages = int(goal.overrides.get("pipeline_parallel_size") or 1)
    count = int(goal.overrides.get("data_parallel_size") or 1)  # engines behind one port, each with its own cards
    if wished is not None or stages > 1:
        size = int(wished or 1)
        yield Layout(group.take(size * stages * count), size, stages, "your own setting")
        return
    alone = preset.single_card or group.first.mig
    sizes = (1,) if alone else group.tensor_parallel_sizes(model, count)
    pairs = (pair for pair in combinations(cards, 2) if inputs.hardware.link(pair[0].index, pair[1].index) == "nvlink")
    large = model.shape.parameters > LATENCY_TP_PARAMETERS
    if preset.tensor_parallel_over_nvlink and 2 in sizes and large and count == 1 and (pair := next(pairs, None)):
        yield Layout(Group(pair), 2, 1, "two cards joined by NVLink halve the time per token of a model of this size")
    for size in sizes:
        text = f"the model does not fit well on fewer than {size} of these cards"
        yield Layout(group.take(size * count), size, 1, text)
    if len(cards) > 1 and not alone and count == 1 and max(sizes) < len(cards):
        text = f"{len(cards)} cards do not divide the model's heads, so they share its layers"
        yield Layout(group, 1, len(cards), text)


def _smallest(model: Model, group: Group, inputs: PlanInputs) -> Candidate:
    """Return the candidate that needs the least memory per card, for the numbers in the error message."""
    own = inputs.goal.overrides
    size = int(own.get("tensor_parallel_size") or max(group.tensor_parallel_sizes(model)))
    eight = model.own_precision == "16-bit" and group.first.vendor == "nvidia" and "quantization" not in own
    precision: Precision = "fp8" if eight else _precisions(model, group, inputs)[0][1]
    size = 1 if inputs.preset.single_card or group.first.mig else size
    return compose(model, precision, Layout(group.take(size), size), 1, inputs)
