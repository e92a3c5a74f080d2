"""Recipes as models: their steps, parameters and expected changes."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent.core.keys import UnknownKeyError, chord
from agent.literal.find.finder import is_role
from agent.literal.goals import Click, Close, Expected, Open, Part, Press, Repeat, Scroll, Target, Toggle, Type, Wait
from agent.screen.picture_search import read_picture
from foundation.errors import UsageError

#: The version of the files that this program writes and reads.
VERSION = 1
PARAMETER = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def _is_picture(text: str) -> str:
    if text:
        read_picture(text)
    return text


class Thing(_Model):
    """A control, by its exact name and role in a window, or by a picture if it has no name."""

    name: str = ""
    role: str = ""
    window: str = Field("", alias="in")
    near: list[str] = []
    picture: Annotated[str, AfterValidator(_is_picture)] = ""

    @model_validator(mode="after")
    def _says_something(self) -> "Thing":
        if not self.name and not self.role and not self.picture:
            raise ValueError("a target needs a name, or a role or picture where it has no name")
        if self.role and not _named_in(self.role) and not is_role(self.role):
            raise ValueError(f"there is no role {self.role!r}; `mai-agent look` lists those on the screen")
        return self

    @property
    def target(self) -> Target:
        """The same for the engine."""
        return Target(self.name, self.role, inside=self.window, picture=self.picture)


class ClickStep(Thing):
    """A click. With `to`, it is left out if the switch is already in that state."""

    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(1, ge=1, le=2)
    to: Literal["on", "off", ""] = ""


class TypeStep(_Model):
    """Text for a field, or for whatever has the focus in a window."""

    text: str
    into: Thing | None = None
    replace: bool = False
    empty: bool = False
    window: str = Field("", alias="in")


class PressStep(_Model):
    """A key combination for a window."""

    keys: str
    window: str = Field("", alias="in")

    @model_validator(mode="after")
    def _are_keys(self) -> "PressStep":
        try:
            chord(self.keys)
        except UnknownKeyError as error:
            raise ValueError(str(error)) from error
        return self


class ScrollStep(_Model):
    """Notches of the wheel in a window."""

    direction: Literal["up", "down", "left", "right"]
    notches: int = Field(5, ge=1, le=100)
    window: str = Field("", alias="in")


class CloseStep(_Model):
    """The window to close."""

    window: str = Field(alias="in")


def _short(field: str) -> BeforeValidator:
    """Accept a plain text as a table with this one field."""
    return BeforeValidator(lambda value: {field: value} if isinstance(value, str) else value)


class Step(_Model):
    """One step: exactly one of these."""

    open: str | None = Field(None, min_length=1)
    click: Annotated[ClickStep, _short("name")] | None = None
    type: Annotated[TypeStep, _short("text")] | None = None
    press: Annotated[PressStep, _short("keys")] | None = None
    scroll: Annotated[ScrollStep, _short("direction")] | None = None
    wait: float | None = Field(None, gt=0, le=60)
    close: Annotated[CloseStep, _short("in")] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> "Step":
        if len(self.model_fields_set) != 1:
            raise ValueError(f"a step is exactly one of {', '.join(Step.model_fields)}")
        return self

    @property
    def part(self) -> Part:
        """The same for the engine."""
        if self.open is not None:
            return Part(Open(self.open))
        if (clicked := self.click) is not None:
            goal = Toggle(clicked.target, clicked.to == "on") if clicked.to else None
            return Part(goal or Click(clicked.target, clicked.button, clicked.count), near=tuple(clicked.near))
        if (typed := self.type) is not None:
            into = typed.into.target if typed.into is not None else None
            near = tuple(typed.into.near) if typed.into is not None else ()
            return Part(Type(typed.text, into, typed.replace, typed.empty), typed.window, near)
        if self.press is not None:
            return Part(Press(chord(self.press.keys)), self.press.window)
        if self.scroll is not None:
            return Part(Scroll(self.scroll.direction, self.scroll.notches), self.scroll.window)
        if self.wait is not None:
            return Part(Wait(self.wait))
        assert self.close is not None
        return Part(Close(self.close.window), self.close.window)


class Expectation(_Model):
    """A setting or a file that the steps change."""

    setting: str = ""
    file: str = ""
    becomes: str

    @model_validator(mode="after")
    def _is_one(self) -> "Expectation":
        if bool(self.setting) == bool(self.file):
            raise ValueError("name a setting, or a file")
        if self.file and self.becomes not in ("written", "gone"):
            raise ValueError("`becomes` must be written or gone")
        return self

    @property
    def expected(self) -> Expected:
        """The same for the engine."""
        return Expected("setting" if self.setting else "file", self.setting or self.file, self.becomes)


class Parameter(_Model):
    """A value for one run of the recipe; required if there is no default."""

    default: str = ""
    secret: bool = False

    @model_validator(mode="after")
    def _keeps_no_secret(self) -> "Parameter":
        if self.secret and self.default:
            raise ValueError("a secret has no default: the file would show it")
        return self


Parameters: TypeAlias = dict[str, Annotated[Parameter, _short("default")]]


class Recipe(_Model):
    """A recipe: its steps, and the expected changes."""

    version: int = Field(ge=VERSION, le=VERSION)
    instruction: str = Field(min_length=1)
    parameters: Parameters = {}
    steps: list[Step] = Field(min_length=1)
    expect: list[Expectation] = []

    @model_validator(mode="after")
    def _uses_its_parameters(self) -> "Recipe":
        used = _named_in(self.model_dump_json(exclude={"parameters"}))
        for name in self.parameters:
            if not PARAMETER.fullmatch(name):
                raise ValueError(f"a parameter cannot be called {name!r}: use letters, digits and _")
            if name not in used:
                raise ValueError(f"no step uses the parameter {{{name}}}")
        return self

    def with_values(self, arguments: Mapping[str, str]) -> tuple[str, Repeat]:
        """Return the instruction and the goal with these values of its parameters. Raises UsageError."""
        if unknown := sorted(arguments.keys() - self.parameters.keys()):
            known = ", ".join(self.parameters) or "none"
            raise UsageError(f"The recipe has no parameter {unknown[0]!r}.", f"Its parameters: {known}.")
        values = {name: arguments.get(name, one.default) for name, one in self.parameters.items()}
        if missing := [name for name in values if not values[name]]:
            raise UsageError(f"The recipe needs a value for {missing[0]!r}.", f"Add it: {missing[0]}=VALUE")
        data = self.model_dump(by_alias=True, exclude_unset=True, exclude={"parameters"})
        try:
            filled = Recipe.model_validate(_replaced(data, values))
        except ValidationError as error:
            raise UsageError(f"The values do not fit: {error.errors()[0]['msg']}.", "Choose others.") from error
        parts = tuple(step.part for step in filled.steps)
        shown = {name: value for name, value in values.items() if not self.parameters[name].secret}
        return _replaced(self.instruction, shown), Repeat(parts, tuple(one.expected for one in filled.expect))

    def repaired(self, repairs: Mapping[int, Target]) -> "Recipe":
        """Return the recipe with other targets for steps, by the steps' numbers (1 for the first).

        A target whose name contains a parameter is kept: its new name fits only this value.
        """
        steps = list(self.steps)
        for number, target in repairs.items():
            step = steps[number - 1]
            if step.click is not None:
                steps[number - 1] = step.model_copy(update={"click": _renamed(step.click, target)})
            elif step.type is not None and step.type.into is not None:
                typed = step.type.model_copy(update={"into": _renamed(step.type.into, target)})
                steps[number - 1] = step.model_copy(update={"type": typed})
        return self.model_copy(update={"steps": steps})

    @property
    def braces_kept(self) -> set[str]:
        """The words in braces that look like parameters and are none."""
        return {*_named_in(self.model_dump_json(exclude={"parameters"}))} - self.parameters.keys()

    def secrets(self, arguments: Mapping[str, str]) -> list[str]:
        """Return the values that no record may hold."""
        return [arguments[name] for name, one in self.parameters.items() if one.secret and arguments.get(name)]

    def values_in(self, instruction: str) -> dict[str, str] | None:
        """Match an instruction against the recipe's. Return the parameters' values; None if it does not match."""
        pattern = "".join(
            f"(?P<{part}>.+?)" if at % 2 and part in self.parameters else re.escape(f"{{{part}}}" if at % 2 else part)
            for at, part in enumerate(re.split(r"\{(\w+)\}", " ".join(self.instruction.split())))
        )
        try:
            found = re.fullmatch(pattern, " ".join(instruction.split()), re.IGNORECASE)
        except re.error:  # a parameter occurs in it twice
            return None
        return found.groupdict() if found else None

    @property
    def text(self) -> str:
        """The file's text."""
        data = self.model_dump(by_alias=True, exclude_defaults=True) | {"version": self.version}
        data["steps"] = [_shortest(step) for step in data["steps"]]
        if self.parameters:
            data["parameters"] = {
                name: {"secret": True} if one.secret else one.default for name, one in self.parameters.items()
            }
        ordered = {name: data[name] for name in Recipe.model_fields if name in data}
        return yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True, width=110)


def _renamed(thing: Thing, target: Target) -> Thing:
    """Return a control with the name, role and window of a target."""
    if _named_in(thing.name):
        return thing
    window = thing.window if _named_in(thing.window) else target.inside
    return thing.model_copy(update={"name": target.name, "role": target.role, "window": window, "picture": ""})


def _shortest(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step in short form: a text in place of a table with one field."""
    [(kind, value)] = step.items()
    alone = {"type": "text", "press": "keys", "scroll": "direction", "close": "in"}.get(kind)
    return {kind: value[alone]} if alone and isinstance(value, dict) and [*value] == [alone] else step


def _named_in(text: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", text)


def _replaced(value: Any, values: Mapping[str, str]) -> Any:
    """Return JSON with the values of parameters in its texts; other braces stay."""
    match value:
        case str():
            return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), value)
        case dict():
            return {name: _replaced(one, values) for name, one in value.items()}
        case list():
            return [_replaced(one, values) for one in value]
    return value
