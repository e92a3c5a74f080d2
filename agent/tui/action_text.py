"""A one-line summary of an action."""

import re

from agent.core.actions import Action, Finish, describe
from agent.core.geometry import DesktopPoint

_REMARK = re.compile(r"\[[^\]]*\]\s*$")
#: The end of a sentence before another; not within “1. open it” or a name such as “settings.xml”.
_END = re.compile(r"[.!?](?<=[^\d\s].)\s+(?=\S)")


def gist(thought: str, action: Action[DesktopPoint]) -> str:
    """Return the end of the thought's last sentence; "" if the action's words say the same.

    The result is shown beside the action's own words and never replaces them: a model may think one thing and do
    another.
    """
    lines = (_REMARK.sub("", line).strip() for line in reversed(thought.splitlines()))
    last = next(filter(None, lines), "")
    if isinstance(action, Finish):
        return ""
    sentence = _END.split(last)[-1].rstrip(".")
    end = sentence.rpartition(": ")[2] or sentence
    return "" if end.casefold() == describe(action).casefold() else end
