"""What was found out of where a model clicks, as a run uses it."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent.core.geometry import Grid
from agent.run.models.roles import ServedModel

#: as said: its points count as its family says; resized: they do for smaller images; corrected: they count on another
#: grid.
Verdict: TypeAlias = Literal["as said", "resized", "corrected"]


@dataclass(frozen=True, slots=True)
class Correction:
    """What a run does so that a model's clicks land where it means them."""

    verdict: Verdict
    words: str  # the same for the person, as a sentence
    grid: Grid | None = None  # what its points count on, in place of what its family says
    max_pixels: int | None = None  # a lower pixel budget, below which the server leaves images alone

    def applied(self, model: ServedModel) -> ServedModel:
        """The model, asked and read that way."""
        endpoint, family = model.endpoint, model.family
        if self.max_pixels is not None:
            known = endpoint.limits.max_pixels
            lower = self.max_pixels if known is None else min(known, self.max_pixels)
            endpoint = replace(endpoint, limits=replace(endpoint.limits, max_pixels=lower))
        if self.grid is not None:
            family = family.counting(self.grid)
        return replace(model, endpoint=endpoint, family=family)
