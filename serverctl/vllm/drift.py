"""What differs between the vLLM that is known and another: which flags came, went or changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Parts of a dump that are names, and what they are called.
NAMES = {
    "options": "flags",
    "env": "environment variables",
    "quantization_methods": "quantization methods",
    "reasoning_parsers": "reasoning parsers",
    "architectures": "architectures",
}


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences, by the parts of a dump."""

    came: Mapping[str, tuple[str, ...]]
    went: Mapping[str, tuple[str, ...]]
    changed: tuple[str, ...]  # flags that take something else now, in words

    def __bool__(self) -> bool:
        return bool(self.changed or any(self.came.values()) or any(self.went.values()))


def drift(known: Mapping[str, Any], now: Mapping[str, Any]) -> Drift:
    """What differs between two documents of `parser_dump.py`. A part that either lacks is not compared."""
    parts = [part for part in NAMES if known.get(part) and now.get(part)]
    came = {part: tuple(sorted(_names(now[part]) - _names(known[part]))) for part in parts}
    went = {part: tuple(sorted(_names(known[part]) - _names(now[part]))) for part in parts}
    both = sorted(set(known.get("options", ())) & set(now.get("options", ())))
    pairs = [(flag, known["options"][flag], now["options"][flag]) for flag in both]
    changed = tuple(f"{flag}: {words}" for flag, was, entry in pairs for words in _differences(was, entry))
    return Drift(came, went, changed)


def _differences(was: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """What an option takes now that it did not, or the other way round; other names of it are told as flags."""
    for key, value in sorted(entry.items()):
        before = was.get(key)
        if key == "aliases" or before == value or (key == "names" and before is None):
            continue
        if isinstance(before, list) and isinstance(value, list):
            old, new = set(map(str, before)), set(map(str, value))
            words = (("without", old - new), ("with", new - old))
            yield f"{key} {', '.join(f'{word} {name}' for word, names in words for name in sorted(names))}"
        else:
            yield f"{key} was {before}, is {value}"


def _names(part: Any) -> set[str]:
    """The names of a part; of options their other names, too, as a flag may only have become one of these."""
    if not isinstance(part, Mapping):
        return set(part)
    return {name for flag, entry in part.items() for name in (flag, *(entry.get("aliases") or ()))}
