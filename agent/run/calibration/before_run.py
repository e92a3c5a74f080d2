"""Calibrates a model's clicks before a run: once per model, server and screen size."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent.core.geometry import Size
from agent.run.calibration.picture import draw_clicks
from agent.run.calibration.remembered import Case, Correction
from agent.run.calibration.trial import Outcome, try_out
from agent.run.models.roles import ServedModel
from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError

#: auto: once for every endpoint that we did not start, and remembered; always: before every run, for any server.
Wish: TypeAlias = Literal["auto", "off", "always"]


def recalled(model: ServedModel, screen: Size, max_pixels: int | None) -> ServedModel:
    """Apply what is remembered of a model, without asking it."""
    if not model.family.grounds:
        return model
    known = Case.of(model, screen, max_pixels).recall()
    return model if known is None else known.applied(model)


async def calibrated(
    model: ServedModel, screen: Size, wish: Wish, max_pixels: int | None, tell: Callable[[str], None]
) -> ServedModel:
    """Return the model with its clicks corrected for a screen of this size, measured now or remembered.

    In `auto`, a server that we started with our own limits is left out, and so is a model that names elements by
    number. `max_pixels` is the wanted pixel budget; None suits the endpoint. `tell` receives progress messages.

    Raises:
        EnvironmentLacksError: the model's points cannot be used.
        ModelError: the model cannot be asked.
    """
    automatic = model.engine.name == "endpoint" and not model.family.facts.names_elements
    points = model.family.grounds and model.endpoint.kind != "literal"
    if not points or wish == "off" or (wish == "auto" and not automatic):
        return model
    case = Case.of(model, screen, max_pixels)
    known = case.recall() if wish == "auto" else None
    if known is not None and known.verdict == "as said":
        return known.applied(model)
    if known is None:
        if wish == "auto":
            tell("Before the first run with this model on such a screen (--calibrate off leaves it out):")
        known = settled(case, await try_out(model, screen, max_pixels, tell))
    return replace(known.applied(model), remarks=(*model.remarks, known.words))


def settled(case: Case, outcome: Outcome, picture: Path | None = None) -> Correction:
    """Remember and return a trial's correction. Write the picture of the clicks if it failed, or on request.

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
    """Write the picture of the marks and the clicks. Return a sentence on where it is, or why it failed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_clicks(outcome.sizes.captured, outcome.clicks()).save(path, "PNG")
    except OSError as error:
        return f"(The picture of its clicks cannot be written: {error.strerror or error}.) "
    return f"Where it clicked for each mark: {path}. "
