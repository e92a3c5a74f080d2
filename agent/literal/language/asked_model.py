"""Asks a text model how to read an instruction that is beyond the grammar, or what a recipe's target is called now.

The model answers with goals as JSON, in the form of the dataclasses of `goals`. Its reading is used only if it invents
nothing, and omits no quotation and no number of the person's instruction.
"""

import dataclasses
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_type_hints

from typing_extensions import TypedDict

from agent.core.keys import UnknownKeyError, chord
from agent.families.base import ParseFailure
from agent.families.shared.answer_parts import take_apart
from agent.families.shared.lenient_json import first_object
from agent.literal.goals import QUOTED, Goal, Press, Question, Reading, Sayable, Target
from agent.literal.language.grammar import check_secrets
from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, check_final
from agent.literal.vocabulary.quotes import hide_quotes
from agent.model.asking import ModelClient, OnProgress
from agent.model.clients import MaskedClient, client_of
from agent.model.endpoint import Endpoint
from agent.model.request import ChatRequest, Message, Sampling
from foundation.chat_stream import Usage
from foundation.errors import MaiError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: Most goals of one reading.
_MOST = 12
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")

_SYSTEM = """\
You translate one instruction for a desktop computer into goals, which a program then reaches one after the other. The \
instruction may be in any language. Answer with one JSON object {{"goals": [...]}} of this JSON Schema and nothing else:
{schema}
Leave out optional fields of which the instruction says nothing. Copy texts to type, names of files and folders, and \
numbers exactly as they stand in the instruction; what is to be typed stands there in quotation marks. Name settings \
and applications in plain English ("dark mode", "text editor"); copy other labels as they stand. An empty string is \
the window in front, the default application or the place that is open. Add nothing that the instruction does not say. \
If any part of it cannot be said by these goals, answer {{"goals": []}}: a condition, a time to wait for, a text that \
you would have to make up, something that is not named, a question, a command for a shell, a password or a payment."""

_WHICH = """\
A recorded step of a task on a desktop computer cannot be done, because what it needs is not on the screen under its \
old name. You get the step and the names of the things of that kind that are there now. Answer with one JSON object \
{"same": NAME}: the name, exactly as listed, of the thing that does the same as the one of the step, so that only its \
words have changed. If none of them surely does, answer {"same": ""}."""


class BadReadingError(ValueError):
    """A model's answer is no reading of the instruction. The message is the reason, as a clause."""


class AskedModel:
    """A text model that reads instructions and repairs steps of recipes. Texts to other computers are masked."""

    def __init__(self, endpoint: Endpoint, mask: Callable[[str], str]) -> None:
        client = client_of(endpoint)
        self._client: ModelClient = client if endpoint.is_local else MaskedClient(client, mask)

    async def read(
        self, instruction: str, why_not: NotUnderstoodError, on_progress: OnProgress
    ) -> tuple[Reading, Usage]:
        """Return the model's reading. Raises NotUnderstoodError without a reading, or `why_not` if none is allowed."""
        if isinstance(why_not, FinalRefusalError):
            raise why_not
        check_final(instruction)
        form = _reading_form().json_schema()
        system = _SYSTEM.format(schema=json.dumps(form, separators=(",", ":")))
        try:
            name, answer, usage = await self._asked(system, instruction, form, on_progress)
        except MaiError as error:
            raise NotUnderstoodError(f"{why_not} No model could be asked how to read it: {error}") from error
        try:
            goals = _read_goals(_object_in(answer), instruction)
        except BadReadingError as error:
            raise NotUnderstoodError(f"{why_not} {name} read it, but {error}.") from error
        check_secrets(goals)
        if not goals:
            raise NotUnderstoodError(f"{why_not} {name} found no reading either.")
        return Reading(goals, name), usage

    async def choose(self, question: Question, on_progress: OnProgress) -> tuple[Target | None, str, Usage]:
        """Return the thing that a step of a recipe means now (None if unknown), the outcome in words, and the usage."""
        names = list(question.choices)
        form = {
            "type": "object",
            "properties": {"same": {"enum": [*names, ""]}},
            "required": ["same"],
            "additionalProperties": False,
        }
        step = f"Step: {question.words}\nThere now: {json.dumps(names, ensure_ascii=False)}"
        try:
            name, answer, usage = await self._asked(_WHICH, step, form, on_progress)
        except MaiError as error:
            return None, f"no model could be asked: {error}", Usage()
        try:
            same = json.loads(_object_in(answer)).get("same")
        except BadReadingError as error:
            return None, f"{name} was asked, but {error}", usage
        found = question.choices.get(same) if isinstance(same, str) else None
        outcome = f"{name} says that it is “{found.name}” now" if found else f"{name} does not know it either"
        return found, outcome, usage

    async def _asked(
        self, system: str, text: str, form: Mapping[str, Any], on_progress: OnProgress
    ) -> tuple[str, str, Usage]:
        """Return the model's name, its answer in the given form, and the usage. Raises MaiError."""
        endpoint = await self._client.discover()
        chat = (Message.text("system", system), Message.text("user", text))
        request = ChatRequest(chat, Sampling(), schema=form, template_arguments={"enable_thinking": False})
        done = await self._client.complete(request, on_progress)
        return endpoint.model or endpoint.host, take_apart(done.answer).text, done.answer.usage

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _object_in(text: str) -> str:
    found = first_object(text, closed=False)
    if isinstance(found, ParseFailure):
        raise BadReadingError("its answer holds no JSON")
    return json.dumps(found[0], ensure_ascii=False)


def _read_goals(answer: str, instruction: str) -> list[Goal]:
    """Return the goals of an answer; none if the model found none. Raises BadReadingError."""
    from pydantic import ValidationError

    try:
        reading: Any = _reading_form().validate_json(answer)
    except ValidationError as error:
        raise BadReadingError(f"it is not of the form that was asked for ({error.errors()[0]['msg']})") from error
    goals: list[Goal] = [goal for one in reading["goals"] for goal in one.values()]
    try:
        goals = [dataclasses.replace(one, keys=chord(one.keys)) if isinstance(one, Press) else one for one in goals]
    except UnknownKeyError as error:
        raise BadReadingError(f"it presses unknown keys: {error}") from error
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
        marks = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
        parts = [(held, marks[one.name]) for one, held in held if held != one.default]
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
