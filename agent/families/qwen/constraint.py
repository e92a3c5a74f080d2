"""Regular expressions of valid answers, for servers that can hold a model to one."""

from collections.abc import Mapping, Sequence

_THOUGHT = r"[^<\n]{1,300}"
_NUMBER = "(0|[1-9][0-9]{0,3})"
_POINT = rf"\[{_NUMBER}, {_NUMBER}\]"
_WORDS = r'[^"\\\n]{1,300}'
#: What a parameter's value looks like; any other is a text.
_VALUES = {
    "coordinate": _POINT,
    "coordinate2": _POINT,
    "keys": r'\["[A-Za-z0-9_]{1,20}"(, "[A-Za-z0-9_]{1,20}"){0,3}\]',
    "pixels": "-?[1-9][0-9]{0,3}",
    "time": "[1-9]",
}
_TEXTS = {"status": "(success|failure)"}


def json_answers(opening: str, takes: Mapping[str, Sequence[str]], closing: str = "") -> str:
    """Answers of a thought and one call as JSON.

    Args:
        opening: what stands before the thought, as it is.
        takes: the actions, each with the parameters that it takes.
        closing: what stands between the thought and the call.
    """
    choices = "|".join(
        f'"{name}"' + "".join(f', "{key}": {_json(key)}' for key in keys) for name, keys in takes.items()
    )
    call = rf'\{{"name": "computer_use", "arguments": \{{"action": ({choices})\}}\}}'
    return rf"{opening}{_THOUGHT}{closing}\n<tool_call>\n{call}\n</tool_call>"


def xml_answers(opening: str, takes: Mapping[str, Sequence[str]]) -> str:
    """The same, with the call as nested tags."""
    choices = "|".join(
        name + r"\n</parameter>" + "".join(rf"\n<parameter={key}>\n{_bare(key)}\n</parameter>" for key in keys)
        for name, keys in takes.items()
    )
    call = rf"<function=computer_use>\n<parameter=action>\n({choices})\n</function>"
    return rf"{opening}{_THOUGHT}\n<tool_call>\n{call}\n</tool_call>"


def _json(key: str) -> str:
    return _VALUES.get(key) or f'"{_TEXTS.get(key, _WORDS)}"'


def _bare(key: str) -> str:
    return _VALUES.get(key) or _TEXTS.get(key, _WORDS)
