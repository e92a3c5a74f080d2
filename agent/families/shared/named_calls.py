"""Calls as UI-TARS and others write them: `click(start_box='(197,525)')`, one a line. Parsed, never run."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.families.base import Call, ParseFailure
from agent.families.shared.lenient_json import MAX_CHARS, clean_text

_NAME = re.compile(r"\s*([A-Za-z_][\w.]{0,79})\s*\(\s*", re.ASCII)
_KEY = re.compile(r"([A-Za-z_]\w{0,79})\s*=\s*", re.ASCII)
#: What ends a quoted value: models do not escape the quotes in a text, so a quote counts only where the call goes on.
#: It is no quote's end behind a single backslash, but behind two, which stand for one.
_QUOTE_END = {
    quote: re.compile(rf"(?<!\\)((?:\\\\)*){quote}\s*(?=,\s*[A-Za-z_]\w*\s*=|\)+\s*(?:\n|$))") for quote in "'\""
}
#: Models close a bracket too many now and then.
_CALL_END = re.compile(r"\)+[^\S\n]*(?:\n|$)")
#: What a backslash stands for with the character behind it; before any other it is a backslash, as in Python.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
#: Numbers in brackets, or quoted words in them.
_LIST = re.compile(r"\([-0-9., ]+\)|\[(?:'[^'\\]*'(?:, ?)?)+\]")
_QUOTED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def named_calls(text: str) -> list[Call] | ParseFailure:
    """The calls in a text that holds nothing else. Values are texts; those without a name are called "0", "1", ..."""
    text = clean_text(text)
    calls: list[Call] = []
    position = 0
    if len(text) > MAX_CHARS:
        return ParseFailure("no_action", f"the answer is longer than {MAX_CHARS} characters")
    while text[position:].strip():
        name = _NAME.match(text, position)
        if name is None:
            return ParseFailure("no_action", "a call is written as name(argument='value')")
        found = _arguments(text, name.end())
        if found is None:
            return ParseFailure("truncated", f"the call of {name[1]} does not end")
        if isinstance(found, ParseFailure):
            return found
        arguments, position = found
        calls.append(Call(name[1], arguments))
    return calls or ParseFailure("empty", "the answer is empty")


def _arguments(text: str, position: int) -> tuple[dict[str, str], int] | ParseFailure | None:
    """The arguments that begin at a position, and where the call ends; None where it does not end.

    One that is given twice, and not alike, is refused: neither is more likely what was meant.
    """
    arguments: dict[str, str] = {}
    while not (end := _CALL_END.match(text, position)):
        key = _KEY.match(text, position)
        start = key.end() if key else position
        found = _value(text, start)
        if found is None:
            return None
        value, position = found
        name = key[1] if key else str(len(arguments))
        if arguments.setdefault(name, value) != value:
            return ParseFailure("bad_argument", f"{name} is given twice, and not alike")
    return arguments, end.end()


def _value(text: str, start: int) -> tuple[str, int] | None:
    """A value, and where what follows it begins."""
    if text[start : start + 1] in _QUOTE_END:
        end = _QUOTE_END[text[start]].search(text, start + 1)
        if end is None:
            return None
        value, after = text[start + 1 : end.end(1)], end.end()
        value = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), value, flags=re.DOTALL)
    else:
        after, depth = start, 0
        while after < len(text) and (depth or text[after] not in ",)"):
            depth += (text[after] in "([") - (text[after] in ")]")
            after += 1
        value = text[start:after].strip()
        if after == len(text) or not value:
            return None
    return value, re.compile(r",\s*").match(text, after).end() if text[after] == "," else after  # type: ignore[union-attr]


def as_named(call: Call, brackets: str = "()", *, bare: bool = False) -> str:
    """A call as it is written, every value but numbers in quotes; a point that is a list stands in `brackets`.

    `bare`: whether points and lists stand without quotes.
    """
    return f"{call.name}({', '.join(_written(name, value, brackets, bare) for name, value in call.arguments.items())})"


def _written(name: str, value: Any, brackets: str, bare: bool) -> str:
    if isinstance(value, list):
        value = brackets[0] + ",".join(str(item) for item in value) + brackets[1]
    if isinstance(value, Mapping):
        value = ",".join(str(item) for item in value.values())
    if (isinstance(value, int | float) and not isinstance(value, bool)) or (bare and _LIST.fullmatch(str(value))):
        return f"{name}={value}"
    quoted = re.sub(r"[\\'\n\t\r]", lambda match: _QUOTED[match[0]], str(value))
    return f"'{quoted}'" if name.isdecimal() else f"{name}='{quoted}'"


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
