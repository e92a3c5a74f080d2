"""Sees to it, before a run, that the clicks of its model land: once per model, server and size of screen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent.core.geometry import Size
from agent.run.calibration.memory import Case, Correction
from agent.run.calibration.trial import Outcome, try_out
from agent.run.models.roles import ServedModel
from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError

#: auto: once for every endpoint that is not ours, and remembered; always: before every run, whatever serves the model.
Wish: TypeAlias = Literal["auto", "off", "always"]


def is_wanted(model: ServedModel, wish: Wish) -> bool:
    """Whether it is to be found out, or recalled, where a model clicks.

    By itself not for a server that we started with our own limits, nor for a model that names elements by number.
    """
    facts = model.family.facts
    if wish == "off" or not model.family.grounds or model.endpoint.kind == "literal":
        return False
    return wish == "always" or (model.engine.name == "endpoint" and not facts.names_elements)


def recalled(model: ServedModel, screen: Size, max_pixels: int | None) -> ServedModel:
    """The model with what is remembered of it; nothing is asked."""
    if not model.family.grounds:
        return model
    known = Case.of(model, screen, max_pixels).recall()
    return model if known is None else known.applied(model)


async def calibrated(
    model: ServedModel,
    screen: Size,
    wish: Wish,
    max_pixels: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> ServedModel:
    """The model so that its clicks land on a screen of this size, found out now or remembered.

    Args:
        model: what is asked.
        screen: as captured.
        wish: when it is found out.
        max_pixels: the pixel budget that is wanted; None for what suits the endpoint.
        tell: is told how it goes.

    Raises:
        EnvironmentLacksError: its points cannot be used.
        ModelError: it cannot be asked.
    """
    if not is_wanted(model, wish):
        return model
    case = Case.of(model, screen, max_pixels)
    known = case.recall() if wish == "auto" else None
    if known is None:
        if wish == "auto":
            tell("Before the first run with this model on such a screen (--calibrate off leaves it out):")
        outcome = await try_out(model, screen, max_pixels, tell)
        known = settled(case, outcome)
        return _with_remark(known.applied(model), known)
    return known.applied(model) if known.verdict == "as said" else _with_remark(known.applied(model), known)


def settled(case: Case, outcome: Outcome, picture: Path | None = None) -> Correction:
    """What a trial came to, remembered. The picture of its clicks is written where it failed, or was asked for.

    Raises EnvironmentLacksError: the model's points cannot be used.
    """
    if outcome.correction is not None:
        if picture is not None:
            save(outcome, picture)
        case.remember(outcome.correction)
        return outcome.correction
    case.forget()
    where = picture or state_folder() / "calibration.png"
    saved = save(outcome, where)
    raise EnvironmentLacksError(
        f"{case.model} ({case.family}) does not click where it should: {outcome.refusal}.",
        f"{saved}Is it another family (--family)? --calibrate off lets it click all the same.",
    )


def save(outcome: Outcome, path: Path) -> str:
    """Write the picture of the marks and the clicks; words on where it is, or why not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        outcome.picture().save(path, "PNG")
    except OSError as error:
        return f"(The picture of its clicks cannot be written: {error.strerror or error}.) "
    return f"Where it clicked for each mark: {path}. "


def _with_remark(model: ServedModel, correction: Correction) -> ServedModel:
    return replace(model, remarks=(*model.remarks, correction.words))
