"""Where characters are on a keyboard of the United States, by Linux's numbers of keys (configs/evdev.toml)."""

from functools import cache
from typing import NamedTuple

from foundation.configs import load_config


class Stroke(NamedTuple):
    """A key by its number of Linux, and whether shift is held with it."""

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
