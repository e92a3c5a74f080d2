"""What both halves know of a model family: its data file, its image rule, and the models that belong to it."""

from collections.abc import Iterable
from typing import Any

from foundation.configs import config_names, load_config
from foundation.errors import UsageError
from foundation.images import ImageRule


def family_names() -> list[str]:
    """Every family that has a data file, also those of which only the image rule is known; sorted."""
    return config_names("families")


def family_data(name: str) -> dict[str, Any]:
    """The data file of a family. Raises UsageError where there is no such family."""
    if name not in family_names():
        raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(family_names())}.")
    return load_config(f"families/{name}.toml")


def image_rule(name: str) -> ImageRule:
    """The image rule of a family. Raises UsageError where there is no such family."""
    image = family_data(name)["image"]
    return ImageRule(int(image["factor"]), int(image["min_pixels"]), int(image["max_pixels"]))


def detect_family(model: str, among: Iterable[str] | None = None) -> str | None:
    """The family whose name, or one of whose spellings, is part of a served model's name.

    Args:
        model: as the server calls it; case does not matter.
        among: the families to choose from; None for all.

    Returns:
        None when the name says nothing.
    """
    lowered = model.lower()
    for name in family_names() if among is None else among:
        spellings = (name, *family_data(name).get("detect", {}).get("names", ()))
        if any(spelling in lowered for spelling in spellings):
            return name
    return None
