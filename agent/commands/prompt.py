"""`mai-agent prompt`: the chat messages of a request, as the agent would send them."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.families.base import Call, FamilyFacts, PastStep, PromptRequest
from agent.families.lenient_json import clean
from agent.families.registry import get_family
from agent.model.messages import to_openai
from agent.settings import load_settings, read_text
from foundation.arguments import Parser
from foundation.errors import UsageError
from foundation.printing import put_json

_IMAGE = "[IMAGE_DATA]"


def main(argv: Sequence[str]) -> int:
    """Print the messages as JSON."""
    parser = Parser(
        prog="mai-agent prompt",
        description='Reads {"instruction", "tools", "steps": [{"thought", "action", "user_reply", "tool_result"}], '
        '"images"} and prints the chat messages, with "[IMAGE_DATA]" for every image.',
    )
    parser.add_argument("--family", required=True, metavar="NAME")
    parser.add_argument("--style", choices=("reference", "desktop"), default="desktop")
    parser.add_argument("--request", required=True, metavar="FILE", help="- for standard input")
    parser.add_argument("--system-prompt", metavar="FILE", type=Path, help="replaces the system text")
    parser.add_argument("--no-thinking", action="store_true", help="the variant without a thought")
    parser.add_argument("--grounding", action="store_true", help="the messages that ask for one point")
    options = parser.parse_args(argv)
    family = get_family(options.family)
    data = _read(options.request)
    if options.grounding:
        messages = family.grounding_request(data["instruction"], None).messages
    else:
        system = load_settings().system_prompt(options.family, options.system_prompt)
        chosen = {"style": options.style, "thinking": not options.no_thinking}
        messages = family.request(read_request(data, family.facts, chosen, system)).messages
    put_json(to_openai(messages, _image_part), indent=2)
    return 0


def read_request(
    data: dict[str, Any], facts: FamilyFacts, options: Mapping[str, Any], system_prompt: str | None = None
) -> PromptRequest:
    """The request in a parsed file; the family's own client's number of images counts where it says none.

    Raises UsageError naming what is wrong.
    """
    images = data.get("images", facts.reference_images)
    if isinstance(images, bool) or not isinstance(images, int) or images < 1:
        raise UsageError('"images" must be a whole number of at least 1.', "It is the number of images in the request.")
    steps, tools = ([] if data.get(key) is None else data[key] for key in ("steps", "tools"))
    if not isinstance(steps, list) or not isinstance(tools, list):
        raise UsageError('"steps" and "tools" must be lists.', "See mai-agent prompt --help.")
    first = len(steps) - (images - 1)
    past = tuple(_step(step, number, facts.function, shown=number >= first) for number, step in enumerate(steps))
    return PromptRequest(
        data["instruction"], (None,), past, tools=tuple(tools), system_prompt=system_prompt, options=options
    )


def _step(step: Any, number: int, function: str, *, shown: bool) -> PastStep:
    action = step.get("action") if isinstance(step, dict) else None
    if not isinstance(action, dict):
        raise UsageError(
            f'Step {number + 1} has no "action" object.', "It holds the arguments as the model wrote them."
        )
    name, arguments = function, action
    if isinstance(action.get("arguments"), dict):  # a whole call, for tools
        name, arguments = str(action.get("name", name)), action["arguments"]
    elif isinstance(step.get("name"), str):
        name = step["name"]
    texts = {key: step.get(key) or "" for key in ("thought", "user_reply", "tool_result")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise UsageError(f'"{key}" of step {number + 1} must be a text.', "Give a tool's result as it is shown.")
    user_reply, tool_result = texts["user_reply"] or None, texts["tool_result"] or None
    return PastStep(texts["thought"], (Call(name, arguments),), (None,), shown, user_reply, tool_result)


def _read(name: str) -> dict[str, Any]:
    text = sys.stdin.read() if name == "-" else read_text(Path(name))
    try:
        data = clean(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}.", "See mai-agent prompt --help.") from error
    if not isinstance(data, dict) or not isinstance(data.get("instruction"), str):
        raise UsageError(f'{name} has no "instruction".', "See mai-agent prompt --help.")
    return data


def _image_part(_image: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": _IMAGE}}
