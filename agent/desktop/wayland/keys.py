"""XKB keysym names of keys, and the US layout by Linux key codes."""

from functools import cache
from typing import NamedTuple

from foundation.configs import load_config

_KEYSYMS: dict[str, str] = load_config("keys.toml")["keysyms"]
#: Key and button codes of Linux.
EVDEV = load_config("evdev.toml")


def keysym_of(key: str) -> str:
    """Return the keysym name of a key of `agent.core.keys`."""
    return key if len(key) == 1 else _KEYSYMS.get(key, key.title())


class Stroke(NamedTuple):
    """A Linux key code (configs/evdev.toml), and whether shift is held with it."""

    code: int
    shift: bool = False


@cache
def us_layout() -> dict[str, Stroke]:
    """Return the stroke of each character. The dict is cached: do not modify it."""
    found: dict[str, Stroke] = {}
    for row in EVDEV["rows"]:
        for index, (plain, shifted) in enumerate(zip(row["plain"], row["shifted"], strict=True)):
            found.setdefault(shifted, Stroke(row["first"] + index, shift=True))
            found[plain] = Stroke(row["first"] + index)
    return found
