"""Plans several models on one machine, such as a planner and a grounder.

Each model gets its own cards if there are enough. Otherwise models share a card, whose memory is divided so that the
tightest model gets as much room as possible.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from serverctl.hardware.facts import CannotPlanError, Gpu, Hardware, usable_cards
from serverctl.models.model import Precision
from serverctl.plan.goal import Goal, Plan
from serverctl.plan.group import Group, groups

#: Plans one model on the given hardware.
MakePlan: TypeAlias = Callable[[Hardware, Goal], Plan]
#: The smallest share of a card to try, and the step, in hundredths. CUDA alone takes a smaller share, and finer steps
#: are below the error of the estimate.
_LEAST, _STEP = 8, 2
#: vLLM's default share for one server, and the share of a card that also drives a display.
_SHARE, _SHARE_WITH_DISPLAY = 0.92, 0.88
_KNOB = "gpu_memory_utilization"
_WHY = "another model of ours shares this card: the one with the least room gets the most"
#: Relative quality by precision: 8-bit weights cost little, 4-bit weights more (docs/models.md).
_QUALITY: Mapping[Precision, float] = {"16-bit": 1.0, "fp8": 0.9, "w4": 0.7}


@dataclass(frozen=True, slots=True)
class Part:
    """The plan for one of several models."""

    goal: Goal  # its adjustments contain its share of the card
    plan: Plan  # on exactly the cards of this model


def plan_together(hardware: Hardware, goals: Sequence[Goal], make: MakePlan) -> tuple[Part, ...]:
    """Return one plan for each goal, so that all can run at the same time.

    Raises:
        CannotPlanError: there is no card, or the models do not fit together; the message gives each model's need.
        UsageError: raised by `make`.
    """
    if len(goals) == 1:
        return (Part(goals[0], make(hardware, goals[0])),)
    cards = usable_cards(hardware)
    if not cards:
        raise CannotPlanError(
            "Several models need a graphics card: a processor serves one slowly.",
            "Start one, or name an endpoint on another machine.",
        )
    alone = [make(hardware, goal) for goal in goals]  # raises for a model that does not fit even alone
    apart = _apart(hardware, cards, goals, alone, make) if len(cards) >= len(goals) else None
    return (
        apart
        or (_spread(hardware, cards, goals, alone, make) if len(cards) > 1 else None)
        or _sharing(hardware, cards, goals, alone, make)
    )


def _apart(
    hardware: Hardware, cards: tuple[Gpu, ...], goals: Sequence[Goal], alone: Sequence[Plan], make: MakePlan
) -> tuple[Part, ...] | None:
    """Place each model on its own cards. The largest model chooses first; one card is kept for each other model."""
    heaviest = sorted(range(len(goals)), key=lambda number: -alone[number].model.weight_bytes("16-bit"))
    parts: dict[int, Part] = {}
    left = tuple(gpu for kind in groups(cards) for gpu in kind.cards)
    for place, number in enumerate(heaviest):
        spare = len(left) - (len(heaviest) - place - 1)
        try:
            plan = make(replace(hardware, gpus=left[:spare]), goals[number])
        except CannotPlanError:
            return None
        parts[number] = Part(goals[number], plan)
        used = {gpu.index for replica in plan.replicas for gpu in replica}
        left = tuple(gpu for gpu in left if gpu.index not in used)
    return tuple(parts[number] for number in range(len(goals)))


def _spread(
    hardware: Hardware, cards: tuple[Gpu, ...], goals: Sequence[Goal], alone: Sequence[Plan], make: MakePlan
) -> tuple[Part, ...] | None:
    """Distribute models over the cards: the largest first, each to the card with the most memory left.

    Models on one card then share it.
    """
    weights = [plan.model.weight_bytes("16-bit") for plan in alone]
    left = {card.index: card.total_bytes for card in cards}
    placed: dict[int, list[int]] = {card.index: [] for card in cards}
    for number in sorted(range(len(goals)), key=lambda number: -weights[number]):
        most = max(left, key=lambda index: left[index])
        left[most] -= weights[number]
        placed[most].append(number)
    parts: dict[int, Part] = {}
    for card in cards:
        if not (numbers := placed[card.index]):
            continue
        try:
            found = plan_together(replace(hardware, gpus=(card,)), [goals[number] for number in numbers], make)
        except CannotPlanError:
            return None
        parts |= dict(zip(numbers, found, strict=True))
    return tuple(parts[number] for number in range(len(goals)))


def _sharing(
    hardware: Hardware, cards: tuple[Gpu, ...], goals: Sequence[Goal], alone: Sequence[Plan], make: MakePlan
) -> tuple[Part, ...]:
    card = max(cards, key=lambda gpu: gpu.total_bytes)
    one = replace(hardware, gpus=(card,))
    free = Group((card,)).free_share
    limit = min(_SHARE_WITH_DISPLAY if card.display else _SHARE, 1.0 if free is None else free)
    fitting = [_by_share(one, goal, limit, make) for goal in goals]
    best = max(_ways(fitting, limit + 1e-9), key=_plan_quality, default=None)
    if best is not None:
        return tuple(each.part for each in best)
    need = " and ".join(
        f"{plan.model.name} needs {found[0].share:.0%}" if found else f"{plan.model.name} more than there is"
        for plan, found in zip(alone, fitting, strict=True)
    )
    raise CannotPlanError(
        f"These models do not fit together on {card.name}: {need} of its memory, and there is {limit:.0%}.",
        "Use smaller models, published 4-bit checkpoints, more cards, or an endpoint on another machine.",
    )


class _Share(NamedTuple):
    share: float  # of a card, 0 to 1
    room: float  # the quality of the plan (`_room`)
    part: Part  # the plan that fits into it


def _ways(fitting: Sequence[Sequence[_Share]], limit: float) -> Iterator[tuple[_Share, ...]]:
    """Yield every way to give each model one of its shares, the smallest shares first."""
    if not fitting or not all(fitting):
        return
    first, *others = fitting
    least = sum(found[0].share for found in others)
    for each in first:
        if each.share + least > limit:
            return
        yield from ((each, *rest) for rest in (_ways(others, limit - each.share) if others else [()]))


def _by_share(hardware: Hardware, goal: Goal, limit: float, make: MakePlan) -> list[_Share]:
    """Return the plans that fit, the smallest share of the card first. A share that the user set is the only one."""
    own = goal.overrides.get(_KNOB)
    shares = [float(own)] if own is not None else [step / 100 for step in range(_LEAST, round(limit * 100) + 1, _STEP)]
    found: list[_Share] = []
    for share in shares:
        divided = goal if own is not None else goal.adjusted({_KNOB: share}, {_KNOB: _WHY})
        try:
            plan = make(hardware, divided)
        except CannotPlanError:
            continue
        found.append(_Share(share, _room(plan), Part(divided, plan)))
    return found


def _plan_quality(way: Sequence[_Share]) -> tuple[list[float], float, float]:
    """Sort key: the room of the tightest model, then of the next; then equal shares, then the larger sum of shares."""
    shares = [each.share for each in way]
    return sorted(each.room for each in way), min(shares), sum(shares)


def _room(plan: Plan) -> float:
    """Return the quality of a plan: screenshots and precision of the weights first, then concurrent requests."""
    wanted = plan.model.history_images
    images = min(plan.settings.images or 0, wanted) / wanted if plan.model.shape.vision else 1.0
    return images * _QUALITY[plan.precision] + min(plan.max_concurrency, 4.0) / 100
