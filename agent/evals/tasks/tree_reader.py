"""Prints the controls of applications from their accessibility trees, by libatspi.

The system's Python runs it inside a sandbox, with regular expressions of applications' names as arguments. It prints a
JSON object a line for every control that holds something. The agent's own client is not used, so that an error of it
cannot hide itself. This module imports nothing of the project.
"""

import json
import re
import sys
import time
from contextlib import suppress
from typing import Any

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402 -- the version must be chosen first

ROLES = {
    *("check box", "check menu item", "radio button", "radio menu item", "toggle button", "switch", "slider"),
    *("spin button", "text", "entry", "combo box", "page tab", "label", "push button", "password text", "editbar"),
    *("list item", "table cell", "menu item", "tree item", "button", "heading", "paragraph", "static"),
}
DEEP = 40
MANY = 4000
DEADLINE = time.monotonic() + 12


def main() -> None:
    """Print the controls of the applications whose names the arguments find."""
    Atspi.init()
    Atspi.set_timeout(800, 3000)
    wanted = [re.compile(pattern, re.IGNORECASE) for pattern in sys.argv[1:]]
    desktop = Atspi.get_desktop(0)
    for number in range(desktop.get_child_count()):
        with suppress(Exception):  # an application that has gone or hangs
            app = desktop.get_child_at_index(number)
            name = app.get_name() or ""
            if any(pattern.search(name) for pattern in wanted):
                walk(name, app, 0, [0])


def walk(app: str, node: Any, depth: int, count: list[int]) -> None:
    """Print the controls below a node; `count` holds how many nodes were seen."""
    if depth > DEEP or count[0] > MANY or time.monotonic() > DEADLINE:
        return
    count[0] += 1
    with suppress(Exception):
        role = node.get_role_name()
        if role in ROLES:
            print(json.dumps(told(app, role, node)))
        for number in range(min(node.get_child_count(), 400)):
            child = node.get_child_at_index(number)
            if child is not None:
                walk(app, child, depth + 1, count)


def told(app: str, role: str, node: Any) -> dict[str, Any]:
    """Return what a control holds."""
    states = node.get_state_set()
    has = states.contains
    line = {
        "app": app,
        "role": role,
        "name": (node.get_name() or "")[:200],
        "showing": has(Atspi.StateType.SHOWING),
        "sensitive": has(Atspi.StateType.SENSITIVE),
        "checked": has(Atspi.StateType.CHECKED) or has(Atspi.StateType.PRESSED),
        "selected": has(Atspi.StateType.SELECTED),
    }
    if role in {"slider", "spin button"}:
        line["value"] = node.get_current_value() if hasattr(node, "get_current_value") else None
        value = node.get_value_iface() if hasattr(node, "get_value_iface") else None
        if value is not None:
            line["value"] = value.get_current_value()
    if role in {"text", "entry", "label", "spin button", "password text", "heading", "paragraph", "static", "editbar"}:
        text = node.get_text_iface()
        if text is not None:
            line["text"] = text.get_text(0, min(text.get_character_count(), 2000))
    return line


if __name__ == "__main__":
    main()
