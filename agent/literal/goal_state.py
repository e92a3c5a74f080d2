"""Where the engine stands with one goal: what was tried, what the screen shows, and what may come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agent.literal import changes
from agent.literal.conversation import GRID, Intent, Move, on_grid
from agent.literal.goals import Goal
from agent.literal.reader import Page
from agent.screen.ocr import Box

if TYPE_CHECKING:
    from PIL.Image import Image

#: A window with at least so many labels is painted.
_WINDOW_LABELS = 5


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next for a goal: the words for it, its intent, and the call's arguments."""

    words: str
    intent: Intent
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached; `words` say what was seen."""

    words: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """The goal cannot be reached; `words` say why."""

    words: str


Verdict = Step | Done | Stuck


@dataclass
class GoalState:
    """How things stand with one goal."""

    goal: Goal
    moves: list[Move]  # what was tried for it
    earlier: list[Move]  # what was done for the goals before it
    image: "Image"  # the screen now
    read: Callable[["Image"], Page]
    last: bool  # no goal comes after it
    been: tuple[str, ...] = ()  # names of what the goals before it opened or clicked

    @cached_property
    def page(self) -> Page:
        """What can be read on the screen; read once, and only if needed."""
        return self.read(self.image)

    @property
    def latest(self) -> Move | None:
        """The last thing tried for this goal."""
        return self.moves[-1] if self.moves else None

    @property
    def visited(self) -> bool:
        """Whether a place that may hold something was opened in this run."""
        return any(move.intent == "place" for move in [*self.earlier, *self.moves])

    @property
    def had_effect(self) -> bool:
        """Whether the last move changed the screen."""
        latest = self.latest
        if latest is None or latest.has("no_effect") or latest.has("failed"):
            return False
        return latest.before is None or changes.changed(latest.before.image, self.image)

    @property
    def attempt(self) -> Move | None:
        """The last action for the goal itself, if nothing but waiting came after it."""
        tried = [move for move in self.moves if move.intent != "late"]
        return tried[-1] if tried and tried[-1].intent == "act" else None

    def took_effect(self, move: Move) -> bool:
        """Whether a click changed the screen: near its point, or much of it."""
        if move.has("failed"):
            return False
        if move.before is None:
            return not move.has("no_effect")
        if move.point is None:
            return changes.changed(move.before.image, self.image)
        x, y = move.point[0] * self.image.width / GRID, move.point[1] * self.image.height / GRID
        return changes.changed_at(move.before.image, self.image, x, y)

    def window(self) -> Box | None:
        """The window in front, if one can be read there: a region where a window vanished has no text."""
        region = self.region()
        if (
            region is not None
            and sum(region.contains(*label.box.center) for label in self.page.labels) < _WINDOW_LABELS
        ):
            return None
        return region

    def region(self) -> Box | None:
        """Where the last large change was: the window or page in front."""
        after = self.image
        for move in reversed([*self.earlier, *self.moves]):
            if move.before is None:
                return None
            if (region := changes.changed_region(move.before.image, after)) is not None:
                return region
            after = move.before.image
        return None

    def click(self, words: str, intent: Intent, box: Box, action: str = "click") -> Step:
        """The step that clicks the middle of a box."""
        return Step(words, intent, {"action": action, "coordinate": on_grid(box, self.image)})

    def opened(self, application: str) -> bool:
        """Whether the application was opened in this run, as far as the chat tells."""
        return any(
            move.call.get("action") == "open" and str(move.call.get("text", "")).lower() == application.lower()
            for move in [*self.earlier, *self.moves]
        )
