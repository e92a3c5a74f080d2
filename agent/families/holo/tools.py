"""The tools of Holo's agents: what their calls do, and their declarations for a model.

Names and arguments are those of H Company's desktop agent (its OSWorld agent of the run sg11, with sixteen tools), and
the shorter ones of its documentation (hub.hcompany.ai/agent-loop), which lack "_desktop".
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from agent.core import actions
from agent.core.actions import Action
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary, read_action, whole
from agent.model.request import Sampling

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MOST_REPEATS: int = _DATA["most_repeats"]
_NOTCHES: int = _DATA["scroll_size"]

#: For a grounding request, as the vendor recommends (hcompai/hai-cookbook, hub.hcompany.ai/element-localization).
GREEDY = Sampling(max_tokens=256)

_Actions: TypeAlias = list[Action[GridPoint]]
_Reader: TypeAlias = Callable[["_Tool"], _Actions]


def read_tool(call: Call, words: Vocabulary) -> _Actions:
    """Return the actions of a call, in order. Some tools are several actions. Raises ArgumentError."""
    written = call.name.strip()
    name = written.lower().removesuffix("_desktop")
    name = _DATA["other_names"].get(name, name)
    if name not in _READERS:
        raise ArgumentError("unknown_action", f"there is no tool {written[:40]!r}")
    return _READERS[name](_Tool(name, call.arguments, words))


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


class _Tool:
    """The arguments of one call, with a parser for each type."""

    def __init__(self, name: str, values: Mapping[str, Any], words: Vocabulary) -> None:
        self.name, self._values, self._words = name, values, words

    def act(self, action: str, **arguments: Any) -> Action[GridPoint]:
        """Return an action of computer use."""
        return read_action({"action": action, **arguments}, self._words)

    def first(self, *names: str) -> Any:
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def at(self, x: Sequence[str] = ("x",), y: Sequence[str] = ("y",)) -> list[Any]:
        pair = [self.first(*x), self.first(*y)]
        if None in pair:
            raise ArgumentError("bad_point", f'{self.name} needs "{x[0]}" and "{y[0]}"')
        return pair

    def at_if_any(self) -> list[Any] | None:
        return None if self.first("x", "y") is None else self.at()

    def says(self, name: str) -> bool:
        value = self._values.get(name)
        return value is True or (isinstance(value, str) and value.strip().lower() == "true")

    def keys(self, *names: str) -> Any:
        value = self.first(*names)
        if value in (None, "", []):
            raise ArgumentError("bad_argument", f'{self.name} needs "{names[0]}"')
        return value


def _write(tool: _Tool) -> _Actions:
    """Type at the focus. Optionally replace the old text, and press Enter."""
    done: _Actions = [tool.act("key", keys="ctrl+a")] if tool.says("overwrite") else []
    text = tool.first("content", "text")
    if text == "" and done:
        done.append(tool.act("key", keys="backspace"))
    else:
        done.append(tool.act("type", text=text))
    return [*done, *([tool.act("key", keys="enter")] if tool.says("press_enter") else [])]


def _scroll(tool: _Tool) -> _Actions:
    amount, direction = tool.first("scroll_size", "amount", "clicks"), tool.first("direction")
    arguments = {"coordinate": tool.at_if_any(), "amount": _NOTCHES if amount is None else amount}
    return [tool.act("scroll", direction=direction, **arguments)]


def _drag(tool: _Tool) -> _Actions:
    start = tool.at(("x1", "start_x", "x"), ("y1", "start_y", "y"))
    end = tool.at(("x2", "end_x", "to_x"), ("y2", "end_y", "to_y"))
    return [tool.act("drag", start_coordinate=start, end_coordinate=end, modifiers=tool.first("hold_keys"))]


def _hold_and_tap(tool: _Tool) -> _Actions:
    held, tapped = tool.keys("hold_keys", "hold_key"), tool.keys("tap_keys", "tap_key")
    taps = tapped if isinstance(tapped, list) else [tapped]
    if len(taps) > _MOST_REPEATS:
        raise ArgumentError("bad_argument", f"at most {_MOST_REPEATS} keys can be tapped")
    return [
        tool.act("key_down", keys=held),
        *(tool.act("key", keys=key) for key in taps),
        tool.act("key_up", keys=held),
    ]


def _plan(tool: _Tool) -> _Actions:
    goals = tool.first("goals", "content")
    lines = [goals] if isinstance(goals, str) else [_goal(goal) for goal in goals] if isinstance(goals, list) else []
    text = "; ".join(line for line in lines if line)[:4000]
    if not text:
        raise ArgumentError("bad_argument", 'update_plan needs "goals"')
    return [actions.Remember(text)]


def _goal(goal: Any) -> str:
    if isinstance(goal, Mapping):
        return f"{goal.get('title', '')} ({goal.get('status', 'todo')})"
    return goal if isinstance(goal, str) else ""


def _answer(tool: _Tool) -> _Actions:
    """End the task with the answer, or as failed if it contains the mark for an infeasible task."""
    content = tool.first("content", "text", "answer")
    if isinstance(content, str) and _DATA["infeasible"] in content:
        return [actions.Finish(success=False, message=content.replace(_DATA["infeasible"], "").strip()[:4000])]
    return [tool.act("answer", text=content)]


def _pointing(action: str) -> _Reader:
    return lambda tool: [tool.act(action, coordinate=tool.at())]


_READERS: Mapping[str, _Reader] = {
    "click": lambda tool: [tool.act("click", coordinate=tool.at(), button=tool.first("button"))],
    "double_click": _pointing("double_click"),
    "triple_click": _pointing("triple_click"),
    "right_click": _pointing("right_click"),
    "middle_click": _pointing("middle_click"),
    "move_to": _pointing("move"),
    "write": _write,
    "write_at": lambda tool: [tool.act("click", coordinate=tool.at()), *_write(tool)],
    "scroll": _scroll,
    "drag_and_drop": _drag,
    "drag_to": lambda tool: [tool.act("left_click_drag", coordinate=tool.at())],
    "key_down": lambda tool: [tool.act("key_down", keys=tool.keys("key", "keys"))],
    "key_up": lambda tool: [tool.act("key_up", keys=tool.keys("key", "keys"))],
    "hotkey": lambda tool: (
        [tool.act("key", keys=tool.keys("keys", "key", "combo"))]
        * whole(tool.first("repeat_count"), "repeat_count", _MOST_REPEATS)
    ),
    "hold_and_tap_key": _hold_and_tap,
    "mouse_down": lambda tool: [tool.act("mouse_down", coordinate=tool.at_if_any(), button=tool.first("button"))],
    "mouse_up": lambda tool: [tool.act("mouse_up", coordinate=tool.at_if_any(), button=tool.first("button"))],
    "wait": lambda tool: [tool.act("wait", seconds=tool.first("seconds", "duration"))],
    "go_back": lambda tool: [tool.act("history_back")],
    "refresh": lambda tool: [tool.act("key", keys="f5")],
    "goto": lambda tool: [tool.act("visit_url", url=tool.first("url"))],
    "open_application": lambda tool: [tool.act("open", text=tool.first("name", "content"))],
    "ask_user": lambda tool: [tool.act("ask_user", text=tool.first("question", "content"))],
    "update_plan": _plan,
    "answer": _answer,
}
