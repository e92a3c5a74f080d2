"""Parses the JSON that models write, with their known mistakes, without guessing.

Repairs are tried only if the text is not valid JSON. Each repairs one known mistake: raw newlines inside strings, a
surplus brace or (inside a closed tag) a missing one, escapes that JSON does not have, full-width punctuation, Python's
quotes, a comma after the last item. Truncated text is an error, because a truncated number is a wrong click.
"""

import ast
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.families.base import ArgumentError, ParseFailure

#: Valid answers are shorter. A longer answer repeats itself up to the token limit.
MAX_CHARS = 200_000

#: No valid call is nested deeper. JSON that is nested far deeper can be parsed, but not written again.
MAX_DEPTH = 40

_WIDE = "：，｛｝［］（）“”＂"
_FULL_WIDTH = str.maketrans(_WIDE, ':,{}[]()"""')
# Strings are skipped: a comma in them is text.
_OUTSIDE = re.compile(r'("(?:\\.|[^"\\])*")|[“”＂]((?:\\.|[^“”＂"\\])*)[“”＂]|[：，｛｝［］（）]', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_WORDS = re.compile(r"'|\b(?:True|False|None)\b")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _integer(text: str) -> int:
    if len(text) > 40:
        raise ValueError("a number has too many digits")
    return int(text)


# strict=False allows raw newlines and tabs inside strings, the models' most common mistake.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_number, parse_int=_integer)


def first_object(text: str, *, closed: bool) -> tuple[dict[str, Any], str] | ParseFailure:
    """Return the first JSON object in the text, and the text after it; a failure ("no_action" without a brace) if none.

    `closed`: the text has its own closing tag, so a missing brace is a mistake and not a truncation.
    """
    if len(text) > MAX_CHARS:
        return ParseFailure("bad_json", f"the call is longer than {MAX_CHARS} characters")
    if "{" not in text and "｛" not in text:
        return ParseFailure("no_action", "there is no JSON object")
    error = "it is not a JSON object"
    for repaired in _repairs(text, closed):
        start = repaired.find("{")
        if start < 0:
            continue
        try:
            value, end = _DECODER.raw_decode(repaired, start)
            return cast("dict[str, Any]", clean(value)), repaired[end:]  # a value that starts with a brace is an object
        except (ValueError, RecursionError) as problem:
            error = _reason(problem)
    if (literal := _python_literal(text)) is not None:
        return literal
    if not closed and open_brackets(text[text.find("{") :]):
        return ParseFailure("truncated", "the answer ends in the middle of the call")
    return ParseFailure("bad_json", error)


def _repairs(text: str, closed: bool) -> list[str]:
    """Return the text, then versions of it, each with one more known mistake repaired."""
    candidates = [text]
    if any(mark in text for mark in _WIDE):
        candidates.append(_narrow(text))
    last = candidates[-1]
    unescaped = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _mend_escape, last, flags=re.DOTALL)
    if unescaped != last:
        candidates.append(unescaped)
    if (ended := _LAST_COMMA.sub(lambda part: part[1] or "", candidates[-1])) != candidates[-1]:
        candidates.append(ended)
    if closed and "{" in last:
        missing = open_brackets(candidates[-1][candidates[-1].find("{") :])
        if missing and len(missing) <= 4 and '"' not in missing:
            candidates.append(candidates[-1].rstrip() + missing)
    return candidates


def _mend_escape(match: re.Match[str]) -> str:
    """Repair an escape. The backslash of an escape unknown to JSON is literal, except before Python's single quote."""
    kind = match[1]
    if kind == "'":
        return "'"
    return match[0] if kind in '"\\/bfnrt' or len(kind) > 1 else "\\\\" + kind


def _narrow(text: str) -> str:
    """Convert full-width punctuation to plain, but only outside strings: inside, the model means it."""
    return _OUTSIDE.sub(lambda part: f'"{part[2]}"' if part[2] else part[1] or part[0].translate(_FULL_WIDTH), text)


def open_brackets(text: str) -> str:
    """Return what would close the text: a quote if a string is open, then the open brackets, innermost first."""
    stack: list[str] = []
    in_string = False
    skip = False
    for char in text:
        if skip:
            skip = False
        elif in_string:
            skip = char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and stack:
            stack.pop()
            if not stack:
                return ""
    return ('"' if in_string else "") + "".join(reversed(stack))


def _python_literal(text: str) -> tuple[dict[str, Any], str] | None:
    """Parse a Python dict of plain values, which some models write. It is never run."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start or end - start > 20_000 or not _WORDS.search(text):
        return None
    try:
        with warnings.catch_warnings():  # warnings about odd escapes would be printed over the screen
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text[start : end + 1])
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    if not isinstance(value, dict):
        return None
    try:  # through JSON, so that sets, bytes, infinities and huge numbers are rejected as elsewhere
        plain = clean(_DECODER.decode(json.dumps(value, allow_nan=False)))
    except (ValueError, TypeError, RecursionError):
        return None
    return cast("dict[str, Any]", plain), text[end + 1 :]


def clean(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Replace lone surrogates in all texts of a value, so that they can be written and typed.

    Raises ValueError: it is nested deeper than `depth`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | dict) and depth == 0:
        raise ValueError("it is nested too deeply")
    if isinstance(value, list):
        return [clean(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth - 1) for key, item in value.items()}
    return value


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _reason(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, json.JSONDecodeError):
        return f"it is not valid JSON ({problem.msg} at character {problem.pos})"
    return str(problem)


#: The maximum number of objects in a valid answer.
_MOST = 20


def only_object(text: str, wanted: Callable[[Mapping[str, Any]], bool], what: str = "action") -> dict[str, Any]:
    """Return the only object of a text that is `wanted`. An identical repetition does not count.

    Raises ArgumentError: there is none, there are several different ones, or it is broken.
    """
    candidates: list[dict[str, Any]] = []
    failure: ParseFailure | None = None
    remaining = text
    for _ in range(_MOST):
        found = first_object(remaining, closed=False)
        if isinstance(found, ParseFailure):
            failure = found
            break
        value, remaining = found
        if wanted(value) and value not in candidates:
            candidates.append(value)
    if len(candidates) > 1:
        raise ArgumentError("ambiguous", "there are several different answers and no mark which one counts")
    if candidates:
        return candidates[0]
    if failure is not None and failure.kind != "no_action":
        what = "" if failure.kind == "truncated" else "the answer cannot be read: "
        raise ArgumentError(failure.kind, what + failure.message)
    raise ArgumentError("no_action", f"there is no {what} in the answer")
