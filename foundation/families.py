"""What both halves know of a model family: its data file, its image rule, and the models that belong to it.

A family is a folder with a `family.toml`; nothing else lists it.
"""

import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from foundation.errors import UsageError
from foundation.images import ImageRule

#: Where the folders of families lie: beside this package, in a checkout and in an installation.
ROOTS: tuple[Path, ...] = (Path(__file__).resolve().parents[1] / "agent" / "families",)


@cache
def _families(roots: tuple[Path, ...]) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The families by name: folder and data."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted(path for root in roots for path in root.glob("*/family.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        _check_keys(path, data)
        found[str(data["name"])] = (path.parent, data)
    return found


#: What a `family.toml` may hold: the keys of each table, None for tables whose keys are names of the family's own.
_KEYS: dict[str, frozenset[str] | None] = {
    "detect": frozenset({"a_word", "model_types", "names", "processors", "template"}),
    "grid": frozenset({"grounding", "navigation"}),
    "history": frozenset({"images", "most", "steps", "words"}),
    "image": frozenset(
        {"factor", "format", "linear", "max_pixels", "max_side", "min_pixels", "quality", "token_pixels", "tokens"}
    ),
    "sampling": frozenset({"max_tokens", "repetition_penalty", "seed", "temperature", "top_k", "top_p"}),
    "call": frozenset({"function", "held_in_text", "several"}),
    "prompt": frozenset(
        {"actions", "described", "desktop", "human", "names_elements", "not_here", "notes", "outline", "parameters",
         "parts", "resolution", "see"}
    ),
    "question": frozenset({"absent", "asked_with", "system", "text", "which"}),
    "scroll": frozenset({"notches_up_to", "pixels_per_notch", "usual_magnitude", "usual_pixels"}),
    "swipe": frozenset({"down", "left", "notches", "right", "up"}),
    "localisation": frozenset({"action", "text"}),
    "ask_user": frozenset({"question"}),
    "terminate": frozenset({"status"}),
    "wait": frozenset({"seconds"}),
    **dict.fromkeys(
        ("arguments", "buttons", "calls", "chords", "names", "native", "newer", "older", "preview", "request", "scores",
         "system_button", "template")
    ),
}  # fmt: skip
_OWN = frozenset({"api", "fractions", "made_by", "models", "name", "proven_by", "tools"})


def _check_keys(path: Path, data: Mapping[str, Any]) -> None:
    """Raise UsageError where a family's data holds a key that nothing reads, which is most often a misspelt one."""
    _check(path, data, _OWN | _KEYS.keys())
    for name, keys in _KEYS.items():
        if keys is not None and isinstance(table := data.get(name), dict):
            _check(path, table, keys)


def _check(path: Path, table: Mapping[str, Any], known: frozenset[str]) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, sorted(known), 1)
            raise UsageError(
                f"In {path.parent.name}/{path.name}, nothing reads {key!r}.",
                f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(sorted(known))}.",
            )


def family_names() -> list[str]:
    """Every family, also those of which only the image rule is known; sorted."""
    return sorted(_families(ROOTS))


def named(written: str) -> str:
    """The name of the family that a person means: its own in any case, or that of one of its models.

    What is neither is given back as it is.
    """
    names = _families(ROOTS)
    plain = written.strip().lower().replace("_", "-").replace(" ", "-")
    for name in (written, plain):
        if name in names:
            return name
    return (None if ".." in written else detect_family(plain)) or written


def _family(name: str) -> tuple[Path, dict[str, Any]]:
    name = named(name)
    if name not in _families(ROOTS):
        raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(family_names())}.")
    return _families(ROOTS)[name]


def family_data(name: str) -> dict[str, Any]:
    """The data of a family. Raises UsageError where there is no such family."""
    return _family(name)[1]


def family_folder(name: str) -> Path:
    """The folder of a family. Raises UsageError where there is no such family."""
    return _family(name)[0]


def image_rule(name: str) -> ImageRule:
    """The image rule of a family. Raises UsageError where there is no such family."""
    image = family_data(name)["image"]
    numbers = {name: int(image[name]) for name in ("factor", "min_pixels", "max_pixels")}
    return ImageRule(
        **numbers,
        counts=bool(image.get("tokens", True)),
        linear=bool(image.get("linear", False)),
        max_side=image.get("max_side"),
        token_pixels=image.get("token_pixels"),
    )


def detect_family(model: str, among: Iterable[str] | None = None) -> str | None:
    """The family whose name, or one of whose spellings, is part of a served model's name; the longest such one.

    Case does not matter. None when the name says nothing.
    """
    lowered = model.lower()
    matches = [
        (len(spelling), name)
        for name in (family_names() if among is None else among)
        for spelling in _spellings(name)
        if spelling in lowered
    ]
    return max(matches)[1] if matches else None


def _spellings(name: str) -> Iterable[str]:
    """What a family's models are called: its own name too, unless that is a word of no maker."""
    detect = family_data(name).get("detect", {})
    return (*(() if detect.get("a_word", False) else (name,)), *detect.get("names", ()))
