"""Goals as JSON, for a model that reads an instruction: their schema, and the strict way back.

Both follow from the dataclasses of `goals`. A model's reading is used only if nothing in it is made up and nothing that
the person wrote as it is, a quotation or a number, is left out.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_type_hints

from typing_extensions import TypedDict

from agent.core.keys import UnknownKeyError, chord
from agent.literal.goals import QUOTED, SAID, Goal, Press, Sayable, Target
from agent.literal.vocabulary.quotes import hide_quotes

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Most goals of one reading.
_MOST = 12
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


class BadReadingError(ValueError):
    """A model's answer is no reading of the instruction. The message is the reason, as a clause."""


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of a reading."""
    return _reading_form().json_schema()


def read_goals(answer: str, instruction: str) -> list[Goal]:
    """Return the goals of an answer; none if the model found none. Raises BadReadingError."""
    from pydantic import ValidationError

    try:
        reading: Any = _reading_form().validate_json(answer)
    except ValidationError as error:
        raise BadReadingError(f"it is not of the form that was asked for ({error.errors()[0]['msg']})") from error
    goals: list[Goal] = [goal for one in reading["goals"] for goal in one.values()]
    goals = [dataclasses.replace(goal, keys=_chord(goal)) if isinstance(goal, Press) else goal for goal in goals]
    if goals:
        _check(goals, unicodedata.normalize("NFC", instruction))
    return goals


def _check(goals: Sequence[Goal], instruction: str) -> None:
    """Raise BadReadingError if the goals say more or less than the instruction does."""
    quoted: list[str] = []
    rest = hide_quotes(instruction, quoted)
    rest = re.sub("\x00\\d+\x00", " ", rest)
    required, written = _said_in(goals)
    for marker, text in required:
        if marker is QUOTED and text not in quoted:
            raise BadReadingError(f"it would type “{text}”, and you wrote that nowhere in quotation marks")
        if text not in instruction:
            raise BadReadingError(f"it names “{text}”, and you did not")
    for quotation in quoted:
        if not any(quotation.strip() in text for text in written):
            raise BadReadingError(f"it leaves out “{quotation}”")
    named, meant = _numbers([rest, *quoted]), _numbers(written)
    if lost := _numbers([rest]) - meant:
        raise BadReadingError(f"it leaves out the number {lost.pop():g}")
    if named and (new := meant - named):
        raise BadReadingError(f"it names the number {new.pop():g}, and you did not")


def _said_in(value: Any, marker: str | None = None) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the texts that the instruction must contain, with their markers; and all texts and numbers in goals."""
    required: list[tuple[str, str]] = [(marker, value)] if marker and value else []
    written = [value] if isinstance(value, str) else []
    parts: list[tuple[Any, str | None]] = []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value), include_extras=True)
        held = ((one, getattr(value, one.name)) for one in dataclasses.fields(value))
        parts = [(held, _marker(hints[one.name])) for one, held in held if held != one.default]
    elif isinstance(value, list | tuple):
        parts = [(item, None) for item in value]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        written = [f"{value:g}"]
    for part, marked in parts:
        more_said, more_written = _said_in(part, marked)
        required, written = required + more_said, written + more_written
    return required, written


def _numbers(texts: Sequence[str]) -> set[float]:
    return {abs(float(found.replace(",", "."))) for text in texts for found in _NUMBER.findall(text)}


def _chord(goal: Press) -> tuple[str, ...]:
    try:
        return chord(goal.keys)
    except UnknownKeyError as error:
        raise BadReadingError(f"it presses no keys that there are: {error}") from error


@cache
def _reading_form() -> "TypeAdapter[Any]":
    """Return the form of a reading: goals as objects with their kind as the only key, in the form of its dataclass."""
    from pydantic import ConfigDict, Field, TypeAdapter

    strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    for kind in (*get_args(Sayable), Target):
        kind.__pydantic_config__ = strict

    def form(name: str, fields: dict[str, Any]) -> Any:
        typed: Any = TypedDict
        made = typed(name, fields)
        made.__pydantic_config__ = strict
        return made

    named: Any = Union[tuple(form(f"To{kind.__name__}", {kind.__name__: kind}) for kind in get_args(Sayable))]  # noqa: UP007
    return TypeAdapter(form("Reading", {"goals": Annotated[list[named], Field(max_length=_MOST)]}))


def _marker(hint: Any) -> str | None:
    return next((mark for mark in getattr(hint, "__metadata__", ()) if mark in (SAID, QUOTED)), None)
