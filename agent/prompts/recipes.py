"""Where each family's published prompt is, and how it is taken out: `configs/prompts.toml`."""

import re
from collections.abc import Sequence
from datetime import date
from functools import cache

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent.families.published import HOLES, mark
from foundation.configs import check_settings, load_config

_HOLE = re.compile(r"\{([a-z_]+)(?::([^{}]*))?\}")


class Recipe(BaseModel):
    """The published prompt of one family."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    family: str = ""
    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    files: dict[str, str] = Field(min_length=1)  # SHA-256 by path
    parts: dict[str, str] = Field(min_length=1)  # expressions by the part of a request
    within: str | dict[str, str] = ""  # the function whose names the expressions use; also by part
    given: dict[str, str | int] = {}  # values that only a running program knows; "{name}" is a placeholder
    phone: Sequence[str] = ()  # parts that are about a phone: only for `--style reference`

    @property
    def source(self) -> str:
        """The repository and the commit, as records name them."""
        return f"{self.repository}@{self.commit[:12]}"

    @field_validator("files")
    @classmethod
    def _are_hashes(cls, files: dict[str, str]) -> dict[str, str]:
        for path, digest in files.items():
            if not re.fullmatch(r"[0-9a-f]{64}", digest) or path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"{path!r} needs a path in the repository and a SHA-256")
        return files

    @field_validator("given")
    @classmethod
    def _are_holes(cls, values: dict[str, str | int]) -> dict[str, str | int]:
        for name in (found[1] for value in values.values() for found in _HOLE.finditer(str(value))):
            if name not in HOLES and name != "date":
                raise ValueError(f"nothing fills {{{name}}}")
        return values


class _Prompts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    address: str
    families: dict[str, Recipe]


def recipes() -> dict[str, Recipe]:
    """Return the recipe of each family that has one. Raises UsageError naming what is wrong in the file."""
    return _read()[1]


def usual_address() -> str:
    """Return the address of a file, with {repository}, {commit} and {path}."""
    return _read()[0]


def forget() -> None:
    """Forget what was read of the file."""
    _read.cache_clear()


@cache
def _read() -> tuple[str, dict[str, Recipe]]:
    prompts = check_settings(_Prompts, load_config("prompts.toml"), "In configs/prompts.toml,")
    named = {name: recipe.model_copy(update={"family": name}) for name, recipe in sorted(prompts.families.items())}
    return prompts.address, named


def given_values(recipe: Recipe, today: date) -> dict[str, str | int]:
    """Return the given values, with marks for the placeholders, and with the date filled in."""

    def filled(hole: re.Match[str]) -> str:
        return today.strftime(hole[2] or "%Y-%m-%d") if hole[1] == "date" else mark(hole[1])

    return {
        expression: _HOLE.sub(filled, value) if isinstance(value, str) else value
        for expression, value in recipe.given.items()
    }
