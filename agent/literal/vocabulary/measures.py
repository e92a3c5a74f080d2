"""What a name measures, and which way a comparative changes that: "faster" is more speed and less time."""

from functools import cache
from typing import Literal

from agent.literal.vocabulary.lexicon import plain
from agent.literal.vocabulary.places import known_thing
from foundation.configs import load_config

Direction = Literal["up", "down"]
#: What a comparative means of a thing with several measures.
_WAYS = {"speed": ("faster", "quicker", "slower"), "size": ("bigger", "larger", "smaller")}


@cache
def _measures() -> dict[str, dict[str, frozenset[str]]]:
    """Return the last words of names, and the comparatives that say more and less, by measure."""
    table = load_config("grammar.toml")["measures"]
    return {one: {key: frozenset(words.split()) for key, words in entry.items()} for one, entry in table.items()}


def measure_of(name: str) -> str:
    """Return what a thing of that name measures, such as "speed"; "" if nothing tells."""
    known = known_thing(name)
    last_words = [plain(name).rpartition(" ")[2], *([known[0].rpartition("-")[2]] if known else [])]
    return next((one for word in last_words for one, entry in _measures().items() if word in entry["words"]), "")


def measured_by(way: str, name: str) -> str:
    """Return the name of what a comparative changes of a thing: "pointer" is its size, "faster" means its speed."""
    measure = next((one for one, ways in _WAYS.items() if way in ways), "")
    named = f"{name} {measure}"
    return named if measure and known_thing(named) not in (None, known_thing(name)) else name


def direction_of(way: str, name: str) -> Direction | None:
    """Return which way a comparative changes what the name measures; None if it says nothing about that."""
    for measure in filter(None, ("any", measure_of(name))):
        entry = _measures()[measure]
        if way in entry["up"] | entry["down"]:
            return "up" if way in entry["up"] else "down"
    return None
