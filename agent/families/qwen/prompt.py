"""The system prompt for Qwen-VL's descendants: their `computer_use` function, and how they write its calls."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.families.base import Call, ParseFailure, PastStep, PromptRequest
from agent.families.shared.named_calls import xml_calls

_MARK = re.compile(r"\{([a-z]+)\}")
_CLICKS = ("left_click", "right_click", "middle_click", "double_click", "triple_click")
_SCROLLS = ("scroll", "hscroll")
#: An action that only our desktop style offers, because the models were not trained with it.
_OPENING = "open"


def fill(text: str, **values: str) -> str:
    """Fill the marks in a text, such as "{size}". Marks in the filled-in values are left alone."""
    return _MARK.sub(lambda mark: values.get(mark[1], mark[0]), text.strip("\n"))


class Instructions:
    """Builds a family's system prompt from its data (table `prompt` of its `family.toml`) and its texts.

    The table's keys: `actions` (in the function's schema, in published order), `described` (described by the published
    client, but not in the schema), `parameters`, `notes` (of the function's description), `resolution` ("sent" for the
    image size, or a fixed text), `desktop` (extra actions of the desktop style), `not_here` (actions that it lacks),
    `parts` (sections of the prompt), `human` (whether the schema has `name_for_human`).
    """

    def __init__(self, data: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
        self.texts = texts
        self._data: Mapping[str, Any] = data["prompt"]
        self._held = data.get("reading", {}).get("held_in_text", False)

    def system(self, prompt: PromptRequest) -> str:
        """Return the system prompt of a request, in the chosen style."""
        reference = prompt.reference
        actions = self.actions(reference=reference, apps=prompt.apps)
        described = [*actions, *self._data.get("described", ())] if reference else actions
        notes = self._notes(prompt, reference=reference)
        return self._text(actions, described, notes, tools=prompt.tools)

    def pointing(self, size: str) -> str:
        """Return the system prompt of a grounding request: click the target, or end the task if it is not there."""
        notes = [fill(self.texts["notes"]["resolution"], size=size), self.texts["notes"]["centre"]]
        offered = self.texts["pointing"]
        return self._text(list(offered), list(offered), notes, offered, answer=False)

    def actions(self, *, reference: bool, apps: Sequence[str] = ()) -> list[str]:
        """Return the actions that a request offers, in order."""
        published = list(self._data["actions"])
        if reference:
            return published
        wanted = [*published, *self._data.get("described", ()), *self._data.get("desktop", ())]
        left_out = {*self._data.get("not_here", ()), *(() if apps else (_OPENING,))}
        return [name for name in dict.fromkeys(wanted) if name not in left_out]

    def unsaid(self, step: PastStep) -> str:
        """Return the line for a step that did not describe itself."""
        action = step.calls[0].arguments.get("action", step.calls[0].name) if step.calls else "no"
        return fill(self.texts["unsaid"], action=str(action)[:40])

    def _notes(self, prompt: PromptRequest, *, reference: bool) -> list[str]:
        size, names = self._data["resolution"], list(self._data["notes"])
        if not reference:
            known = "apps" if prompt.apps and _OPENING in self._data.get("desktop", ()) else "plain"
            names = [known if name in ("desktop", "icons") else name for name in [*names, "data"]]
        size = str(prompt.size) if size == "sent" else size
        return [fill(self.texts["notes"][name], size=size, apps=", ".join(prompt.apps)) for name in names]

    def _text(
        self,
        actions: Sequence[str],
        described: Sequence[str],
        notes: Sequence[str],
        words: Mapping[str, str] | None = None,
        *,
        answer: bool = True,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        functions = [self._schema(actions, described, notes, words), *map(_function, tools)]
        schema = "\n".join(json.dumps(function, ensure_ascii=False) for function in functions)
        holding = self.texts["holding"] if "json_call" in self._data["parts"] else ""
        values = {"intro": fill(self.texts["intro"]), "holding": holding, "tools": schema}
        parts = [part for part in self._data["parts"] if answer or part != "answer"]
        return "\n\n".join(fill(self.texts[part], **values) for part in parts)

    def _schema(
        self, actions: Sequence[str], described: Sequence[str], notes: Sequence[str], words: Mapping[str, str] | None
    ) -> dict[str, Any]:
        """Return the function's signature, in the published format."""
        descriptions = words or self.texts["actions"]
        lines = [f"* `{name}`: {descriptions[name]}{self._held_note(name)}" for name in described]
        used = {
            name: dict(self.texts["parameters"][name])
            for name in (self._data["parameters"] if words is None else ("coordinate", "status"))
        }
        action = {"description": "\n".join(lines), "enum": list(actions), "type": "string"}
        function: dict[str, Any] = {
            "name": "computer_use",
            "description": "\n* ".join([self.texts["description"], *notes]),
            "parameters": {"properties": {"action": action, **used}, "required": ["action"], "type": "object"},
        }
        if self._data.get("human", False):
            function = {"name_for_human": "computer_use", **function, "args_format": self.texts["args_format"]}
        return {"type": "function", "function": function}

    def _held_note(self, name: str) -> str:
        if not self._held or name not in (*_CLICKS, *_SCROLLS):
            return ""
        return str(self.texts["held"]["clicks" if name in _CLICKS else "scrolls"])


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool that the user configured, as a function's signature."""
    return tool if tool.get("type") == "function" else {"type": "function", "function": dict(tool)}


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
    """Return a regular expression of answers: `opening`, a thought, `closing`, and one JSON call.

    `takes` are the actions, each with its parameters.
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
