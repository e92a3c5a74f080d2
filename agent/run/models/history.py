"""Which screenshots and steps go into a request, within the server's limits, and how large the screenshots are.

The rule is a pair (low, high): screenshots accumulate up to `high`, then all but the newest `low` are dropped at once.
With low == high, this is the sliding window of the published clients. It shifts everything behind the dropped image, so
the server computes all of its images again at every step.

Dropping in blocks keeps the beginning of the prompt unchanged for several steps, so the server's prefix cache can serve
it: 81 % of the prompt's tokens with 3 to 12 screenshots, 70 % with 3 to 6, 20 % with a window of 3 (docs/facts.md).
"""

import json
from dataclasses import replace
from typing import Literal, TypeAlias

from agent.families.base import Family, FamilyFacts, PastStep
from agent.model.endpoint import Limits, ServerKind
from foundation.errors import UsageError

HistoryRule: TypeAlias = Literal["sliding", "block", "grow"]

#: Low and high of the `block` rule, for servers that keep a cache of prefixes (from the numbers above).
BLOCK_LOW, BLOCK_HIGH = 3, 12
#: High for other servers: without a cache, all screenshots are computed, and often paid for, again at every step.
BLOCK_HIGH_UNCACHED = 6
#: `grow` keeps everything that fits. This limit only bounds the memory.
_GROW_MOST = 512

#: After a drop, past steps may fill this share of their token budget.
_REFILL = 0.7
#: UTF-8 bytes per token, a low estimate: English has about 4, JSON and code about 3, Chinese about 3.
_BYTES_PER_TOKEN = 2.5
#: Extra tokens of a message (role, separators) or an image (vision start and end).
_FRAME_TOKENS = 6


def most_images(rule: HistoryRule, facts: FamilyFacts, kind: ServerKind) -> int | None:
    """Return how many screenshots a request shows if nobody chose it; None for the rule's own number."""
    if rule == "sliding":
        return facts.reference_images
    if facts.most_images is None and rule == "block" and kind != "vllm":
        return BLOCK_HIGH_UNCACHED
    return facts.most_images


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    return int(len(text.encode("utf-8", "replace")) / _BYTES_PER_TOKEN) + _FRAME_TOKENS


def _text_tokens(step: PastStep) -> int:
    """Estimate the tokens of a step without its images."""
    written = "".join(json.dumps(dict(call.arguments), ensure_ascii=False) for call in step.calls)
    return sum(map(estimate_tokens, (step.thought, written, "".join(step.replies)))) + 20


#: Maximum screenshots in a request, the current one included, by rule.
_HIGH: dict[HistoryRule, int] = {"sliding": BLOCK_LOW, "block": BLOCK_HIGH, "grow": _GROW_MOST}


