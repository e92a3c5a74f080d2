"""Calls as Python code: `pyautogui.click(x=1443, y=343)`. Parsed against a list of names, and never run.

Each statement must be a call of a known function with plain values. Anything else (a loop, a variable, a sum, an
unknown import) makes the code invalid, because only running it would show its effect.
"""

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.core.actions import Action, Click
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call, ParseFailure
from agent.families.shared.computer_use import Vocabulary, read_action, whole
from agent.families.shared.lenient_json import clean_text

_NAMES: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_BLOCK = re.compile(r"```[ \t]*(?:code|python|py)?[ \t]*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_OPEN_BLOCK = re.compile(r"```[ \t]*(?:code|python|py)?[ \t]*\n?", re.IGNORECASE)
_LONGEST = 20_000
_MOST_CALLS = 20
#: Limits for one call: how often it presses its keys, and how often it clicks.
_MOST_PRESSES, _MOST_CLICKS = 50, 3


def last_block(text: str) -> str | ParseFailure:
    """Return the code of the last fence in an answer. An unclosed fence counts as truncated."""
    blocks = list(_BLOCK.finditer(text))
    rest = text[blocks[-1].end() :] if blocks else text
    if _OPEN_BLOCK.search(rest):
        return ParseFailure("truncated", "the answer ends in the middle of the code")
    if not blocks:
        return ParseFailure("no_action", "there is no code block in the answer")
    return blocks[-1][1].strip()


def code_calls(code: str) -> list[Call] | ParseFailure:
    """Return the calls in a piece of code, in order, each value under its parameter's name."""
    code = clean_text(code)
    if len(code) > _LONGEST:
        return ParseFailure("bad_argument", f"the code is longer than {_LONGEST} characters")
    try:
        with warnings.catch_warnings():  # warnings about odd escapes would be printed over the screen
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
        calls = [_call(statement) for statement in tree.body if not _is_import(statement)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ArgumentError):
            return ParseFailure(error.kind, str(error))
        return ParseFailure("bad_argument", "the code is no Python")
    if len(calls) > _MOST_CALLS:
        return ParseFailure("bad_argument", f"the code has more than {_MOST_CALLS} calls")
    return calls or ParseFailure("no_action", "there is no call in the code")


def as_code(calls: Sequence[Call]) -> str:
    """Write calls as code, in a fence as the models write it."""
    fence = "code" if all(call.name.startswith("computer.") for call in calls) else "python"
    return f"```{fence}\n{as_lines(calls)}\n```"


def as_lines(calls: Sequence[Call]) -> str:
    """Write calls as lines of code."""
    return "\n".join(map(_as_line, calls))


def _as_line(call: Call) -> str:
    written = [f"{name}={value!r}" for name, value in call.arguments.items()]
    if call.name.endswith("hotkey") and isinstance(keys := call.arguments.get("keys"), list):
        written = [repr(key) for key in keys]
    return f"{call.name}({', '.join(written)})"


def read_code_call(call: Call, words: Vocabulary) -> list[Action[GridPoint]]:
    """Return the actions of a call. Raises ArgumentError: it is unknown, or an argument is invalid."""
    name = call.name.rpartition(".")[2]
    if name not in _NAMES["actions"]:
        raise ArgumentError("unknown_action", f"there is no function {call.name[:40]!r}")
    values = {_NAMES["arguments"].get(key, key): value for key, value in call.arguments.items() if value is not None}
    times, clicks = 1, values.pop("clicks", None)
    if name == "click":
        times = whole(clicks, "clicks", _MOST_CLICKS)
    elif name == "press":
        times = whole(values.pop("presses", None), "presses", _MOST_PRESSES)
    if name in ("scroll", "vscroll", "hscroll"):
        values["direction"], values["amount"] = _wheel(name, clicks)
    arguments = {**_NAMES["actions"][name], **values}
    if name == "press" and isinstance(arguments.get("keys"), list):  # pressed one after another, not together
        keys = [read_action({**arguments, "keys": key}, words) for key in arguments["keys"][:_MOST_PRESSES]]
        return keys * times
    action = read_action(arguments, words)
    return [replace(action, count=times)] if name == "click" and isinstance(action, Click) else [action] * times


def _wheel(name: str, clicks: Any) -> tuple[str, float]:
    """Return the wheel's direction and the number of notches. Positive is up, or right. Raises ArgumentError."""
    if isinstance(clicks, bool) or not isinstance(clicks, int | float) or not clicks:
        raise ArgumentError("bad_argument", f"{name} needs a number of notches other than 0")
    ways = ("right", "left") if name == "hscroll" else ("up", "down")
    return ways[0 if clicks > 0 else 1], abs(clicks)


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and all(alias.name in _NAMES["modules"] for alias in statement.names)


def _call(statement: ast.stmt) -> Call:
    """Parse a statement. Raises ArgumentError: it is no call of a known function with plain values."""
    node = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(node, ast.Name) and node.id in _NAMES["parameters"] and node.id.isupper():
        return Call(node.id, {})
    if not isinstance(node, ast.Call):
        raise ArgumentError("bad_argument", "the code may hold nothing but calls: it is not run")
    name = _name(node.func)
    parameters = _NAMES["parameters"].get(name.rpartition(".")[2])
    if parameters is None:
        raise ArgumentError("unknown_action", f"there is no function {name[:40]!r}")
    placed = [_value(one.value if isinstance(one, ast.Starred) else one) for one in node.args]
    arguments: dict[str, Any] = {}
    if parameters[:1] == ["*keys"]:
        arguments["keys"] = placed[0] if len(placed) == 1 and isinstance(placed[0], list) else placed
        if not placed:
            del arguments["keys"]
    elif len(placed) > len(parameters):
        raise ArgumentError("bad_argument", f"{name} has too many arguments")
    else:
        arguments = dict(zip(parameters, placed, strict=False))
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ArgumentError("bad_argument", "the code may hold plain values only: it is not run")
        arguments[keyword.arg] = _value(keyword.value)
    return Call(name, arguments)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _NAMES["modules"]:
        return f"{node.value.id}.{node.attr}"
    raise ArgumentError("unknown_action", "the code calls a function that is not known")


def _value(node: ast.expr) -> Any:
    """Parse a value of a kind that JSON has. Raises ArgumentError for anything else, such as a call."""
    try:
        return json.loads(json.dumps(ast.literal_eval(node), allow_nan=False))
    except (ValueError, TypeError) as error:
        raise ArgumentError("bad_argument", "the code may hold plain values only: it is not run") from error
