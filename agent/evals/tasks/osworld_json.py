"""Reads task files in OSWorld's form, as far as a throw-away desktop carries them.

Supported set-ups run commands, open programs and files, and raise or close windows. Supported results are the output of
a command or a file in the home, compared exactly or by texts that it must and must not contain. Infeasible tasks are
supported too. Downloads, accounts, sudo, the session bus, Chrome's remote control, alternatives and other metrics are
not. OSWorld forbids no changes, so no change counts as harm.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.evals.tasks.task import EvalTask
from foundation.configs import check_settings
from foundation.errors import UsageError

#: The home of the virtual machine's user.
_HOME = "/home/user"
#: What a command must not contain: sudo, the user's own session, values that OSWorld fills in, a single-quoted home.
_FOREIGN = re.compile(r"\bsudo\b|DBUS_SESSION_BUS_ADDRESS|/run/user/|\{[A-Z_]+\}|'[^']*/home/user")
#: A set-up that only clicks somewhere, to give the desktop the focus.
_CLICKS = re.compile(r"import pyautogui\b")


class NotCarriedError(UsageError):
    """The task needs something that a throw-away desktop does not have."""


def read_osworld_task(path: Path) -> EvalTask:
    """Read a task file of OSWorld. Raises NotCarriedError, or UsageError if the file is in another form."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        steps, judges = data.get("config") or [], data["evaluator"]
        setup, opened, after = _prepared(steps)
        raw: dict[str, Any] = {
            "id": data["id"], "say": data["instruction"], "class": str(data.get("snapshot") or "osworld"),
            "session": "gnome", "setup": setup, "open": opened, "after": after, "may": ["."],
            "expect": _expected(judges), "reveal": [*_commands(judges.get("postconfig") or [])],
        }  # fmt: skip
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}).", "Name task files of OSWorld.") from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(f"{path} is no task of OSWorld ({error!r}).", "Name task files of OSWorld.") from error
    if not raw["expect"]:
        raw["class"] = "refuse"
    return check_settings(EvalTask, raw, f"In {path},")


def _prepared(steps: list[Any]) -> tuple[list[str], list[str], list[str]]:
    """Return the commands before the first program, the programs, and the commands after it."""
    setup: list[str] = []
    opened: list[str] = []
    after: list[str] = []
    for step in steps:
        if step["type"] in ("launch", "open"):
            asked = step["parameters"]
            opened.append(_line(asked) if step["type"] == "launch" else f"xdg-open {_word(asked['path'])}")
        else:
            (after if opened else setup).extend(_commands([step]))
    return setup, opened, after


def _commands(steps: list[Any]) -> Iterator[str]:
    for step in steps:
        parameters = step["parameters"]
        match step["type"]:
            case "execute" | "command":
                line = _line(parameters)
                if not _CLICKS.search(line):
                    yield line
            case "sleep":
                yield f"sleep {float(parameters['seconds']):g}"
            case "activate_window" | "close_window" as kind:
                flag = "-a" if kind == "activate_window" else "-c"
                yield f"wmctrl {flag} {shlex.quote(parameters['window_name'])}"
            case kind:
                raise NotCarriedError(f"its set-up needs {kind}")


def _line(parameters: Mapping[str, Any]) -> str:
    """Return a command as a line for the shell, in the home of the throw-away desktop."""
    command = parameters["command"]
    line = command.replace(_HOME, "$HOME") if isinstance(command, str) else " ".join(map(_word, command))
    if _FOREIGN.search(command if isinstance(command, str) else line):
        raise NotCarriedError(f"it needs rights, a session or values of its own machine: {line[:80]}")
    return line


def _word(text: str) -> str:
    if _HOME not in text:
        return shlex.quote(text)
    return '"' + re.sub(r'([$`"\\])', r"\\\1", text).replace(_HOME, "$HOME") + '"'


def _expected(judges: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must hold afterwards; nothing for an infeasible task."""
    names = [judges["func"]] if isinstance(judges["func"], str) else judges["func"]
    if names == ["infeasible"]:
        return {}
    if judges.get("conj", "and") != "and":
        raise NotCarriedError("it is judged by alternatives")
    results, rules = (each if isinstance(each, list) else [each] for each in (judges["result"], judges["expected"]))
    found: dict[str, Any] = {"outputs": {}, "files": {}}
    for name, result, expected in zip(names, results, rules, strict=True):
        wanted = _wanted(name, expected.get("rules", expected))
        match result["type"]:
            case "vm_command_line":
                found["outputs"][_line(result)] = wanted
            case "vm_file" if str(result["path"]).startswith(f"{_HOME}/"):
                found["files"][result["path"].removeprefix(f"{_HOME}/")] = wanted
            case kind:
                raise NotCarriedError(f"its result is {kind}")
    return found


def _wanted(name: str, rules: Mapping[str, Any]) -> str | dict[str, str]:
    match name:
        case "exact_match":
            return str(rules["expected"])
        case "check_include_exclude":
            has = "".join(f"(?=.*{re.escape(one)})" for one in rules.get("include") or [])
            return {"has": rf"(?s)\A{has}" + "".join(f"(?!.*{re.escape(one)})" for one in rules.get("exclude") or [])}
    raise NotCarriedError(f"it is judged by {name}")
