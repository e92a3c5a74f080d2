"""Answers as UI-TARS writes them: `Thought: ...`, then `Action: click(...)`, further calls after a blank line."""

import re
from collections.abc import Sequence

from agent.families.base import Call, ParseFailure
from agent.families.syntaxes.named_arguments import named_calls

#: Before a call; one before anything else is a word of the thought.
_ACTION = re.compile(r"\bAction\s*[:：][\s*`]*(?=[A-Za-z_][\w.]{0,79}\s*\()", re.IGNORECASE)
_ACTION_WORD = re.compile(r"^[\s*#]*Action\s*[:：]", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(r"^[\s*#]*(?:Thought|Reflection|Action_Summary)\s*[:：][ \t*]*", re.IGNORECASE | re.MULTILINE)
_CALL = re.compile(r"[A-Za-z_]\w{0,79}\s*\(")
_BARE = re.compile(r"^[ \t`]*[A-Za-z_]\w{0,79}\s*\(", re.MULTILINE)
_ENDS = re.compile(r"(?:\s|```|<\|(?:im_end|endoftext|eot_id)\|>|\[EOS\])+$")


def thought_and_calls(text: str) -> tuple[str, Sequence[Call] | ParseFailure, int]:
    """The thought, the calls in order, and how many of these count.

    The calls after one `Action:` belong together, and those after a second one straight behind it. Where the answer
    goes on with another thought, it goes on without having seen what came of the first, so that what follows does not
    count. Without `Action:`, calls that are the whole rest of the answer are taken.
    """
    text = _ENDS.sub("", text)
    mark = _ACTION.search(text)
    if mark is None:
        return _unmarked(text)
    thought, rest = _spoken(text[: mark.start()]), text[mark.end() :]
    further = _THOUGHT.search(rest)
    now, later = (rest, "") if further is None else (rest[: further.start()], rest[further.start() :])
    now = _ENDS.sub("", _ACTION.sub("", now))
    calls = named_calls(now)
    first, _, comment = now.partition("\n\n")
    if isinstance(calls, ParseFailure) and comment and not _CALL.search(comment):
        calls = named_calls(first)  # what follows speaks of it
    if isinstance(calls, ParseFailure):
        return thought, calls, 0
    counted = len(calls)
    after = _ACTION.search(later)
    following = named_calls(later[after.end() :].partition("\n")[0]) if after else []
    return thought, [*calls, *(following if isinstance(following, list) else [])], counted


def _unmarked(text: str) -> tuple[str, Sequence[Call] | ParseFailure, int]:
    bare = _BARE.search(text)
    calls: Sequence[Call] | ParseFailure
    if bare is not None:
        calls = named_calls(text[bare.start() :].strip("` \t\n"))
        if not isinstance(calls, ParseFailure):
            return _spoken(text[: bare.start()]), calls, len(calls)
    if not text.strip():
        return "", ParseFailure("empty", "the answer is empty"), 0
    if _ACTION_WORD.search(text):
        return _spoken(text), ParseFailure("no_action", "what follows `Action:` is no call"), 0
    return _spoken(text), ParseFailure("no_action", "there is no `Action:` in the answer"), 0


def _spoken(text: str) -> str:
    """What was thought, without the words before it."""
    return "\n".join(part for piece in _THOUGHT.split(text) if (part := piece.strip().strip("`*").strip()))
