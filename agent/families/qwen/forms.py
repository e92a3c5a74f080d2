"""The call formats of Qwen-VL models: nested tags, and regular expressions of valid answers."""

import json
from collections.abc import Mapping, Sequence

from agent.families.base import Call, ParseFailure
from agent.families.shared.xml_calls import xml_calls

_THOUGHT = r"[^<\n]{1,300}"
_NUMBER = "(0|[1-9][0-9]{0,3})"
_POINT = rf"\[{_NUMBER}, {_NUMBER}\]"
_WORDS = r'[^"\\\n]{1,300}'
#: The pattern of a parameter's value; all others are texts.
_VALUES = {
    "coordinate": _POINT,
    "coordinate2": _POINT,
    "keys": r'\["[A-Za-z0-9_]{1,20}"(, "[A-Za-z0-9_]{1,20}"){0,3}\]',
    "pixels": "-?[1-9][0-9]{0,3}",
    "time": "[1-9]",
}
_TEXTS = {"status": "(success|failure)"}


def _value(key: str, quote: str = "") -> str:
    return _VALUES.get(key) or quote + _TEXTS.get(key, _WORDS) + quote


def json_answers(opening: str, takes: Mapping[str, Sequence[str]], closing: str = "") -> str:
    """Return a regular expression of answers with a thought and one JSON call.

    Args:
        opening: literal text before the thought.
        takes: the actions, each with its parameters.
        closing: text between the thought and the call.
    """
    choices = "|".join(
        f'"{name}"' + "".join(f', "{key}": ' + _value(key, '"') for key in keys) for name, keys in takes.items()
    )
    call = rf'\{{"name": "computer_use", "arguments": \{{"action": ({choices})\}}\}}'
    return rf"{opening}{_THOUGHT}{closing}\n<tool_call>\n{call}\n</tool_call>"


def xml_answers(opening: str, takes: Mapping[str, Sequence[str]]) -> str:
    """Return the same as `json_answers`, with the call in nested tags."""
    choices = "|".join(
        name + r"\n</parameter>" + "".join(rf"\n<parameter={key}>\n{_value(key)}\n</parameter>" for key in keys)
        for name, keys in takes.items()
    )
    call = rf"<function=computer_use>\n<parameter=action>\n({choices})\n</function>"
    return rf"{opening}{_THOUGHT}\n<tool_call>\n{call}\n</tool_call>"


#: Parameters whose values are always texts, even if they look like JSON.
_ALWAYS_TEXT = ("text", "answer", "question", "fact", "query", "url", "app_name")


def nested_call(call: Call) -> str:
    """Write a call in the published form: texts unchanged, everything else as JSON."""
    values = [
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}\n</parameter>"
        for key, value in call.arguments.items()
    ]
    return "\n".join(["<tool_call>", f"<function={call.name}>", *values, "</function>", "</tool_call>"])


def nested_calls(text: str) -> tuple[str, list[Call] | ParseFailure]:
    """Return the text before the calls, and the calls."""
    begins = [place for mark in ("<tool_call>", "<function=") if (place := text.find(mark)) >= 0]
    return text[: min(begins, default=len(text))].strip(), xml_calls(text, _ALWAYS_TEXT, whole=False)
