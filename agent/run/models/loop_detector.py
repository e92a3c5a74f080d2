"""Detects a model that repeats the same action on the same screen.

"Clicks the same button forever" is among the most reported failures of desktop agents. The detector compares action and
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
    """How many repetitions are too many."""

    nudge_at: int = 3  # repetitions after which the model is told
    stop_at: int = 5  # repetitions after which the run ends
    memory: int = 16  # how many steps to look back
    waiting_factor: int = 3  # waiting may repeat this many times as often


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
