"""The knobs of one run in one frozen object; every default says where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.run.models.history import HistoryRule
from agent.run.models.loop_detector import LoopRule
from agent.screen.encode import ImageFormat
from agent.screen.outline import See
from agent.screen.settle import SettleRule


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How one run is done."""

    instruction: str  # what the person wants
    dry_run: bool = False  # the whole pipeline, but nothing is touched
    max_steps: int = 50  # actions before the run gives up; the longest tasks of OSWorld's published runs are cut at 50
    #: time before it gives up; half an hour is longer than any of those takes on a local GPU
    max_seconds: float = 1800.0
    max_tokens: int | None = None  # tokens (prompt and answer, over all requests) before it gives up; None for no limit
    #: how the family is asked, in its own terms: MAI-UI knows "style" and "thinking"
    options: Mapping[str, Any] = field(default_factory=dict)
    see: See | None = None  # how the model is shown the screen; None for what suits the family and the model
    history: HistoryRule = "block"  # which screenshots of the past are sent
    history_images: int | None = None  # how many; None for the rule's own number
    max_pixels: int | None = None  # pixel budget of a screenshot; None for what suits the endpoint (agent.run.budgets)
    image_format: ImageFormat | None = None  # None for the family's own
    parse_retries: int = 2  # how often an unusable answer goes back to the model
    tools: tuple[dict[str, Any], ...] = ()  # MCP tool definitions shown to the model
    #: the model is the built-in engine, which says itself what shows that the task is done
    own_engine: bool = False
    settle: SettleRule = field(default_factory=SettleRule)  # when the screen counts as still
    loop_rule: LoopRule = field(default_factory=LoopRule)  # when repetition counts as a loop

    @property
    def remarks(self) -> bool:
        """Whether the model is told what the program noticed; not where it is asked as its own client asks it.

        What a person did, and why something was not done, is told in any case.
        """
        return self.options.get("style") != "reference"
