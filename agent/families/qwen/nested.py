"""Calls as Qwen3.5 writes them: nested tags inside of <tool_call>, one parameter after the other."""

import json

from agent.families.base import Call, ParseFailure
from agent.families.shared.xml_calls import xml_calls

#: Parameters whose values are texts, also where they look like JSON.
_TEXTS = ("text", "answer", "question", "fact", "query", "url", "app_name")


def nested_call(call: Call) -> str:
    """A call in the published form: texts as they are, everything else as JSON."""
    values = [
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}\n</parameter>"
        for key, value in call.arguments.items()
    ]
    return "\n".join(["<tool_call>", f"<function={call.name}>", *values, "</function>", "</tool_call>"])


def nested_calls(text: str) -> tuple[str, list[Call] | ParseFailure]:
    """What is said before the calls in a text, and the calls."""
    begins = [place for mark in ("<tool_call>", "<function=") if (place := text.find(mark)) >= 0]
    return text[: min(begins, default=len(text))].strip(), xml_calls(text, _TEXTS, whole=False)
