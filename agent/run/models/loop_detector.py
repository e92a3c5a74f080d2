"""The loop detector: notices a model that does the same thing on the same screen again and again.

"Clicks the same button forever" is among the most reported failures of desktop agents. It compares action and
screen, so a repeated "next" that turns pages is fine.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.screen.settle import Fingerprint

Verdict: TypeAlias = Literal["fine", "nudge", "stop"]

#: Screens that differ in at most this many cells of 32x32 pixels (a caret, a clock) count as the same.
_SAME_SCREEN_CELLS = 4


@dataclass(frozen=True, slots=True)
class LoopRule:
    """How often is too often."""

    nudge_at: int = 3  # at this many times the model is told
    stop_at: int = 5  # at this many times the run ends
    memory: int = 16  # how many steps are looked back
    waiting_factor: int = 3  # waiting is legitimate more often than anything else


class LoopDetector:
    """Counts how often an action was chosen on a screen."""

    def __init__(self, rule: LoopRule = LoopRule()) -> None:
        self._rule = rule
        self._seen: deque[tuple[str, Fingerprint]] = deque(maxlen=rule.memory * rule.waiting_factor)

    def observe(self, action: str, screen: Fingerprint, *, waiting: bool = False) -> Verdict:
        """Judge the action about to be taken on this screen, in words that are equal for equal ones; remember it."""
        factor = self._rule.waiting_factor if waiting else 1
        recent = list(self._seen)[-self._rule.memory * factor :]
        times = 1 + sum(
            1 for name, seen in recent if name == action and len(seen.changed_cells(screen)) <= _SAME_SCREEN_CELLS
        )
        self._seen.append((action, screen))
        if times >= self._rule.stop_at * factor:
            return "stop"
        return "nudge" if times >= self._rule.nudge_at * factor else "fine"
