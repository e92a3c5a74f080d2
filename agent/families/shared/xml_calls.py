"""Calls in the syntax of Qwen3.5 and its descendants: `<function=name><parameter=key>value</parameter></function>`."""

import re
from collections.abc import Collection

from agent.families.base import Call, ParseFailure
from agent.families.shared.lenient_json import clean_text, first_object

_FUNCTION = re.compile(r"<function=([^<>\s]{1,80})>")
_PARAMETER = re.compile(r"<parameter=([^<>\s]{1,80})>")
_CLOSE = "</parameter>"
#: The end of a call: its own closing tag or, if that is missing, the surrounding one.
_ENDS = ("</function>", "</tool_call>")


def xml_calls(text: str, texts: Collection[str] = (), *, whole: bool = True) -> list[Call] | ParseFailure:
    """Return the calls in a text, in order; other text around them is allowed. Values are texts, objects or lists.

    The values of the parameters in `texts` are always texts. A truncated call is ignored, unless `whole` is set or
    there is no other.
    """
    text = clean_text(text)
    calls: list[Call] = []
    position = 0
    while (opening := _FUNCTION.search(text, position)) is not None:
        ends = [end for tag in _ENDS if (end := text.find(tag, opening.end())) >= 0]
        if not ends:
            cut = ParseFailure("truncated", "the answer ends in the middle of the call")
            return cut if whole or not calls else calls
        position = min(ends)
        pieces = _PARAMETER.split(text[opening.end() : position])[1:]  # name and value in turn
        arguments: dict[str, object] = {}
        for name, written in zip(pieces[::2], pieces[1::2], strict=True):
            value = _value(written, name in texts)
            if arguments.setdefault(name, value) != value:
                return ParseFailure("bad_argument", f"{name} is given twice, and not alike")
        calls.append(Call(opening[1], arguments))
    return calls or ParseFailure("no_action", "there is no <function=...> in the answer")


def _value(written: str, is_text: bool) -> object:
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
