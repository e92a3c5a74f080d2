"""The families by name, and which family a served model belongs to."""

from functools import cache

from agent.families.base import Family
from agent.screen.fit import ImageRule
from foundation.configs import config_names, load_config
from foundation.errors import UsageError

#: The family assumed for a model whose name says nothing.
DEFAULT_FAMILY = "mai-ui"


def family_names() -> list[str]:
    """Families that can drive a desktop (prompt and parser)."""
    return ["mai-ui"]


@cache
def get_family(name: str) -> Family:
    """The family of that name.

    Raises:
        UsageError: there is none, or only its image rule is known.
    """
    if name == "mai-ui":
        from agent.families.mai_ui.family import MaiUi

        return MaiUi()
    if name in config_names("families"):
        raise UsageError(
            f"Of the family {name!r} only the image rule is known (`mai-agent fit`).",
            f"Use one of: {', '.join(family_names())}.",
        )
    raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(family_names())}.")


def get_image_rule(name: str) -> ImageRule:
    """The image rule of a family, also of those that are known by nothing else yet. Raises UsageError."""
    if name not in config_names("families"):
        raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(config_names('families'))}.")
    return ImageRule.from_config(name)


def detect_family(model: str) -> str | None:
    """The family of a served model by its name; None when the name says nothing."""
    lowered = model.lower()
    for name in family_names():
        detect = load_config(f"families/{name}.toml").get("detect", {})
        if any(part in lowered for part in detect.get("names", [])):
            return name
    return None
