"""The base of the records in a run bundle, and the values that runs and steps share.

The recorder writes JSON, and everything that shows a run reads it as these models. What another version wrote in
addition is kept.
"""

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, WithJsonSchema, create_model

from agent.core.actions import KINDS, OPTIONAL, Action, json_name
from agent.core.geometry import DesktopPoint, Region, Size, Viewport

#: Stands in for the schema of an action, which is too long to repeat at every field.
ACTION_SCHEMA = {"title": "Action", "type": "object"}
#: An action as `actions.to_json` writes it; kept as it is, so that kinds of later versions are not lost.
ActionJson: TypeAlias = Annotated[dict[str, Any], WithJsonSchema(ACTION_SCHEMA)]


class Record(BaseModel):
    """Anything in a bundle."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class TokensRecord(Record):
    """Tokens of requests; null where the server does not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


class BoxRecord(Record):
    """A rectangle in desktop units."""

    left: int
    top: int
    width: int
    height: int

    @property
    def region(self) -> Region:
        """The rectangle as a `Region`."""
        return Region(self.left, self.top, self.width, self.height)


class ViewportRecord(BoxRecord):
    """How the captured pixels lie on the desktop, which is measured in desktop units."""

    captured_width: int
    captured_height: int

    @property
    def viewport(self) -> Viewport:
        """The record as a `Viewport`, for conversions."""
        return Viewport(self.region, Size(self.captured_width, self.captured_height))


_Point: TypeAlias = Annotated[tuple[float, float], AfterValidator(lambda pair: DesktopPoint(*pair))]


def read_action(data: Any) -> Action[DesktopPoint] | None:
    """Return an action as `actions.to_json` wrote it; None if it is damaged or of an unknown kind."""
    kind = data.get("type") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    try:
        form = action_forms()[kind].model_validate(data)
    except ValidationError:
        return None
    action: Action[DesktopPoint] = KINDS[kind](
        **{field.name: getattr(form, json_name(field.name)) for field in fields(KINDS[kind])}
    )
    return action


@cache
def action_forms() -> dict[str, type[BaseModel]]:
    """Return a model of the JSON of every kind of action, made from its fields."""
    return {kind: _form(kind, action) for kind, action in KINDS.items()}


def _form(kind: str, action: Any) -> type[BaseModel]:
    members: dict[str, Any] = {"type": (Literal[kind], ...)}
    members |= {json_name(name): (_member(hint), ...) for name, hint in get_type_hints(action).items()}
    left_out = {field.name: field.default for field in fields(action) if field.name in OPTIONAL}
    members |= {name: (members[name][0], default) for name, default in left_out.items()}
    config = ConfigDict(allow_inf_nan=False)
    return create_model(action.__name__, __doc__=action.__doc__, __config__=config, **members)


def _member(hint: Any) -> Any:
    """A field's type in JSON. A type variable stands for a point."""
    if isinstance(hint, TypeVar):
        return _Point
    return _Point | None if any(isinstance(part, TypeVar) for part in get_args(hint)) else hint
