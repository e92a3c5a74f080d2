"""Calls as Qwen3.5 and its descendants write them: `<function=name><parameter=key>value</parameter></function>`."""

import re

from agent.families.base import Call, ParseFailure
from agent.families.lenient_json import JsonFailure, clean_text, first_object

_FUNCTION = re.compile(r"<function=([^<>\s]{1,80})>")
_PARAMETER = re.compile(r"<parameter=([^<>\s]{1,80})>")
_CLOSE = "</parameter>"


def xml_calls(text: str) -> list[Call] | ParseFailure:
    """The calls in a text, in order; around them may be anything. Values are texts, but for objects and lists."""
    text = clean_text(text)
    calls: list[Call] = []
    position = 0
    while (opening := _FUNCTION.search(text, position)) is not None:
        end = text.find("</function>", opening.end())
        if end < 0:
            return ParseFailure("truncated", "the answer ends in the middle of the call")
        body = text[opening.end() : end]
        pieces = _PARAMETER.split(body)[1:]  # name and value in turn
        written = zip(pieces[::2], pieces[1::2], strict=True)
        calls.append(Call(opening[1], {name: _value(value) for name, value in written}))
        position = end
    return calls or ParseFailure("no_action", "there is no <function=...> in the answer")


def _value(written: str) -> object:
    """What stands between the tags, its closing tag and the newlines of the layout left out."""
    text = written.partition(_CLOSE)[0].strip()
    if text[:1] in ("{", "["):
        found = first_object('{"value": ' + text + "}", closed=True)
        return text if isinstance(found, JsonFailure) else found[0].get("value", text)
    return text
