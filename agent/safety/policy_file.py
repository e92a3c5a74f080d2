"""The form of a policy file, checked when it is read.

A rule that could never match would look like protection and be none, so it is refused.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from agent.actions import Button
from agent.geometry import Region
from agent.keys import chord
from agent.safety.rules import Allowed, Rule
from foundation.errors import UsageError

#: The types of actions that a rule can speak of, as `actions.to_json` names them.
_ActionName: TypeAlias = Literal[
    "click", "long_press", "move", "drag", "scroll", "type", "key", "hold", "open", "call_tool"
]
_POINTING = frozenset({"click", "long_press", "move", "drag", "scroll"})
#: Which conditions say something about which actions.
_CONDITIONS: dict[str, frozenset[str]] = {
    "keys": frozenset({"key", "hold"}),
    "patterns": frozenset({"type", "open", "call_tool"}),
    "windows": _POINTING | {"type", "key", "hold"},
    "words": _POINTING,
    "buttons": frozenset({"click"}),
    "except": frozenset({"open", "call_tool"}),
}

#: What is told in other words than pydantic's, by its type of error.
_WORDS = {
    "extra_forbidden": "is not known (known are: {known})",
    "missing": "is missing: a rule needs name, action and reason",
    "tuple_type": "must be a list, or the name of one in [groups]",
    "model_type": "must be a table",
    "too_short": "is an empty list: leave it out if it is no condition",
    "string_pattern_mismatch": "must not be empty",
    **dict.fromkeys(("int_type", "greater_than_equal"), "must be [left, top, width, height] in whole numbers"),
}

T = TypeVar("T")


def _pattern(written: Any) -> re.Pattern[str]:
    try:
        return re.compile(written, re.IGNORECASE)
    except (TypeError, re.error) as error:
        raise ValueError(f"{written!r} is no regular expression ({error})") from error


def _chord(written: Any) -> frozenset[str]:
    """A chord as a person may write it, a list of names, in canonical names."""
    if not isinstance(written, list) or not written:
        raise ValueError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return frozenset("enter" if name == "kp_enter" else name for name in chord([str(one) for one in written]))


def _named(written: Any, info: ValidationInfo) -> Any:
    """The list of [groups] that is called by name; any other name stays, and is refused as no list."""
    return info.context.get(written, written) if isinstance(written, str) and info.context else written


_Text = Annotated[str, Field(pattern=r"\S")]
#: A condition; an empty list is a mistake, because it would be none.
_Some = Annotated[tuple[T, ...], Field(min_length=1), BeforeValidator(_named)]
_Patterns = _Some[Annotated[re.Pattern[str], BeforeValidator(_pattern)]]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _RuleForm(_Form):
    """See `Rule`, whose names the fields have; the file's own names are aliases."""

    name: _Text
    actions: Annotated[
        frozenset[_ActionName],
        Field(alias="action", min_length=1),
        BeforeValidator(lambda written: [written] if isinstance(written, str) else written),
    ]
    reason: _Text
    keys: _Some[Annotated[frozenset[str], BeforeValidator(_chord)]] = ()
    patterns: _Patterns = ()
    windows: _Patterns = ()
    words: _Patterns = ()
    buttons: _Some[Button] = ()
    excepted: Annotated[tuple[_Text, ...], Field(alias="except"), BeforeValidator(_named)] = ()
    always: StrictBool = True

    @model_validator(mode="after")
    def _no_idle_condition(self) -> Self:
        """Refuse a condition that could never hold for one of the rule's actions."""
        for condition, about in _CONDITIONS.items():
            given = {"except": "excepted"}.get(condition, condition) in self.model_fields_set
            if given and (silent := sorted(self.actions - about)):
                raise ValueError(f"{condition} say nothing about the action {silent[0]!r}")
        return self


class _AllowedForm(_Form):
    windows: _Patterns = ()
    region: tuple[StrictInt, StrictInt, Annotated[StrictInt, Field(ge=1)], Annotated[StrictInt, Field(ge=1)]] | None = (
        None
    )


class _PolicyForm(_Form):
    groups: dict[str, list[Any]] = {}
    rules: list[_RuleForm] = []
    allowed: _AllowedForm = _AllowedForm()


def read_policy(data: Mapping[str, Any], where: str) -> tuple[tuple[Rule, ...], Allowed]:
    """The rules and limits of a parsed policy file. Raises UsageError naming what is wrong."""
    groups = data.get("groups")
    try:
        form = _PolicyForm.model_validate(data, context=groups if isinstance(groups, dict) else {})
    except ValidationError as failed:
        raise UsageError(_sentence(failed.errors()[0], where), "See docs/safety.md for its form.") from failed
    region = form.allowed.region
    return tuple(Rule(**dict(iter(entry))) for entry in form.rules), Allowed(
        form.allowed.windows, None if region is None else Region(*region)
    )


def _sentence(error: Mapping[str, Any], where: str) -> str:
    """What is wrong, with its place in the file."""
    schema: type[BaseModel] = _PolicyForm
    loc = list(error["loc"])
    if loc[0] == "rules" and len(loc) > 1:
        where, schema, loc = f"rule {loc[1] + 1} of {where}", _RuleForm, loc[2:]
    elif loc[0] == "allowed" and len(loc) > 1:
        where, schema, loc = f"[allowed] of {where}", _AllowedForm, loc[1:]
    message = error["msg"].replace("Value error, ", "is wrong: ").replace("Input should be", "must be")
    known = ", ".join(sorted(field.alias or name for name, field in schema.model_fields.items()))
    what = _WORDS.get(error["type"], message).replace("{known}", known)
    return f"In {where}, {repr(loc[0]) if loc else 'something'} {what}."
