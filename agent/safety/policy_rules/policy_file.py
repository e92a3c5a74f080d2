"""Reads policy files, and explains mistakes in them in one sentence."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent.core.geometry import DesktopPoint, Region, without
from agent.safety.policy_rules.rule import Allowed, Box, Expression, Named, PolicyPart, Rule
from agent.safety.text import found
from agent.safety.words import word_lists
from agent.screen.outline import Element
from foundation.configs import config_names, load_config
from foundation.errors import UsageError


class HiddenWindow(PolicyPart):
    """Windows whose content must not leave the machine: those that match all given expressions."""

    app: Expression | None = None  # searched in the application's class
    title: Expression | None = None

    @model_validator(mode="after")
    def _not_idle(self) -> Self:
        if self.app is None and self.title is None:
            raise ValueError("it hides nothing: app or title is missing")
        return self

    def matches(self, app: str, title: str) -> bool:
        """Whether a window matches."""
        searched = ((self.app, app), (self.title, title))
        return all(expression is None or found(expression, text) for expression, text in searched)


Screenshots: TypeAlias = Literal["never", "ask", "yes"]


class Leaving(PolicyPart):
    """What may be sent to a fallback model on another machine, when the main model is stuck."""

    screenshots: Screenshots = "never"
    hide: tuple[HiddenWindow, ...] = ()
    regions: tuple[Box, ...] = ()  # in desktop units, blacked out in every screenshot

    def hides(self, app: str, title: str) -> bool:
        """Whether a window must be hidden."""
        return any(one.matches(app, title) for one in self.hide)

    def covers(self, box: Region) -> bool:
        """Whether a box overlaps a blacked-out region."""
        return any(without(box, one) != [box] for one in self.regions)

    def hides_element(self, element: Element) -> bool:
        """Whether an element must not be disclosed."""
        return self.hides(element.app, element.window) or self.covers(element.box)

    def hides_point(self, point: DesktopPoint) -> bool:
        """Whether the element at a point must not be disclosed."""
        return any(one.contains(point) for one in self.regions)


def holds_secret(element: Element) -> bool:
    """Whether an element is a password field."""
    return element.role == "password text"  # AT-SPI's role name


_FORM = "See docs/safety.md for its form."


class PolicyFile(PolicyPart):
    """A policy file. `groups` are named lists for rules; `words` are named lists of words on buttons."""

    include: tuple[str, ...] = ()
    groups: dict[str, list[Any]] = Field(default_factory=dict)
    words: dict[str, dict[str, list[str]]] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    allowed: Allowed = Allowed()
    leaving: Leaving = Leaving()


def load_policy(path: Path | None) -> PolicyFile:
    """Load a policy file, or the shipped policy for None. Raises UsageError: it cannot be read, or is not valid."""
    location = "the shipped policy" if path is None else str(path)
    try:
        data = load_config("policies/default.toml") if path is None else tomllib.loads(path.read_text("utf-8"))
        return read_policy(_with_included(data, None if path is None else path.parent), location)
    except (OSError, ValueError) as error:
        raise UsageError(f"The policy {path} cannot be read: {error}.", _FORM) from error


def read_policy(data: Mapping[str, Any], location: str) -> PolicyFile:
    """Validate a parsed policy file. Raises UsageError that names the mistake, also if there are no rules."""
    try:
        groups, words = (_Lists.model_validate(data).groups, _Lists.model_validate(data).words)
        read = PolicyFile.model_validate(data, context=Named(groups, word_lists(words)))
    except ValidationError as failed:
        raise UsageError(_sentence(failed.errors()[0], location), _FORM) from failed
    if not read.rules:  # it would look like protection, but never ask anything
        raise UsageError(
            f"There is no rule in {location}.",
            "Start from a copy of the shipped one, or use `--approve never` for no questions.",
        )
    return read


class _Lists(BaseModel):
    model_config = ConfigDict(extra="ignore")
    groups: dict[str, list[Any]] = Field(default_factory=dict)
    words: dict[str, dict[str, list[str]]] = Field(default_factory=dict)


def _with_included(data: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Merge a file's data over the files that it includes, which are from the same folder or shipped."""
    names = data.get("include", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("include must be a list of names of files")
    merged: dict[str, Any] = {}
    for name in names:
        part = _included(name, folder)
        if name != "default.toml" and "include" in part:
            raise ValueError(f"{name} is included, and may not include others")
        if name in part.get("include", ()):
            raise ValueError(f"{name} includes itself")
        merged = _joined(merged, _with_included(part, folder))
    return _joined(merged, data)


def _included(name: str, folder: Path | None) -> Mapping[str, Any]:
    if Path(name).name != name:
        raise ValueError(f"include names files of the same folder, not {name!r}")
    if folder is not None and (folder / name).is_file():
        return tomllib.loads((folder / name).read_text("utf-8"))
    if name.removesuffix(".toml") in config_names("policies") and name.endswith(".toml"):
        return load_config(f"policies/{name}")
    raise ValueError(f"it includes {name!r}, which is neither beside it nor shipped")


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two files: the rules of both; lists and limits of the second override the first."""
    joined = {**one, **other}
    for part in ("groups", "words"):
        if isinstance(one.get(part), dict) and isinstance(other.get(part), dict):
            joined[part] = one[part] | other[part]
    if isinstance(one.get("rules"), list) and isinstance(other.get("rules"), list):
        joined["rules"] = [*one["rules"], *other["rules"]]
    return joined


def _sentence(error: Mapping[str, Any], location: str) -> str:
    place = ".".join(map(str, error["loc"])) or "the file"
    return f"In {location}, {place}: {error['msg'].removeprefix('Value error, ')}."
