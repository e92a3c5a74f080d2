"""Renders a chat template as vLLM would: {"template", "variables"} on standard input, JSON on standard output.

vLLM's Python runs this file; it imports only the standard library and jinja2, not transformers, which takes seconds.
The output has for each conversation its "text" or its "error".
"""

import datetime
import importlib
import json
import sys
from typing import Any

_TEXT = {"type": "text", "text": "Hi"}
#: The conversations to try, by name. vLLM gives a template either parts or plain text, whichever it is written for.
_CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "picture": [{"role": "user", "content": [{"type": "image"}, _TEXT]}],
    "parts": [{"role": "user", "content": [_TEXT]}],
    "plain": [{"role": "user", "content": "Hi"}],
}
_SYSTEM: dict[str, Any] = {"picture": [{"type": "text", "text": "Be brief."}], "plain": "Be brief."}


def main() -> int:
    """Print how each conversation is rendered, without and with a system message."""
    request = json.load(sys.stdin)
    found = {}
    for name, messages in _CONVERSATIONS.items():
        system = {"role": "system", "content": _SYSTEM.get(name, _SYSTEM["picture"])}
        found[name] = _rendered(request, messages)
        if "error" in found[name]:
            again = _rendered(request, [system, *messages])
            found[name] = found[name] if "error" in again else again
    sys.stdout.write(json.dumps(found))
    return 0


def _rendered(request: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, str]:
    try:
        template = _environment().from_string(request["template"])
        variables = {"tools": None, "documents": None, **request["variables"]}
        return {"text": template.render(messages=messages, add_generation_prompt=True, **variables)}
    except ImportError:
        raise  # without jinja2 nothing is known about the template
    except Exception as error:
        line = getattr(error, "lineno", None)
        return {"error": f"{error}{f' (line {line})' if line else ''}"}


def _environment() -> Any:
    """Return an environment for templates like that of transformers' apply_chat_template."""
    extensions: Any = importlib.import_module("jinja2.ext")
    nodes: Any = importlib.import_module("jinja2.nodes")
    sandbox: Any = importlib.import_module("jinja2.sandbox")

    def parse(_: Any, parser: Any) -> Any:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)

    def refuse(message: str) -> None:
        raise ValueError(message)

    # The tag {% generation %} marks the model's own words for training.
    generation = type("Generation", (extensions.Extension,), {"tags": {"generation"}, "parse": parse})
    made = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[generation, extensions.loopcontrols]
    )
    made.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


if __name__ == "__main__":
    sys.exit(main())
