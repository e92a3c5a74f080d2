"""Where each family's published prompt is, and how it is taken out: `configs/prompts.toml`."""

import re
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from agent.families.published import HOLES, mark
from foundation.configs import check_settings, load_config

if TYPE_CHECKING:
    from pydantic import BaseModel

_HOLE = re.compile(r"\{([a-z_]+)(?::([^{}]*))?\}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The published prompt of one family."""

    family: str
    repository: str
    commit: str
    files: dict[str, str]  # SHA-256 by path
    parts: dict[str, str]  # expressions by the part of a request
    within: str | dict[str, str] = ""  # the function whose names the expressions use; also by part
    given: dict[str, str | int] = field(default_factory=dict)  # what only a running program knows; "{name}" for a hole
    phone: tuple[str, ...] = ()  # parts that are about a phone: only for `--style reference`

    def function_of(self, part: str) -> str:
        """Return the function whose names a part's expression uses; "" for the module's."""
        return self.within if isinstance(self.within, str) else self.within.get(part, "")

    @property
    def source(self) -> str:
        """The repository and the commit, as records name them."""
        return f"{self.repository}@{self.commit[:12]}"


def recipes() -> dict[str, Recipe]:
    """Return the recipe of each family that has one. Raises UsageError naming what is wrong in the file."""
    return _read()[1]


def usual_address() -> str:
    """Return the address of a file, with {repository}, {commit} and {path}."""
    return _read()[0]


def forget() -> None:
    """Forget what was read of the file."""
    _read.cache_clear()


def holes_in(value: str | int) -> list[str]:
    """Return the names of the holes in a given value."""
    return [found[1] for found in _HOLE.finditer(value)] if isinstance(value, str) else []


@cache
def _read() -> tuple[str, dict[str, Recipe]]:
    told = check_settings(_schema(), load_config("prompts.toml"), "In configs/prompts.toml,").model_dump()
    return told["address"], {
        family: Recipe(family, **{**entry, "phone": tuple(entry["phone"])})
        for family, entry in sorted(told["families"].items())
    }


@cache
def _schema() -> "type[BaseModel]":
    from pydantic import BaseModel, ConfigDict, Field, field_validator

    strict = ConfigDict(extra="forbid", strict=True)

    class Entry(BaseModel):
        model_config = strict

        repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
        commit: str = Field(pattern=r"^[0-9a-f]{40}$")
        files: dict[str, str] = Field(min_length=1)
        parts: dict[str, str] = Field(min_length=1)
        within: str | dict[str, str] = ""
        given: dict[str, str | int] = Field(default_factory=dict)
        phone: list[str] = Field(default_factory=list)

        @field_validator("files")
        @classmethod
        def _are_hashes(cls, files: dict[str, str]) -> dict[str, str]:
            for path, digest in files.items():
                if not re.fullmatch(r"[0-9a-f]{64}", digest) or path.startswith("/") or ".." in path.split("/"):
                    raise ValueError(f"{path!r} needs a path in the repository and a SHA-256")
            return files

        @field_validator("given")
        @classmethod
        def _are_holes(cls, given: dict[str, str | int]) -> dict[str, str | int]:
            for name in (name for value in given.values() for name in holes_in(value)):
                if name not in HOLES and name != "date":
                    raise ValueError(f"nothing fills {{{name}}}")
            return given

    class Prompts(BaseModel):
        model_config = strict

        address: str
        families: dict[str, Entry]

    return Prompts


def given_values(recipe: Recipe, today: date) -> dict[str, str | int]:
    """Return what is given, with marks for the holes, and the date written out."""

    def filled(hole: re.Match[str]) -> str:
        return today.strftime(hole[2] or "%Y-%m-%d") if hole[1] == "date" else mark(hole[1])

    return {
        expression: _HOLE.sub(filled, value) if isinstance(value, str) else value
        for expression, value in recipe.given.items()
    }
