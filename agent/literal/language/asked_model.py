"""Asks a text model how to read an instruction that is beyond the grammar, or what a recipe's target is called now."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from agent.families.base import ParseFailure
from agent.families.shared.answer_parts import as_text, split_thought
from agent.families.shared.lenient_json import first_object
from agent.literal.goals import Question, Reading, Target
from agent.literal.language.goal_json import BadReadingError, read_goals, schema
from agent.literal.language.grammar import check_secrets
from agent.literal.language.refusals import check_final
from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError
from agent.model.asking import ModelClient, OnProgress
from agent.model.clients import MaskedClient, client_of
from agent.model.endpoint import Endpoint
from agent.model.request import ChatRequest, Message, Sampling
from foundation.chat_stream import Usage
from foundation.errors import MaiError

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


class AskedModel:
    """A text model that reads instructions and repairs steps of recipes.

    Args:
        endpoint: where it is served.
        mask: masks secrets in what leaves this computer.
    """

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
        form = schema()
        system = _SYSTEM.format(schema=json.dumps(form, separators=(",", ":")))
        try:
            name, answer, usage = await self._asked(system, instruction, form, on_progress)
        except MaiError as error:
            raise NotUnderstoodError(f"{why_not} No model could be asked how to read it: {error}") from error
        try:
            goals = read_goals(_object_in(answer), instruction)
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
        return endpoint.model or endpoint.host, as_text(done.answer), done.answer.usage

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _object_in(text: str) -> str:
    _, rest = split_thought(text)
    found = ParseFailure("empty", "") if rest is None else first_object(rest, closed=False)
    if isinstance(found, ParseFailure):
        raise BadReadingError("its answer holds no JSON")
    return json.dumps(found[0], ensure_ascii=False)
