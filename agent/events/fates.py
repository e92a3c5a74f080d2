"""What became of an action, in one set of words for events, records, reports and screens.

An action that was not done needs words for the reason: the person skipped it, the person refused it, or an earlier
action was not carried out, so that nobody was asked about this action.
"""

from typing import Literal, TypeAlias, get_args

from agent.core.actions import shorten
from agent.core.geometry import DesktopPoint
from foundation.printing import counted

#: Why an action was not carried out, and never will be.
Why: TypeAlias = Literal[
    "refused",  # the person said no
    "skipped",  # the person said no and wants the next part
    "told",  # the person said no, and what to do instead
    "overtaken",  # the person used the computer meanwhile, so the screen of the decision is outdated
    "left out",  # an action before it, of the same answer, was not carried out
]
#: What became of an action.
Fate: TypeAlias = Literal[
    "done",  # carried out: as proposed, or as the person changed it
    "dry run",  # it would have been carried out
    "failed",  # not possible, or only in part
    "refused", "skipped", "told", "overtaken", "left out",
    "unanswered",  # the person was asked and the run ended before an answer
    "said",  # nothing was to be done: an answer, an end, a question to the person
    "broken off",  # the run, or its model's turn, ended before
]  # fmt: skip
#: Why a second model may take over: it runs on this machine, the policy file allows it, or the person does.
Allowed: TypeAlias = Literal["local", "policy", "person"]
WHYS: tuple[Why, ...] = get_args(Why)

#: Every fate in words, which follow the words of the action.
WORDS: dict[Fate, str] = {
    "done": "done",
    "dry run": "dry run",
    "failed": "failed",
    "refused": "refused by you",
    "skipped": "skipped by you",
    "told": "not done: you said what to do instead",
    "overtaken": "not done: you used the computer meanwhile",
    "left out": "left out, because an action before it was not done",
    "unanswered": "not done: the question was not answered",
    "said": "",
    "broken off": "not done: the step ended before",
}


def consulted_words(why: str, role: str, target: str, point: DesktopPoint | None) -> str:
    """Say on one line what a model answered when it was asked for a place."""
    who = "a closer look" if why == "zoom" else f"the {role}"
    name = shorten(target)
    if point is None:
        return f"{who} finds no {name}" + (": the first guess stays" if why == "zoom" else "")
    return f"{who} finds {name} at {{}},{{}}".format(*point.rounded())


def handed_over_words(model: str, host: str, steps: int, why: str, allowed: str) -> str:
    """Say on one line that another model takes over."""
    by = {"policy": ", by the policy", "person": ", allowed by you"}.get(allowed, "")
    return f"{model or 'the fallback model'} at {host} takes over for {counted(steps, 'step')}{by}: {why}"


def answer_words(answer: str, by: str | None, note: str) -> str:
    """Say on one line what was decided about an action, and by whom."""
    decision = f"{'not allowed' if answer == 'told' else answer}{f' by {by}' if by else ''}"
    return f"{decision}: “{note}”" if note else decision


def change_words(words: str, by: str, reason: str, note: str) -> str:
    """Say on one line to what an action was changed; `reason` is why the policy would ask about the new one, too."""
    why = f" (the policy would ask about this, too: {reason})" if reason else ""
    return f"changed by {by} to: {words}{why}" + (f": “{note}”" if note else "")


def decider_words(role: str) -> str:
    """Say that the fallback model decided; "" for the main model."""
    return "" if role == "actor" else "decided by the fallback model"
