"""How much of a model's context the answer and a screenshot may take."""

from agent.families.base import Family
from agent.model.endpoint import Limits
from foundation.errors import UsageError

#: About 2 Mpx: below it small targets are lost (docs/facts.md); it holds a 1080p screen whole.
DEFAULT_MAX_PIXELS = 2_097_152
#: The least room that an answer needs: a short thought and a call.
_MIN_ANSWER_TOKENS = 256


def answer_tokens(family: Family, context: int | None) -> int:
    """Room for the answer: what the family asks for, at most a quarter of a small context."""
    wanted = family.facts.sampling.max_tokens
    return wanted if context is None else min(wanted, max(_MIN_ANSWER_TOKENS, context // 4))


def pixel_budget(family: Family, limits: Limits, wanted: int | None) -> int:
    """The pixel budget of a screenshot, within the family's, the server's, and half of the room that is left for text.

    `wanted` is what a person asked for; None for what suits the server. Raises UsageError: no screenshot fits.
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
