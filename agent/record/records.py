"""What every part of a run bundle's records is made of: how it is read, and the texts and numbers in it.

The recorder writes these models, and everything that shows a run reads them. A record that is made must be right; one
that is read may come from a crash or an older version, so what is damaged in it is left out, and what is not known to
this version is kept.
"""

from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    WithJsonSchema,
)

from agent.core.geometry import Region, Size, Viewport


def _readable(value: Any) -> Any:
    """A text without half characters, which no file could hold."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


#: Stands for the schema of any action, which would be too long to be repeated wherever there is one.
ACTION_SCHEMA = {"title": "Action", "type": "object"}


Text: TypeAlias = Annotated[str, BeforeValidator(_readable)]


#: An action as `actions.to_json` writes it; kept as it is, so that kinds of later versions are not lost.
ActionJson: TypeAlias = Annotated[dict[str, Any], WithJsonSchema(ACTION_SCHEMA)]


class Record(BaseModel):
    """Anything in a bundle."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, data: Any) -> Self:
        """The record in a JSON value; what is damaged in it is left out, with what cannot be without it."""
        data = data if isinstance(data, dict) else {}
        while True:
            try:
                return cls.model_validate(data)
            except ValidationError as error:
                data = _without(data, {_place(data, problem["loc"]) for problem in error.errors()})


#: The way to a part of a JSON value: names in tables, numbers in lists.
_Place: TypeAlias = tuple[str | int, ...]


def _place(data: Any, place: _Place) -> _Place:
    """The place; where nothing is there, that of what lacks it."""
    for depth, name in enumerate(place):
        if isinstance(data, dict) and name not in data:
            return place[:depth]
        data = data[name]
    return place


def _without(data: dict[str, Any], places: set[_Place]) -> dict[str, Any]:
    data = deepcopy(data)
    for *way, last in sorted(places, reverse=True):  # the end of a list first, so that its other numbers stay
        del reduce(getitem, way, data)[last]  # type: ignore[arg-type]
    return data


class TokensRecord(Record):
    """Tokens of requests; null where the server does not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


class ViewportRecord(Record):
    """How the captured pixels lie on the desktop, which is measured in desktop units."""

    left: int
    top: int
    width: int
    height: int
    captured_width: int
    captured_height: int

    @property
    def viewport(self) -> Viewport:
        """The same as a value to calculate with."""
        region = Region(self.left, self.top, self.width, self.height)
        return Viewport(region, Size(self.captured_width, self.captured_height))
