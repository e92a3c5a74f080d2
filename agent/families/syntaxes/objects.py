"""The one JSON object that an answer is, whatever stands around it."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.families.base import ArgumentError
from agent.families.shared.lenient_json import JsonFailure, first_object

#: More objects than this in one answer are no answer.
_MOST = 20


def only_object(text: str, wanted: Callable[[Mapping[str, Any]], bool], what: str = "action") -> dict[str, Any]:
    """The one object of a text that is `wanted`; said again in the same words, it is still the same one.

    Raises ArgumentError: there is none, several different ones, or a broken one.
    """
    candidates: list[dict[str, Any]] = []
    failure: JsonFailure | None = None
    remaining = text
    for _ in range(_MOST):
        found = first_object(remaining, closed=False)
        if isinstance(found, JsonFailure):
            failure = found
            break
        value, remaining = found
        if wanted(value) and value not in candidates:
            candidates.append(value)
    if len(candidates) > 1:
        raise ArgumentError("ambiguous", "there are several different answers and no mark which one counts")
    if candidates:
        return candidates[0]
    if failure is not None and failure.kind == "cut":
        raise ArgumentError("truncated", failure.message)
    if failure is not None and failure.kind == "broken":
        raise ArgumentError("bad_json", f"the answer cannot be read: {failure.message}")
    raise ArgumentError("no_action", f"there is no {what} in the answer")
