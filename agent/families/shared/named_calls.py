"""Calls in two syntaxes, parsed and never run.

UI-TARS and others write `click(start_box='(197,525)')`, one per line; Qwen3.5 and its descendants
`<function=name><parameter=key>value</parameter></function>`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent.families.base import Call, ParseFailure
from agent.families.shared.lenient_json import MAX_CHARS, clean_text, first_object

_NAME = re.compile(r"\s*([A-Za-z_][\w.]{0,79})\s*\(\s*", re.ASCII)
_KEY = re.compile(r"([A-Za-z_]\w{0,79})\s*=\s*", re.ASCII)
#: The end of a quoted value. Models do not escape quotes in a text, so a quote only counts if the call continues after
#: it. A quote after an odd number of backslashes is escaped, and does not end the value.
_QUOTE_END = {
    quote: re.compile(rf"(?<!\\)((?:\\\\)*){quote}\s*(?=,\s*[A-Za-z_]\w*\s*=|\)+\s*(?:\n|$))") for quote in "'\""
}
#: A comment after a call, as published prompts write it.
_COMMENT = re.compile(r"^(.*\))[ \t]*#.*$", re.MULTILINE)
#: Models sometimes write surplus closing brackets.
_CALL_END = re.compile(r"\)+[^\S\n]*(?:\n|$)")
#: Escape sequences. Before any other character, a backslash is literal, as in Python.
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
#: Numbers in round brackets, or quoted words in square brackets.
_LIST = re.compile(r"\([-0-9., ]+\)|\[(?:'[^'\\]*'(?:, ?)?)+\]")
_QUOTED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def named_calls(text: str) -> list[Call] | ParseFailure:
    """Return the calls in a text that contains nothing else. Values are texts; unnamed ones are called "0", "1", ...

    Comments after calls are removed only if the text cannot be parsed with them, because "#" may be part of a value.
    """
    calls = _calls(text)
    plain = _COMMENT.sub(r"\1", text)
    return _calls(plain) if isinstance(calls, ParseFailure) and plain != text else calls


def _calls(text: str) -> list[Call] | ParseFailure:
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
    """Return the arguments from a position, and the end of the call; None if the call does not end.

    An argument with two different values is rejected, because neither is more likely.
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
    """Return a value, and the position after it; None if it does not end."""
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
    """Write a call. All values but numbers are quoted; a point given as a list is put in `brackets`.

    `bare`: whether points and lists are unquoted.
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


#: The mark before a call. Before anything else, it is a word of the thought.
_ACTION = re.compile(r"\bAction\s*[:：](?:[\s*`]|</?\w{1,30}>)*(?=[A-Za-z_][\w.]{0,79}\s*\()", re.IGNORECASE)
#: Labels begin a line. With line ends in the class, empty lines would take quadratic time.
_THOUGHT = re.compile(r"^[ \t*#]*(?:Thought|Reflection|Action_Summary)\s*[:：][ \t*]*", re.IGNORECASE | re.MULTILINE)
_CALL = re.compile(r"[A-Za-z_]\w{0,79}\s*\(")
_BARE = re.compile(r"^[ \t`]*[A-Za-z_]\w{0,79}\s*\(", re.MULTILINE)
#: What may follow the last call: fences, tokens of the chat template, and tags around the answer.
_END = re.compile(r"(?:```|<\|(?:im_end|endoftext|eot_id)\|>|\[EOS\]|</?\w{1,30}>)$")
#: Characters of the longest of these.
_LONGEST_END = 33


def _without_ends(text: str) -> str:
    """Return the text without what may follow the last call. Linear time; a single regex needs quadratic time."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        found = _END.search(text[max(0, end - _LONGEST_END) : end])
        if found is None:
            return text[:end]
        end -= len(found[0])


def thought_and_calls(text: str) -> tuple[str, Sequence[Call] | ParseFailure]:
    """Return the thought and the calls in order.

    The calls after `Action:` count, also those after a second `Action:` without a thought between. Calls after another
    thought do not count, because the model wrote them without seeing the effect of the first calls. Without `Action:`,
    calls count if they make up the whole rest of the answer.
    """
    text = _without_ends(text)
    mark = _ACTION.search(text)
    if mark is None:
        return _unmarked(text)
    now = _without_ends(_ACTION.sub("", _THOUGHT.split(text[mark.end() :], maxsplit=1)[0]))
    calls = named_calls(now)
    first, _, comment = now.partition("\n\n")
    if isinstance(calls, ParseFailure) and comment and not _CALL.search(comment):
        calls = named_calls(first)  # the rest is a comment on the calls
    return _spoken(text[: mark.start()]), calls


def _unmarked(text: str) -> tuple[str, Sequence[Call] | ParseFailure]:
    bare = _BARE.search(text)
    if bare is not None:
        calls = named_calls(text[bare.start() :].strip("` \t\n"))
        if not isinstance(calls, ParseFailure):
            return _spoken(text[: bare.start()]), calls
    if not text.strip():
        return "", ParseFailure("empty", "the answer is empty")
    return _spoken(text), ParseFailure("no_action", "there is no call after `Action:` in the answer")


def _spoken(text: str) -> str:
    """Return the thought, without its labels."""
    return "\n".join(part for piece in _THOUGHT.split(text) if (part := piece.strip().strip("`*").strip()))


_XML_CALL = re.compile(r"<function=([^<>\s]{1,80})>")
_PARAMETER = re.compile(r"<parameter=([^<>\s]{1,80})>")
_CLOSE = "</parameter>"
#: The end of a call: its own closing tag or, if that is missing, the surrounding one.
_XML_ENDS = ("</function>", "</tool_call>")


def xml_calls(text: str, texts: Collection[str] = (), *, whole: bool = True) -> list[Call] | ParseFailure:
    """Return the calls in a text, in order; other text around them is allowed. Values are texts, objects or lists.

    The values of the parameters in `texts` are always texts. A truncated call is ignored, unless `whole` is set or
    there is no other.
    """
    text = clean_text(text)
    calls: list[Call] = []
    position = 0
    while (opening := _XML_CALL.search(text, position)) is not None:
        ends = [end for tag in _XML_ENDS if (end := text.find(tag, opening.end())) >= 0]
        if not ends:
            cut = ParseFailure("truncated", "the answer ends in the middle of the call")
            return cut if whole or not calls else calls
        position = min(ends)
        pieces = _PARAMETER.split(text[opening.end() : position])[1:]  # name and value in turn
        arguments: dict[str, object] = {}
        for name, written in zip(pieces[::2], pieces[1::2], strict=True):
            value = _parameter(written, name in texts)
            if arguments.setdefault(name, value) != value:
                return ParseFailure("bad_argument", f"{name} is given twice, and not alike")
        calls.append(Call(opening[1], arguments))
    return calls or ParseFailure("no_action", "there is no <function=...> in the answer")


def _parameter(written: str, is_text: bool) -> object:
    """Return a parameter's value, without its closing tag and the layout.

    A text on lines of its own loses the newlines around it, any other value all surrounding white space.
    """
    body = written.partition(_CLOSE)[0]
    if is_text:
        return body[1:].removesuffix("\n") if body.startswith("\n") else body
    text = body.strip()
    if text[:1] in ("{", "["):
        found = first_object('{"value": ' + text + "}", closed=True)
        return text if isinstance(found, ParseFailure) else found[0].get("value", text)
    return text
