"""The builders of the grammar: they make goals of the arguments that an entry of the table gives them."""

from collections.abc import Callable
from typing import TypeAlias, cast

from agent.literal.goals import Goal
from agent.literal.language.rules import controls, files, keyboard, windows
from agent.literal.language.sentences import Part
from agent.literal.language.table import Groups

#: Builds the goals of a part that fits an entry; None to try the next entry.
Builder: TypeAlias = Callable[[Part, Groups], list[Goal] | None]


def builder(name: str) -> Builder:
    """Return the builder that an entry of the table names: the function `_NAME` of one of the modules here."""
    return cast(
        "Builder",
        next(vars(one)[f"_{name}"] for one in (controls, files, keyboard, windows) if f"_{name}" in vars(one)),
    )
