"""Actions as a bundle holds them: a model of every kind's JSON, and the way back to an action."""

from dataclasses import fields
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, create_model

from agent.core.actions import KINDS, OPTIONAL, Action, json_name
from agent.core.geometry import DesktopPoint

_Point: TypeAlias = Annotated[tuple[float, float], AfterValidator(lambda pair: DesktopPoint(*pair))]


def read_action(data: Any) -> Action[DesktopPoint] | None:
    """An action as `actions.to_json` wrote it; None for what is damaged, or of a kind that is not known."""
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
    """A model of the JSON of every kind of action, made from its fields."""
    return {kind: _form(kind, action) for kind, action in KINDS.items()}


def _form(kind: str, action: Any) -> type[BaseModel]:
    members: dict[str, Any] = {"type": (Literal[kind], ...)}
    members |= {json_name(name): (_member(hint), ...) for name, hint in get_type_hints(action).items()}
    left_out = {field.name: field.default for field in fields(action) if field.name in OPTIONAL}
    members |= {name: (members[name][0], default) for name, default in left_out.items()}
    config = ConfigDict(allow_inf_nan=False)
    return create_model(action.__name__, __doc__=action.__doc__, __config__=config, **members)


def _member(hint: Any) -> Any:
    """A field's type in JSON: the points of an action are of the type that it is generic over."""
    if isinstance(hint, TypeVar):
        return _Point
    return _Point | None if any(isinstance(part, TypeVar) for part in get_args(hint)) else hint
