"""The families by name, and which family a served model belongs to."""

from functools import cache

from agent.families.base import Family
from foundation import families
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
    if name in families.family_names():
        raise UsageError(
            f"Of the family {name!r} only the image rule is known (`mai-agent fit`).",
            f"Use one of: {', '.join(family_names())}.",
        )
    raise UsageError(f"There is no family {name!r}.", f"Use one of: {', '.join(family_names())}.")


def detect_family(model: str) -> str | None:
    """The family of a served model that can drive a desktop, by the model's name; None when the name says nothing."""
    return families.detect_family(model, family_names())
