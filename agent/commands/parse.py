"""`mai-agent parse`: models' answers read as the agent reads them, JSON lines in and out."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from agent.core.actions import map_points
from agent.core.actions import to_json as action_json
from agent.core.geometry import Region, Size, Viewport
from agent.families.base import Family, ParseFailure
from agent.families.registry import get_family
from agent.families.shared.lenient_json import clean
from agent.screen.encode import fit
from agent.screen.outline import Element, Outline
from foundation.chat_stream import Answer, ToolCall
from foundation.command_line import Parser
from foundation.errors import UsageError
from foundation.printing import put_json

#: No screen has more pixels on a side.
_MOST = 1_000_000


def main(argv: Sequence[str]) -> int:
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
    identifier: Any = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise TypeError("a line must be an object")
        json.dumps(clean(request.get("id")), allow_nan=False)  # it must be possible to write it back
        identifier = request.get("id")
        text = request["text"]
        if not isinstance(text, str):
            raise TypeError('"text" must be a string')
        answer = Answer(text, str(request.get("reasoning") or ""), _tool_calls(request.get("tool_calls") or []))
        screen = Size(_side(request["width"]), _side(request["height"]))
        outline = _outline(request.get("elements"), screen)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        return {"id": identifier, "ok": False, "error": {"kind": "bad_request", "message": message}}
    sent = (_sent(family, screen),)
    result = family.parse_grounding(answer, sent) if grounding else family.parse_seen(answer, sent, outline)
    if isinstance(result, ParseFailure):
        return {"id": identifier, "ok": False, "error": {"kind": result.kind, "message": result.message}}
    actions = [map_points(action, Viewport.of_image(screen).to_desktop) for action in result.actions]
    return {"id": identifier, "ok": True, "thought": result.thought, "actions": [*map(action_json, actions)]}


def _outline(told: Any, screen: Size) -> Outline | None:
    """The elements that the model was told; None for none. Raises TypeError, KeyError, ValueError."""
    if told is None:
        return None
    return Outline(
        screen, tuple(Element(_pixels(one["id"]), "", "", Region(*map(_pixels, one["box"]))) for one in told)
    )


def _pixels(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST:
        raise ValueError('"elements" are objects with a number as "id", and four numbers of pixels as "box"')
    return value


def _tool_calls(written: Any) -> tuple[ToolCall, ...]:
    """The calls that a server read, in OpenAI's shape or bare. Raises TypeError, KeyError."""
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
    """The size at which a screen is sent, which absolute points count on; its own where it cannot be sent."""
    try:
        return fit(family.facts.image, screen)
    except UsageError:
        return screen


def _side(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= _MOST:
        raise ValueError('"width" and "height" must be numbers of pixels')
    return int(value)
