"""`mai-agent parse` and `prompt`: models' answers as the agent reads them, and the messages that it would send."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from agent.core.actions import map_points
from agent.core.actions import to_json as action_json
from agent.core.geometry import Region, Size, Viewport
from agent.families.base import Call, Family, ParseFailure, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.families.shared.lenient_json import clean
from agent.model.request import ChatRequest, to_openai
from agent.prompts.store import published_words
from agent.screen.encode import EncodedImage, fit
from agent.screen.outline import Element, Outline
from agent.settings import load_settings, read_text
from foundation.chat_stream import Answer, ToolCall
from foundation.command_line import Parser
from foundation.errors import UsageError
from foundation.printing import put_json

T = TypeVar("T")


def read_line(line: bytes, read: Callable[[Mapping[str, Any]], T]) -> tuple[Any, T | None, str]:
    """Return the id of a line, the result of `read` on its object, and the error, "" for none.

    `read` raises KeyError for a field that is missing, and TypeError or ValueError for another mistake.
    """
    identifier: Any = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise TypeError("a line must be an object")
        json.dumps(clean(request.get("id")), allow_nan=False)  # the answer repeats the id, so it must be serializable
        identifier = request.get("id")
        return identifier, read(request), ""
    except KeyError as error:
        return identifier, None, f"{error} is missing"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return identifier, None, str(error) or type(error).__name__


#: No screen has more pixels on a side.
_MOST = 1_000_000


def parse_main(argv: Sequence[str]) -> int:
    """Read lines from standard input until it ends."""
    parser = Parser(
        prog="mai-agent parse",
        description='Reads JSON lines {"id", "text", "width", "height"} (screen size in pixels) from standard input. '
        'A line may also have "reasoning" and "tool_calls", as a server gave them, and "elements", [{"id", "box"}] in '
        "screen pixels, for answers that name elements by number. "
        'Writes {"id", "ok", "thought", "actions"}, points in screen pixels, or {"id", "ok": false, "error"}.',
    )
    parser.add_argument("--family", required=True, metavar="NAME")
    parser.add_argument("--grounding", action="store_true", help="the answers are grounding answers: one point each")
    options = parser.parse_args(argv)
    family = get_family(options.family)
    for line in sys.stdin.buffer:
        if line.strip():
            answer = parse_line(line, family, grounding=options.grounding)
            put_json(answer)  # at once: the other end may wait for it
    return 0


def parse_line(line: bytes, family: Family, *, grounding: bool) -> dict[str, Any]:
    """The output object of one input line; a line that is no request gives an error of kind "bad_request"."""
    identifier, read, trouble = read_line(line, _answered_line)
    if read is None:
        return {"id": identifier, "ok": False, "error": {"kind": "bad_request", "message": trouble}}
    answer, screen, outline = read
    sent = (_sent(family, screen),)
    result = family.parse_grounding(answer, sent) if grounding else family.parse_seen(answer, sent, outline)
    if isinstance(result, ParseFailure):
        return {"id": identifier, "ok": False, "error": {"kind": result.kind, "message": result.message}}
    actions = [map_points(action, Viewport.of_image(screen).to_desktop) for action in result.actions]
    return {"id": identifier, "ok": True, "thought": result.thought, "actions": [*map(action_json, actions)]}


def _answered_line(request: Mapping[str, Any]) -> tuple[Answer, Size, Outline | None]:
    """The answer of a line, its screen and the elements on it. Raises TypeError, KeyError, ValueError."""
    text = request["text"]
    if not isinstance(text, str):
        raise TypeError('"text" must be a string')
    answer = Answer(text, str(request.get("reasoning") or ""), _tool_calls(request.get("tool_calls") or []))
    screen = Size(_side(request["width"]), _side(request["height"]))
    return answer, screen, _outline(request.get("elements"), screen)


def _outline(elements: Any, screen: Size) -> Outline | None:
    if elements is None:
        return None
    return Outline(
        screen, tuple(Element(_pixels(one["id"]), "", "", Region(*map(_pixels, one["box"]))) for one in elements)
    )


def _pixels(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST:
        raise ValueError('"elements" are objects with a number as "id", and four numbers of pixels as "box"')
    return value


def _tool_calls(written: Any) -> tuple[ToolCall, ...]:
    """The calls in OpenAI's shape or bare. Raises TypeError, KeyError."""
    functions = [(call, call.get("function", call)) for call in written]
    return tuple(
        ToolCall(
            str(call.get("id", "")),
            function["name"],
            function["arguments"] if isinstance(function["arguments"], str) else json.dumps(function["arguments"]),
        )
        for call, function in functions
    )


def _sent(family: Family, screen: Size) -> Size:
    """Return the size of the sent image, to which absolute points refer; the screen's size if it cannot be sent."""
    try:
        return fit(family.facts.image, screen)
    except UsageError:
        return screen


def _side(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _MOST:
        raise ValueError('"width" and "height" must be numbers of pixels')
    return int(value)


_IMAGE = "[IMAGE_DATA]"


def prompt_main(argv: Sequence[str]) -> int:
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
    parser.add_argument("--words", choices=("published", "ours"), help="whose words (default: published, if fetched)")
    options = parser.parse_args(argv)
    family = get_family(options.family)
    data = _read(options.request)
    settings, name = load_settings(), family.facts.name
    chosen = {"style": options.style, "thinking": not options.no_thinking, **settings.family_options.get(name, {})}
    published = published_words(name, options.words or settings.get("words"))
    family = family.wording(published, chosen, data.get("tools") or ())
    if options.grounding:
        request = family.grounding_request(data["instruction"], EncodedImage(b"", "png", _sent_size(data, family)))
    else:
        system = settings.system_prompt(name, options.system_prompt)
        request = family.request(read_request(data, family, chosen, system))
    messages = to_openai(request.messages, _image_part)
    put_json(_body(request) | {"messages": messages} if options.body else messages, indent=2)
    return 0


def read_request(
    data: dict[str, Any], family: Family, options: Mapping[str, Any], system_prompt: str | None = None
) -> PromptRequest:
    """The request in a parsed file; by default with as many images as the family's own client sends.

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
    sent = _sent_size(data, family)
    past = tuple(_step(step, number, family, sent, shown=number >= first) for number, step in enumerate(steps))
    return PromptRequest(
        data["instruction"], (None,), past, tools=tuple(tools), system_prompt=system_prompt, options=options, sent=sent,
        model=str(data.get("model") or ""),
    )  # fmt: skip


def _sent_size(data: Mapping[str, Any], family: Family) -> Size:
    try:
        return fit(family.facts.image, Size(data.get("width", 1920), data.get("height", 1080)))
    except (TypeError, ValueError) as error:
        raise UsageError('"width" and "height" must be whole numbers of pixels.', f"{error}.") from error


def _body(request: ChatRequest) -> dict[str, Any]:
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
    """Return the step that a model's answer describes. Raises UsageError if the family cannot read it."""
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
