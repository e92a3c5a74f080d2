"""Prepares models to decide steps: each with its own observer, history and limits, on one desktop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.guard.reach import MaskedScreen, Reach
from agent.families.planner.family import Planner
from agent.model.clients import MaskedClient
from agent.model.endpoint import Endpoint
from agent.run.models.actor import Actor
from agent.run.models.history import History, answer_tokens, most_images, pixel_budget
from agent.run.models.resolve_point import PointModel, TargetFinder, Zoom
from agent.run.models.roles import ServedModel
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Conceal, Observer
from agent.run.observing.outliner import Outliner
from agent.safety.policy_rules.policy_file import Leaving
from agent.screen.capture import Screen
from foundation.errors import UsageError


@dataclass(frozen=True, slots=True)
class DecidingModel:
    """A model that can decide steps, with its observer."""

    role: Literal["actor", "relief"]
    observer: Observer
    actor: Actor
    settings: RunSettings
    elsewhere: bool = False  # a fallback model on another machine: its input leaves this machine
    errors_hidden: bool = False  # error messages are withheld, because they may quote hidden windows


@dataclass(frozen=True, slots=True)
class FallbackModel:
    """A second model that may take over."""

    endpoint: Endpoint
    join: Callable[[], DecidingModel]  # prepares it; called once, before its first takeover
    leaving: Leaving = Leaving()  # noqa: RUF009 -- frozen
    steps: int = 5  # steps until it hands back
    bundle: str = ""  # the run's folder


#: Installed applications named to the model. More cost more tokens than they are worth.
_MOST_APPS = 60


@dataclass(frozen=True, slots=True)
class Ground:
    """What the models of one run share."""

    desktop: GuardedDesktop
    languages: Sequence[str]  # tesseract's names of the screen's languages
    system_prompt: Callable[[str], str | None]  # replacement for a family's system prompt
    zoom: Zoom
    grounder: ServedModel | None  # finds places for models that only name them


def main_model(model: ServedModel, settings: RunSettings, ground: Ground) -> DecidingModel:
    """Prepare the main model. Raises UsageError: the grounder's family cannot find places."""
    prompt = ground.system_prompt(model.family.facts.name)
    return _deciding_model("actor", model, settings, ground, ground.desktop.screen, prompt)


def fallback_model(
    model: ServedModel,
    settings: RunSettings,
    ground: Ground,
    leaving: Leaving,
    mask: Callable[[str], str],
    prompt: str | None,
) -> DecidingModel:
    """Prepare the fallback model. A remote one sees only what may leave this machine, and no secrets."""
    desktop, elsewhere = ground.desktop, not model.endpoint.is_local
    reach = Reach(desktop.open_windows, leaving=leaving if elsewhere else Leaving())
    screen = MaskedScreen(desktop.screen, reach)
    if not elsewhere:
        return _deciding_model("relief", model, settings, ground, screen, prompt)
    masked = replace(model, client=MaskedClient(model.client, mask))
    conceal = partial(reach.conceal, lambda text: mask(text) != text)
    member = _deciding_model("relief", masked, settings, ground, screen, prompt, conceal)
    return replace(member, elsewhere=True, errors_hidden=bool(leaving.hide))


def _deciding_model(
    role: Literal["actor", "relief"],
    model: ServedModel,
    settings: RunSettings,
    ground: Ground,
    screen: Screen,
    prompt: str | None,
    conceal: Conceal | None = None,
) -> DecidingModel:
    """Prepare a model. A model that only sees what `conceal` leaves is not told the installed applications."""
    desktop, family, facts, limits = ground.desktop, model.family, model.family.facts, model.endpoint.limits
    rule, image_format = facts.image.capped(settings.max_pixels), settings.image_format or facts.image_format
    images = settings.history_images
    if images is None:
        images = most_images(settings.history, facts, model.endpoint.kind)
    history = History(settings.history, limits, answer_tokens(family, limits.context), images)
    # A fallback model that can point is asked for its own points.
    needs_grounder = role == "actor" or isinstance(family, Planner)
    grounder = _point_model(ground.grounder) if needs_grounder and ground.grounder is not None else None
    targets = TargetFinder(PointModel(role, model.client, family, rule), grounder, ground.zoom)
    apps = () if conceal is not None else tuple(desktop.applications.names()[:_MOST_APPS])
    actor = Actor(model.client, family, history, settings, apps, targets, prompt)
    see = settings.see or "screenshot"
    lists_elements = see != "screenshot"
    outliner = Outliner(
        desktop.open_elements, desktop.open_windows, ground.languages, read_words=facts.outline or lists_elements,
        keep_numbers=lists_elements,
    )  # fmt: skip
    observer = Observer(
        screen, rule, image_format, facts.quality, outliner, waits=facts.outline, saw=desktop.surroundings.saw, see=see,
        conceal=conceal, awaited=model.engine.awaited,
    )  # fmt: skip
    return DecidingModel(role, observer, actor, settings)


def _point_model(grounder: ServedModel) -> PointModel:
    """Prepare the grounder. Raises UsageError: its family cannot find places."""
    family = grounder.family
    if not family.grounds:
        raise UsageError(
            f"The family {family.facts.name} of the grounder {grounder.endpoint.model!r} cannot be asked for a point.",
            "Name another model, or its family with --grounder-family.",
        )
    rule = family.facts.image.capped(pixel_budget(family, grounder.endpoint.limits, None))
    return PointModel("grounder", grounder.client, family, rule)
