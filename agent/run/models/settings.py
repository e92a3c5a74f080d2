"""The settings of one run, and the detector of a model that repeats itself. Each default names its source."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent.run.models.history import HistoryRule
from agent.screen.encode import ImageFormat
from agent.screen.outline import See
from agent.screen.settle import Fingerprint, SettleRule

Verdict: TypeAlias = Literal["fine", "nudge", "stop"]
#: Screens that differ in at most this many cells of 32x32 pixels (a caret, a clock) count as the same.
_SAME_SCREEN_CELLS = 4


@dataclass(frozen=True, slots=True)
class LoopRule:
    """How many repetitions are too many."""

    nudge_at: int = 3  # repetitions after which the model is told
    stop_at: int = 5  # repetitions after which the run ends
    memory: int = 16  # how many steps to look back
    waiting_factor: int = 3  # waiting may repeat this many times as often


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How one run is done."""

    instruction: str  # the task
    dry_run: bool = False  # run the whole pipeline without touching the desktop
    max_steps: int = 50  # maximum steps; the longest tasks of OSWorld's published runs are cut at 50
    #: time limit; no task of those runs takes half an hour on a local GPU
    max_seconds: float = 1800.0
    max_tokens: int | None = None  # token limit (prompt and answer, over all requests); None for no limit
    #: the family's own options, for example "style" and "thinking" of MAI-UI
    options: Mapping[str, Any] = field(default_factory=dict)
    see: See | None = None  # how the model is shown the screen; None to suit the family and the model
    history: HistoryRule = "block"  # which past screenshots are sent
    history_images: int | None = None  # how many past screenshots are sent; None for the rule's own number
    max_pixels: int | None = None  # pixel budget of a screenshot; None to suit the endpoint (`history.pixel_budget`)
    image_format: ImageFormat | None = None  # None for the family's own
    parse_retries: int = 2  # how often an unusable answer is sent back to the model
    tools: tuple[dict[str, Any], ...] = ()  # MCP tool definitions for the model
    #: whether the model is the built-in engine, whose claims bring their own evidence
    own_engine: bool = False
    settle: SettleRule = field(default_factory=SettleRule)  # when the screen counts as still
    loop_rule: LoopRule = field(default_factory=LoopRule)  # when repetition counts as a loop

    @property
    def remarks(self) -> bool:
        """Return whether the model is told what the program noticed. The reference style sends no such remarks.

        What a person did, and why an action was not done, is always told.
        """
        return self.options.get("style") != "reference"


class LoopDetector:
    """Counts how often an action was chosen on a screen."""

    def __init__(self, rule: LoopRule = LoopRule()) -> None:
        self._rule = rule
        self._seen: deque[tuple[str, Fingerprint]] = deque(maxlen=rule.memory * rule.waiting_factor)

    def observe(self, action: str, screen: Fingerprint, *, waiting: bool = False) -> Verdict:
        """Judge and remember the next action on this screen. `action` is a text that is equal for equal actions."""
        factor = self._rule.waiting_factor if waiting else 1
        recent = list(self._seen)[-self._rule.memory * factor :]
        times = 1 + sum(
            1 for name, seen in recent if name == action and len(seen.changed_cells(screen)) <= _SAME_SCREEN_CELLS
        )
        self._seen.append((action, screen))
        if times >= self._rule.stop_at * factor:
            return "stop"
        return "nudge" if times >= self._rule.nudge_at * factor else "fine"
