"""Reads a policy file, and says in a sentence what is wrong with one."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from agent.safety.rules import Allowed, PolicyPart, Rule
from foundation.errors import UsageError

#: What is told in other words than pydantic's, by its type of error.
_WORDS = {
    "extra_forbidden": "is not known (known are: {known})",
    "missing": "is missing: a rule needs name, action and reason",
    "tuple_type": "must be a list, or the name of one in [groups]",
    "model_type": "must be a table",
    "too_short": "is an empty list: leave it out if it is no condition",
    "string_pattern_mismatch": "must not be empty",
}


class PolicyFile(PolicyPart):
    """A whole policy file; `groups` are lists that rules call by name."""

    groups: dict[str, list[Any]] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    allowed: Allowed = Allowed()


def read_policy(data: Mapping[str, Any], where: str) -> PolicyFile:
    """A parsed policy file. Raises UsageError naming what is wrong, also where it has no rules."""
    groups = data.get("groups")
    try:
        read = PolicyFile.model_validate(data, context=groups if isinstance(groups, dict) else {})
    except ValidationError as failed:
        raise UsageError(_sentence(failed.errors()[0], where), "See docs/safety.md for its form.") from failed
    if not read.rules:  # it would look like protection, and nothing would ever be asked
        raise UsageError(
            f"There is no rule in {where}.",
            "Start from a copy of the shipped one, or use --approve never to be asked nothing.",
        )
    return read


def _sentence(error: Mapping[str, Any], where: str) -> str:
    """What is wrong, with its place in the file."""
    schema: type[BaseModel] = PolicyFile
    loc = list(error["loc"])
    if loc[0] == "rules" and len(loc) > 1:
        where, schema, loc = f"rule {loc[1] + 1} of {where}", Rule, loc[2:]
    elif loc[0] == "allowed" and len(loc) > 1:
        where, schema, loc = f"[allowed] of {where}", Allowed, loc[1:]
    message = error["msg"].replace("Value error, ", "is wrong: ").replace("Input should be", "must be")
    known = ", ".join(sorted(field.alias or name for name, field in schema.model_fields.items()))
    what = _WORDS.get(error["type"], message).replace("{known}", known)
    return f"In {where}, {repr(loc[0]) if loc else 'something'} {what}."
