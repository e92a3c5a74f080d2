"""How many tokens of a model's context the answer and a screenshot may take."""

from agent.families.base import Family
from agent.model.endpoint import Limits
from foundation.errors import UsageError

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
