"""Calibrates a model's clicks before a run, and remembers that: once per model, server and screen size."""

import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from agent.core.geometry import Grid, Size
from agent.run.calibration.trial import Correction, Outcome, Verdict, draw_clicks, try_out
from agent.run.models.history import pixel_budget
from agent.run.models.roles import ServedModel
from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError
from foundation.files import keep_json, read_json_object

#: auto: once for every endpoint that we did not start, and remembered; always: before every run, for any server.
Wish: TypeAlias = Literal["auto", "off", "always"]
#: Version of the pictures, the questions and the fit. Results of another version are measured again.
_METHOD = 1


@dataclass(frozen=True, slots=True)
class Case:
    """The conditions that a calibration is valid for."""

    endpoint: str
    model: str
    family: str
    screen: Size  # as captured
    max_pixels: int  # pixel budget of a screenshot

    @classmethod
    def of(cls, model: ServedModel, screen: Size, wanted: int | None) -> "Case":
        """Return the case of a model on a screen, with the wanted pixel budget.

        Raises UsageError: no screenshot fits.
        """
        endpoint, family = model.endpoint, model.family
        budget = pixel_budget(family, endpoint.limits, wanted)
        return cls(endpoint.base_url, endpoint.model or "", family.facts.name, screen, budget)

    @property
    def _key(self) -> str:
        return f"{self.endpoint} {self.model} {self.family} {self.screen} {self.max_pixels} {_METHOD}"

    def recall(self) -> Correction | None:
        """Return the remembered correction; None if there is none."""
        return _correction(_read().get(self._key))

    def remember(self, correction: Correction) -> None:
        """Save a correction."""
        entry = {
            "endpoint": self.endpoint,
            "model": self.model,
            "screen": str(self.screen),
            "verdict": correction.verdict,
            "words": correction.words,
            "grid": correction.grid and astuple(correction.grid),
            "max_pixels": correction.max_pixels,
        }
        _write(_read() | {self._key: entry})


def recalled(model: ServedModel, screen: Size, max_pixels: int | None) -> ServedModel:
    """Apply the remembered correction of a model, without asking the model."""
    if not model.family.grounds:
        return model
    known = Case.of(model, screen, max_pixels).recall()
    return model if known is None else known.applied(model)


async def calibrated(
    model: ServedModel, screen: Size, wish: Wish, max_pixels: int | None, tell: Callable[[str], None]
) -> ServedModel:
    """Return the model with its clicks corrected for a screen of this size, measured now or remembered.

    `auto` skips servers that we started ourselves, and models that name elements by number. `max_pixels` is the
    wanted pixel budget; None takes the endpoint's. `tell` receives progress messages. Raises EnvironmentLacksError: the
    model's points cannot be used. ModelError: the model cannot be asked.
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
    forget(case.endpoint, case.model, case.screen)
    path = picture or state_folder() / "calibration.png"
    saved = save(outcome, path)
    raise EnvironmentLacksError(
        f"{case.model} ({case.family}) does not click where it should: {outcome.refusal}.",
        f"{saved}Name its family with --family, or skip the check with --calibrate off.",
    )


def save(outcome: Outcome, path: Path) -> str:
    """Write the picture of the marks and the clicks. Return a sentence on where it is, or why it failed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_clicks(outcome.sizes.captured, outcome.clicks()).save(path, "PNG")
    except OSError as error:
        return f"(The picture of its clicks cannot be written: {error.strerror or error}.) "
    return f"Where it clicked for each mark: {path}. "


def remembered(endpoint: str, model: str) -> Iterator[tuple[str, Correction]]:
    """Yield the screen size and correction of each calibration of a model at an endpoint."""
    for entry in _read().values():
        correction = _correction(entry)
        if correction is not None and (entry.get("endpoint"), entry.get("model")) == (endpoint, model):
            yield str(entry.get("screen", "")), correction


def forget(endpoint: str, model: str, screen: Size | None = None) -> bool:
    """Delete the corrections of a model at an endpoint, on one screen or on all. Return whether there were any."""
    known, about = _read(), {"endpoint": endpoint, "model": model} | ({"screen": str(screen)} if screen else {})
    kept = {key: entry for key, entry in known.items() if {**entry, **about} != entry}
    if len(kept) < len(known):
        _write(kept)
    return len(kept) < len(known)


def _read() -> dict[str, Any]:
    entries = read_json_object(state_folder() / "calibration.json").get("found")
    return entries if isinstance(entries, dict) else {}


def _write(entries: dict[str, Any]) -> None:
    keep_json(state_folder() / "calibration.json", {"found": entries})


def _correction(entry: Any) -> Correction | None:
    """Read an entry of the file, which other programs may have changed. An invalid entry counts as unknown."""
    try:
        most, grid = entry["max_pixels"], None if entry["grid"] is None else Grid(*map(float, entry["grid"]))
        usable = grid is None or (min(grid.width, grid.height) > 0 and all(map(math.isfinite, astuple(grid))))
        if entry["verdict"] in get_args(Verdict) and usable and (most is None or (isinstance(most, int) and most > 0)):
            return Correction(entry["verdict"], str(entry["words"]), grid, most)
    except (KeyError, TypeError, ValueError):
        pass
    return None
