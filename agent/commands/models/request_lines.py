"""Requests as JSON lines, as `parse` and `act --lines` read them."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agent.families.shared.lenient_json import clean

T = TypeVar("T")


def read_line(line: bytes, read: Callable[[Mapping[str, Any]], T]) -> tuple[Any, T | None, str]:
    """Return the id of a line, the result of `read` on its object, and the error, "" for none.

    `read` raises KeyError for a field that is missing, and TypeError or ValueError for another mistake.
    """
    identifier: Any = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise TypeError("a line must be an object")
        json.dumps(clean(request.get("id")), allow_nan=False)  # the answer repeats the id, so it must be serializable
        identifier = request.get("id")
        return identifier, read(request), ""
    except KeyError as error:
        return identifier, None, f"{error} is missing"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return identifier, None, str(error) or type(error).__name__
