"""The families by name, and which family a served model belongs to."""

from functools import cache
from importlib import import_module
from pathlib import Path

from agent.families.base import Family
from foundation import families
from foundation.errors import UsageError
from foundation.families import Found, family_in

#: The family for unknown models. It works with any instruction-tuned model, with or without vision.
DEFAULT_FAMILY = "generic"


def family_names() -> list[str]:
    """Return the families that can drive a desktop: those whose data names a class."""
    return [name for name in families.family_names() if "made_by" in families.family_data(name)]


def get_family(name: str) -> Family:
    """Return a family by its name, or by the name of a model.

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
    """Clear the cache of family objects."""
    _made.cache_clear()


def detect_folder(folder: Path) -> Found | None:
    """Return the family of the model in a folder, with the clue; None if the folder holds no model or gives no clue."""
    if not folder.is_absolute():
        return None
    return family_in(folder, [name for name in family_names() if families.family_data(name).get("models")])


def detect_family(model: str) -> str | None:
    """Return the family of a served model by its name, if it can drive a desktop; None if the name is unknown."""
    return families.detect_family(model, family_names())
