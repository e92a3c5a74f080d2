"""The knobs of one run in one frozen object; every default says where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.run.history import HistoryRule
from agent.run.loop_detector import LoopRule
from agent.screen.encode import ImageFormat
from agent.screen.settle import SettleRule


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How one run is done.

    Args:
        instruction: what the person wants.
        dry_run: the whole pipeline, but nothing is touched.
        max_steps: actions before the run gives up; the longest tasks of OSWorld's published runs are cut at 50.
        max_seconds: time before it gives up; half an hour is longer than any of those takes on a local GPU.
        max_tokens: tokens (prompt and answer, over all requests) before it gives up; None for no limit.
        options: how the family is asked, in its own terms: MAI-UI knows "style" and "thinking".
        history: which screenshots of the past are sent.
        history_images: how many; None for the rule's own number.
        max_pixels: pixel budget of a screenshot; None for what suits the endpoint (agent.run.budgets).
        image_format: None for the family's own.
        parse_retries: how often an unusable answer goes back to the model.
        tools: MCP tool definitions shown to the model.
        settle: when the screen counts as still.
        loop_rule: when repetition counts as a loop.
    """

    instruction: str
    dry_run: bool = False
    max_steps: int = 50
    max_seconds: float = 1800.0
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    history: HistoryRule = "block"
    history_images: int | None = None
    max_pixels: int | None = None
    image_format: ImageFormat | None = None
    parse_retries: int = 2
    tools: tuple[dict[str, Any], ...] = ()
    settle: SettleRule = field(default_factory=SettleRule)
    loop_rule: LoopRule = field(default_factory=LoopRule)
