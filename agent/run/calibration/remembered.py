"""Remembers earlier calibrations, in a file in the application's state folder."""

import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from agent.core.geometry import Grid, Size
from agent.run.budgets import pixel_budget
from agent.run.models.roles import ServedModel
from foundation.configs import state_folder
from foundation.files import keep_json, read_json_object

#: as said: points are in the family's space; resized: they are, if images are smaller; corrected: they are on another
#: grid.
Verdict: TypeAlias = Literal["as said", "resized", "corrected"]


@dataclass(frozen=True, slots=True)
class Correction:
    """The change that makes a model's clicks land where it means them."""

    verdict: Verdict
    words: str  # a sentence for the person
    grid: Grid | None = None  # the grid of the points, in place of the family's
    max_pixels: int | None = None  # a lower pixel budget, below which the server does not resize images

    def applied(self, model: ServedModel) -> ServedModel:
        """Return the model with the correction applied."""
        endpoint, family = model.endpoint, model.family
        if self.max_pixels is not None:
            known = endpoint.limits.max_pixels
            lower = self.max_pixels if known is None else min(known, self.max_pixels)
            endpoint = replace(endpoint, limits=replace(endpoint.limits, max_pixels=lower))
        if self.grid is not None:
            family = family.counting(self.grid)
        return replace(model, endpoint=endpoint, family=family)


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

    def forget(self) -> bool:
        """Delete the remembered correction. Return whether there was one."""
        known = _read()
        found = known.pop(self._key, None) is not None
        if found:
            _write(known)
        return found


def remembered(endpoint: str, model: str) -> Iterator[tuple[str, Correction]]:
    """Yield the screen size and correction of each calibration of a model at an endpoint."""
    for entry in _read().values():
        correction = _correction(entry)
        if correction is not None and (entry.get("endpoint"), entry.get("model")) == (endpoint, model):
            yield str(entry.get("screen", "")), correction


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
