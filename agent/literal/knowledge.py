"""Where things live: `configs/literal.toml`, read into plain values."""

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from agent.literal.labels import plain
from foundation.configs import load_config

Shows: TypeAlias = Literal["darker", "lighter", ""]


@dataclass(frozen=True, slots=True)
class Thing:
    """What is known of a thing that can be switched or chosen."""

    labels: tuple[str, ...]  # texts that stand for it on the screen, best first
    places: tuple[str, ...] = ()  # where to look for it, outermost first
    lives_in: str = ""  # the application that holds it, "" if any may
    shows: Shows = ""  # what must be seen once it is done


def known_thing(name: str, *, on: bool = True) -> Thing:
    """What is known of the thing of that name; an unknown name stands only for itself."""
    wanted = plain(name)
    for entry in load_config("literal.toml")["things"]:
        if wanted in (plain(known) for known in entry["names"]):
            labels = entry["on"] if on else entry["off"]
            shows = entry.get("on_shows" if on else "off_shows", "")
            own = () if labels and not on else (name,)  # "disable dark mode" must not click "Dark"
            return Thing((*own, *labels), tuple(entry["places"]), entry.get("lives_in", ""), shows)
    return Thing((name,))


@cache
def words_for(kind: str) -> tuple[str, ...]:
    """Words under which something can be reached: `settings`, `menus`, `back`."""
    return tuple(load_config("literal.toml")["reach"][kind])