def _low(rule: HistoryRule, high: int) -> int:
    """Return the low number for a high one. Small blocks leave little to the prefix cache."""
    return {"sliding": high, "block": max(1, min(BLOCK_LOW, high // 2)), "grow": max(1, high // 2)}[rule]


class History:
    """The steps so far, and the moving window over them.

    `answer_tokens` are reserved for the answer. `images` replaces the rule's only number, or its high number. `context`
    is the token limit of requests, None if unknown; an error of the server may report a lower limit.
    """

    def __init__(self, rule: HistoryRule, limits: Limits, answer_tokens: int, images: int | None = None) -> None:
        self._steps: list[PastStep] = []
        self._text_costs: list[int] = []
        self._image_costs: list[int] = []
        self._high = images or _HIGH[rule]
        self._low = _low(rule, self._high)
        self._rule = rule
        self.context = limits.context
        self._answer_tokens = answer_tokens
        self._first_shown = 0
        self._current_images = 1
        self._skipped = 0
        self.most_images: int | None = None  # most images that the server accepts, the current one included
        if limits.images is not None:
            self.limit_images(limits.images)

    def add(self, step: PastStep, image_tokens: int) -> None:
        """Append a finished step. Its images cost `image_tokens`."""
        self._steps.append(step)
        self._text_costs.append(_text_tokens(step))
        self._image_costs.append(image_tokens + _FRAME_TOKENS)

    def annotate(self, note: str) -> bool:
        """Add a note to the newest step. Return False if there is no step yet."""
        if not self._steps:
            return False
        newest = self._steps[-1]
        self._steps[-1] = replace(newest, note=f"{newest.note} {note}" if newest.note else note)
        self._text_costs[-1] = _text_tokens(self._steps[-1])
        return True

    def limit_images(self, most: int) -> None:
        """Limit the images of a request, the current one included."""
        self.most_images = most if self.most_images is None else min(self.most_images, most)
        self._high = max(1, min(self._high, most))
        self._low = _low(self._rule, self._high)

    def shrink(self) -> bool:
        """Show less of the past, after a server error. Return False if nothing is left to drop."""
        shown = len(self._steps) - self._first_shown
        if shown > 0:
            self._first_shown = len(self._steps) - shown // 2
            self._high = max(1, self._images_shown() + self._current_images)
            self._low = min(self._low, self._high)
            return True
        if self._skipped < len(self._steps):
            self._skipped += max(1, (len(self._steps) - self._skipped) // 2)
            return True
        return False

    def window(self, fixed_tokens: int, image_tokens: int, images: int = 1) -> tuple[tuple[PastStep, ...], int]:
        """Return the steps that the next request shows, and how many older steps it leaves out.

        `fixed_tokens` are those without the past: system prompt, instruction, feedback; `image_tokens` those of the
        current images.
        """
        self._current_images = images
        if self._images_shown() + images > self._high:
            self._show_images(self._low - images)
        if self.context is not None:
            room = self.context - self._answer_tokens - fixed_tokens - image_tokens - _FRAME_TOKENS
            self._fit(room)
        first = max(self._first_shown, self._skipped)
        older = (replace(step, images=(None,) * len(step.images)) for step in self._steps[self._skipped : first])
        return (*older, *(replace(step, shown=True) for step in self._steps[first:])), self._skipped

    def _fit(self, room: int) -> None:
        """Drop screenshots, then the oldest steps, until the past fits.

        It drops more than needed, so that the next steps fit without another drop: each drop shifts everything behind
        it, and the server's prefix cache loses that. Screenshots may take half of the room. Without that limit, they
        would be dropped one by one, step after step, before any text.
        """
        if self._cost() <= room:
            return
        total, target = len(self._steps), int(room * _REFILL)
        self._show_images(self._low - self._current_images)
        while self._first_shown < total and self._image_cost() > room // 2:
            self._first_shown += 1
        while self._skipped < total and self._cost() > target:
            self._skipped += 1
            self._first_shown = max(self._first_shown, self._skipped)

    def _images_shown(self) -> int:
        return sum(len(step.images) for step in self._steps[self._first_shown :])

    def _show_images(self, most: int) -> None:
        """Drop the oldest images until at most `most` past images are shown."""
        while self._first_shown < len(self._steps) and self._images_shown() > most:
            self._first_shown += 1

    def _cost(self) -> int:
        return sum(self._text_costs[self._skipped :]) + self._image_cost()

    def _image_cost(self) -> int:
        return sum(self._image_costs[self._first_shown :])


#: About 2 Mpx holds a 1080p screen whole. Below it, small targets are lost (docs/facts.md).
DEFAULT_MAX_PIXELS = 2_097_152
#: The minimum for an answer: a short thought and a call.
_MIN_ANSWER_TOKENS = 256


def answer_tokens(family: Family, context: int | None) -> int:
    """Return the tokens reserved for the answer: what the family asks for, at most a quarter of a small context."""
    wanted = family.facts.sampling.max_tokens
    return wanted if context is None else min(wanted, max(_MIN_ANSWER_TOKENS, context // 4))


def pixel_budget(family: Family, limits: Limits, wanted: int | None) -> int:
    """Return the pixel budget of a screenshot.

    It is the smallest of the family's limit, the server's limit, and half of the context that the answer leaves free.
    `wanted` is the user's choice; None takes the server's limit. Raises UsageError: no screenshot fits.
    """
    budgets = [wanted or limits.max_pixels or DEFAULT_MAX_PIXELS, family.facts.image.max_pixels]
    if limits.max_pixels is not None:
        budgets.append(limits.max_pixels)
    if limits.context is not None:
        room = limits.context - answer_tokens(family, limits.context)
        rule = family.facts.image
        budgets.append(max(0, room // 2) * (rule.token_pixels or rule.factor**2))
    budget = min(budgets)
    if budget < family.facts.image.min_pixels:
        raise UsageError(
            f"A context of {limits.context} tokens or {budget} pixels leaves no room for a screenshot.",
            "Start the server with a longer --max-model-len, or raise --max-pixels.",
        )
    return budget
