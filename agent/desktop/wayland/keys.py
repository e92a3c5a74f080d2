"""Names and places of keys: keysyms of XKB, and the layout of the United States by Linux's codes of keys."""

from functools import cache
from typing import NamedTuple

from foundation.configs import load_config

_KEYSYMS = {
    "escape": "Escape", "enter": "Return", "print_screen": "Print", "pause": "Pause", "space": "space",
    "backspace": "BackSpace", "delete": "Delete", "tab": "Tab", "page_up": "Prior", "page_down": "Next",
}  # fmt: skip


def keysym_of(key: str) -> str:
    """The keysym of a key, by its name in `agent.core.keys`."""
    return key if len(key) == 1 else _KEYSYMS.get(key, key.title())


class Stroke(NamedTuple):
    """A key by Linux's code (configs/evdev.toml), and whether shift is held with it."""

    code: int
    shift: bool = False


@cache
def us_layout() -> dict[str, Stroke]:
    """The stroke of each character; nobody changes it."""
    found: dict[str, Stroke] = {}
    for row in load_config("evdev.toml")["rows"]:
        for index, (plain, shifted) in enumerate(zip(row["plain"], row["shifted"], strict=True)):
            found.setdefault(shifted, Stroke(row["first"] + index, shift=True))
            found[plain] = Stroke(row["first"] + index)
    return found
