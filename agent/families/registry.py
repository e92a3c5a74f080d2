"""The families by name, and which family a served model belongs to."""

from functools import cache
from importlib import import_module
from pathlib import Path

from agent.families.base import Family
from foundation import families
from foundation.errors import UsageError
from foundation.families import Found, clues_in, family_of

#: The family assumed for a model of which nothing is known: it takes any instructed model, with eyes or without.
DEFAULT_FAMILY = "generic"


def family_names() -> list[str]:
    """Return the families that can drive a desktop: those whose data names a class."""
    return [name for name in families.family_names() if "made_by" in families.family_data(name)]


def get_family(name: str) -> Family:
    """Return the family of that name, or of a model of that name.

    Raises UsageError: there is none, or only its image rule is known.
    """
    named = families.named(name)
    if named in family_names():
        return _made(named)
    known = named in families.family_names()
    raise UsageError(
        f"Of the family {name!r} only the image rule is known (`mai-agent fit`)."
        if known else f"There is no family {name!r}.",
        f"Use one of: {', '.join(family_names())}.",
    )  # fmt: skip


@cache
def _made(name: str) -> Family:
    module, _, kind = families.family_data(name)["made_by"].rpartition(".")
    family: Family = getattr(import_module(f"agent.families.{module}"), kind)(name)
    return family


def forget() -> None:
    """Make families anew when they are asked for."""
    _made.cache_clear()


def detect_folder(folder: Path) -> Found | None:
    """The family of the model in a folder, and by what it was told; None where it is no model's, or tells nothing."""
    if not folder.is_absolute() or (clues := clues_in(folder)) is None:
        return None
    return family_of(clues, [name for name in family_names() if families.family_data(name).get("models")])


def detect_family(model: str) -> str | None:
    """The family of a served model that can drive a desktop, by the model's name; None when the name says nothing."""
    return families.detect_family(model, family_names())
