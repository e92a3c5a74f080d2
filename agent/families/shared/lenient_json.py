"""Reads the JSON that models write, with the mistakes they are known to make, and never guesses.

Repairs are tried only when the text is no JSON as it stands, and each mends one known mistake: raw newlines inside
strings, a brace too many or (inside a closed tag) too few, escapes that JSON does not have, full-width punctuation,
Python's quotes, a comma after the last item. What is cut off in the middle is an error, because a cut number is a
wrong click.
"""

import ast
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from agent.families.base import ArgumentError

#: No sane answer is longer; a repetition that runs to the token limit is.
MAX_CHARS = 200_000

#: No sane call is nested deeper; JSON far deeper than this can be read but not written again.
MAX_DEPTH = 40

_WIDE = "：，｛｝［］（）“”＂"
_FULL_WIDTH = str.maketrans(_WIDE, ':,{}[]()"""')
# Strings are passed over: a comma in them is text.
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_WORDS = re.compile(r"'|\b(?:True|False|None)\b")


@dataclass(frozen=True, slots=True)
class JsonFailure:
    """Why there is no object: nothing that looks like one, broken, or cut off."""

    kind: Literal["none", "broken", "cut"]
    message: str


class _NotJsonError(ValueError):
    pass


def _refuse_constant(name: str) -> Any:
    raise _NotJsonError(f"{name} is not a number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotJsonError(f"{text[:20]} is not a finite number")
    return value


def _integer(text: str) -> int:
    if len(text) > 40:
        raise _NotJsonError("a number has too many digits")
    return int(text)


# strict=False lets raw newlines and tabs stand inside strings: the models' most common mistake.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_number, parse_int=_integer)


def first_object(text: str, *, closed: bool) -> tuple[dict[str, Any], str] | JsonFailure:
    """The first JSON object in the text, and what follows it.

    `closed`: the text was ended by its own closing tag, so a missing brace is a slip and not a cut.
    """
    if len(text) > MAX_CHARS:
        return JsonFailure("broken", f"the call is longer than {MAX_CHARS} characters")
    if "{" not in text and "｛" not in text:
        return JsonFailure("none", "there is no JSON object")
    error = "it is not a JSON object"
    for repaired in _repairs(text, closed):
        start = repaired.find("{")
        if start < 0:
            continue
        try:
            value, end = _DECODER.raw_decode(repaired, start)
            return cast("dict[str, Any]", clean(value)), repaired[end:]  # what starts with a brace is an object
        except (ValueError, RecursionError) as problem:
            error = _reason(problem)
    if (literal := _python_literal(text)) is not None:
        return literal
    if not closed and open_brackets(text[text.find("{") :]):
        return JsonFailure("cut", "the answer ends in the middle of the call")
    return JsonFailure("broken", error)


def _repairs(text: str, closed: bool) -> list[str]:
    """The text, then the text with one more known mistake mended each time."""
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
    """One escape as JSON has it: what JSON does not know was meant as a backslash, but for Python's quote."""
    kind = match[1]
    if kind == "'":
        return "'"
    return match[0] if kind in '"\\/bfnrt' or len(kind) > 1 else "\\\\" + kind


def _narrow(text: str) -> str:
    """Full-width punctuation made plain outside strings only: inside, it is what the model wants to write."""
    start, closing = (brace.start() if (brace := re.search("[{｛]", text)) else 0), ""
    parts = [text[:start]]
    for mark in re.compile(r'\\.|["“”＂]', re.DOTALL).finditer(text, start):
        if len(mark[0]) > 1 or (closing and mark[0] not in closing):
            continue
        piece = text[start : mark.start()]
        if closing == '"' or not closing:
            parts.append(piece if closing else piece.translate(_FULL_WIDTH))
        else:  # a string in curly quotes: a plain quote in it is text
            parts.append(re.sub(r'(\\.)|"', lambda part: part[1] or '\\"', piece, flags=re.DOTALL))
        parts.append('"')
        start = mark.end()
        closing = "" if closing else '"' if mark[0] == '"' else "“”＂"
    rest = text[start:]
    return "".join(parts) + (rest if closing else rest.translate(_FULL_WIDTH))


def open_brackets(text: str) -> str:
    """What would close the text: brackets still open, innermost first, after a quote if a string is open."""
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
    """A Python dict of plain values, as models that think in code write it; read as data, never run."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start or end - start > 20_000 or not _WORDS.search(text):
        return None
    try:
        with warnings.catch_warnings():  # about odd escapes: they would be printed over the screen
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text[start : end + 1])
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    if not isinstance(value, dict):
        return None
    try:  # through JSON, so that sets, bytes, infinities and giant numbers are refused like everywhere else
        plain = clean(_DECODER.decode(json.dumps(value, allow_nan=False)))
    except (ValueError, TypeError, RecursionError):
        return None
    return cast("dict[str, Any]", plain), text[end + 1 :]


def clean(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value with lone surrogates replaced, so that every text in it can be written and typed.

    Raises ValueError: it is nested deeper than `depth`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list | dict) and depth == 0:
        raise _NotJsonError("it is nested too deeply")
    if isinstance(value, list):
        return [clean(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth - 1) for key, item in value.items()}
    return value


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD."""
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
    if isinstance(problem, _NotJsonError):
        return str(problem)
    return "it is not valid JSON"


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
