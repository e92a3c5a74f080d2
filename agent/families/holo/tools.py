"""The tools of Holo's agents: what their calls do, and their declarations for a model.

Names and arguments are those of H Company's desktop agent (its OSWorld agent of the run sg11, with sixteen tools), and
the shorter ones of its documentation (hub.hcompany.ai/agent-loop), which lack "_desktop".
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.core import actions
from agent.families.base import Acts, ArgumentError, Call
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary, read_action, whole, with_point
from agent.families.shared.own_names import read_typing, said
from agent.model.request import Sampling

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MOST_REPEATS: int = _DATA["most_repeats"]

#: For a grounding request, as the vendor recommends (hcompai/hai-cookbook, hub.hcompany.ai/element-localization).
GREEDY = Sampling(max_tokens=256)


def read_tool(call: Call, words: Vocabulary) -> Acts:
    """Return the actions of a call, in order. Some tools are several actions. Raises ArgumentError."""
    name = call.name.strip().lower().removesuffix("_desktop")
    name, given = _DATA["other_names"].get(name, name), call.arguments
    words = replace(words, calls=_DATA["calls"])
    match name:
        case "update_plan":
            return actions.Remember(_plan(given.get("goals", given.get("content"))))
        case "hold_and_tap_key":
            held, tapped = given.get("hold_keys", given.get("hold_key")), given.get("tap_keys", given.get("tap_key"))
            taps = tapped if isinstance(tapped, list) else [tapped]
            if len(taps) > _MOST_REPEATS:
                raise ArgumentError("bad_argument", f"at most {_MOST_REPEATS} keys can be tapped")
            steps = [("key_down", held), *(("key", key) for key in taps), ("key_up", held)]
            return [read_action({"action": action, "keys": keys}, words) for action, keys in steps]
    arguments = said(Call(name, given), words)
    if name == "write_at" and "coordinate" not in with_point(arguments):
        raise ArgumentError("bad_point", "write_at needs x and y")
    text = arguments.get("text")
    if name == "answer" and isinstance(text, str) and _DATA["infeasible"] in text:
        return actions.Finish(success=False, message=text.replace(_DATA["infeasible"], "").strip()[:4000])
    times = whole(arguments.pop("repeat", None), "repeat_count", _MOST_REPEATS)
    read = read_typing(Call("computer_use", arguments), words)
    return [*(read if isinstance(read, Sequence) else (read,))] * times


def _plan(goals: Any) -> str:
    lines = [goals] if isinstance(goals, str) else [_goal(goal) for goal in goals] if isinstance(goals, list) else []
    if not (text := "; ".join(filter(None, lines))[:4000]):
        raise ArgumentError("bad_argument", 'update_plan needs "goals"')
    return text


def _goal(goal: Any) -> str:
    if isinstance(goal, Mapping):
        return f"{goal.get('title', '')} ({goal.get('status', 'todo')})"
    return goal if isinstance(goal, str) else ""


def declared(*, desktop: bool) -> list[dict[str, Any]]:
    """Return the tools, each with name, description and the JSON Schema of its parameters.

    `desktop` adds our own tools to the published ones.
    """
    return [
        {
            "name": tool["name"],
            "description": tool["text"],
            "parameters": {
                "type": "object",
                "properties": {name: _DATA["parameters"][name] for name in (*tool["needs"], *tool.get("may", ()))},
                "required": list(tool["needs"]),
            },
        }
        for tool in _DATA["tools"]
        if desktop or not tool.get("ours", False)
    ]


def flat_schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a flat call, in which the tool's name is next to its arguments."""
    parameters = tool["parameters"]
    return {
        "type": "object",
        "description": tool["description"],
        "properties": {"tool_name": {"const": tool["name"], "type": "string"}, **parameters["properties"]},
        "required": ["tool_name", *parameters["required"]],
        "additionalProperties": False,
    }


def flat(call: Call) -> dict[str, Any]:
    """Convert a call to one object, with the tool's name next to its arguments."""
    arguments = dict(call.arguments)
    if "tool_name" in arguments:
        return arguments
    named = arguments.pop("action") if call.name in FUNCTIONS and "action" in arguments else call.name
    return {"tool_name": named, **arguments}


def unflat(value: Any) -> Call:
    """Return the call in a flat object, or in one with separate arguments. Raises ArgumentError: it is none."""
    if not isinstance(value, Mapping):
        raise ArgumentError("bad_argument", "a tool call is an object")
    under = "tool_name" if "tool_name" in value else "name"
    name = value.get(under)
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("bad_argument", 'a tool call needs a "tool_name"')
    arguments = {key: item for key, item in value.items() if key != under}
    for apart in ("arguments", "args"):
        if isinstance(arguments.get(apart), Mapping):
            arguments |= arguments.pop(apart)
    return Call(name.strip()[:200], arguments)
