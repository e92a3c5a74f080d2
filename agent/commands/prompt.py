"""`mai-agent prompt`: the chat messages of a request, as the agent would send them."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.core.geometry import Size
from agent.families.base import Call, Family, ParseFailure, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.families.shared.lenient_json import clean
from agent.model.request import ChatRequest, to_openai
from agent.screen.encode import EncodedImage, fit
from agent.settings import load_settings, read_text
from foundation.chat_stream import Answer
from foundation.command_line import Parser
from foundation.errors import UsageError
from foundation.printing import put_json

_IMAGE = "[IMAGE_DATA]"


def main(argv: Sequence[str]) -> int:
    """Print the messages as JSON."""
    parser = Parser(
        prog="mai-agent prompt",
        description='Reads {"instruction", "tools", "steps": [{"thought", "action", "user_reply", "tool_result"}], '
        '"images", "width", "height", "model"} and prints the chat messages, with "[IMAGE_DATA]" for every image. A '
        'step may also have the "answer" that the model gave, as text, in place of "thought" and "action". Width and '
        "height are those of the screen in pixels (1920x1080 unless given), which some families state.",
    )
    parser.add_argument("--family", required=True, metavar="NAME")
    parser.add_argument("--style", choices=("reference", "desktop"), default="desktop")
    parser.add_argument("--request", required=True, metavar="FILE", help="- for standard input")
    parser.add_argument("--system-prompt", metavar="FILE", type=Path, help="replaces the system text")
    parser.add_argument(
        "--body", action="store_true", help="the whole body of the request: also its sampling, tools and constraints"
    )
    parser.add_argument("--no-thinking", action="store_true", help="the variant without a thought")
    parser.add_argument("--grounding", action="store_true", help="the messages that ask for one point")
    options = parser.parse_args(argv)
    family = get_family(options.family)
    data = _read(options.request)
    if options.grounding:
        request = family.grounding_request(data["instruction"], EncodedImage(b"", "png", _sent(data, family)))
    else:
        settings, name = load_settings(), family.facts.name
        system = settings.system_prompt(name, options.system_prompt)
        chosen = {"style": options.style, "thinking": not options.no_thinking}
        chosen |= settings.family_options.get(name, {})
        request = family.request(read_request(data, family, chosen, system))
    messages = to_openai(request.messages, _image_part)
    put_json(_body(request) | {"messages": messages} if options.body else messages, indent=2)
    return 0


def read_request(
    data: dict[str, Any], family: Family, options: Mapping[str, Any], system_prompt: str | None = None
) -> PromptRequest:
    """The request in a parsed file; the family's own client's number of images counts where it says none.

    Raises UsageError naming what is wrong.
    """
    facts = family.facts
    images = data.get("images", facts.reference_images)
    if isinstance(images, bool) or not isinstance(images, int) or images < 1:
        raise UsageError('"images" must be a whole number of at least 1.', "It is the number of images in the request.")
    steps, tools = ([] if data.get(key) is None else data[key] for key in ("steps", "tools"))
    if not isinstance(steps, list) or not isinstance(tools, list):
        raise UsageError('"steps" and "tools" must be lists.', "See mai-agent prompt --help.")
    first = len(steps) - (images - 1)
    sent = _sent(data, family)
    past = tuple(_step(step, number, family, sent, shown=number >= first) for number, step in enumerate(steps))
    return PromptRequest(
        data["instruction"], (None,), past, tools=tuple(tools), system_prompt=system_prompt, options=options, sent=sent,
        model=str(data.get("model") or ""),
    )  # fmt: skip


def _sent(data: Mapping[str, Any], family: Family) -> Size:
    """The size at which the screen of a request is sent. Raises UsageError."""
    try:
        return fit(family.facts.image, Size(data.get("width", 1920), data.get("height", 1080)))
    except (TypeError, ValueError) as error:
        raise UsageError('"width" and "height" must be whole numbers of pixels.', f"{error}.") from error


def _body(request: ChatRequest) -> dict[str, Any]:
    """What the request holds besides the messages, as a vLLM is sent it."""
    optional = request.optional_parts("vllm").values()
    return request.required_parts() | {name: value for part in optional for name, value in part.items()}


def _step(step: Any, number: int, family: Family, sent: Size, *, shown: bool) -> PastStep:
    if isinstance(step, dict) and isinstance(step.get("answer"), str):
        return replace(_answered(step["answer"], family, sent, shown=shown), **_replies(step, number))
    action = step.get("action") if isinstance(step, dict) else None
    if not isinstance(action, dict):
        raise UsageError(
            f'Step {number + 1} has no "action" object.', "It holds the arguments as the model wrote them."
        )
    name, arguments = family.facts.function, action
    if isinstance(action.get("arguments"), dict):  # a whole call, for tools
        name, arguments = str(action.get("name", name)), action["arguments"]
    elif isinstance(step.get("name"), str):
        name = step["name"]
    thought = _text(step, "thought", number)
    return PastStep(thought, (Call(name, arguments),), (None,), shown, **_replies(step, number))


def _answered(text: str, family: Family, sent: Size, *, shown: bool) -> PastStep:
    """A step told by the answer that the model gave. Raises UsageError: the family cannot read it."""
    answer = Answer(text)
    read = family.parse(answer, (sent,))
    if isinstance(read, ParseFailure):
        raise UsageError(f"An answer in the request cannot be read: {read.message}.", "Is it one of this family?")
    return PastStep(read.thought, read.calls, (None,), shown, answer=answer)


def _replies(step: dict[str, Any], number: int) -> dict[str, Any]:
    return {key: _text(step, key, number) or None for key in ("user_reply", "tool_result")}


def _text(step: dict[str, Any], key: str, number: int) -> str:
    text = step.get(key) or ""
    if not isinstance(text, str):
        raise UsageError(f'"{key}" of step {number + 1} must be a text.', "Give a tool's result as it is shown.")
    return text


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
