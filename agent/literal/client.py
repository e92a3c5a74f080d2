"""The literal engine behind the `ModelClient` interface, so that a run uses it like any other model."""

import asyncio
import time
from collections.abc import Callable, Sequence

from agent.core.notes import without_notes
from agent.families.base import Call, PromptRequest
from agent.families.literal.family import FUNCTION, render
from agent.literal.engine import Engine, by_grammar
from agent.literal.goals import Goal, Question, Reading, Target
from agent.literal.language.asked_model import AskedModel
from agent.literal.language.sentences import NotUnderstoodError
from agent.model import engines as model_engine
from agent.model.asking import Completion, Delta, OnProgress
from agent.model.endpoint import Endpoint, EngineChoice, Limits
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest
from agent.screen.ocr import data_folder
from agent.screen.outline import Outline
from foundation.chat_stream import Answer, Usage

#: The engine in this process. OCR works best on the full resolution: a budget of 16.8 Mpx.
_ENDPOINT = Endpoint("literal", "", "mai-agent-literal", "literal", Limits(max_pixels=16_777_216))


class LiteralClient:
    """The built-in engine as a client of a model. Raises EnvironmentLacksError if tesseract's data is missing.

    With `goals`, these are done whatever the instruction says. `model` reads what is beyond the grammar, and finds
    new targets for recipe steps, which go into `repairs` by step number.
    """

    def __init__(
        self,
        goals: Sequence[Goal] | None = None,
        model: AskedModel | None = None,
        repairs: dict[int, Target] | None = None,
    ) -> None:
        data_folder("The literal engine")  # fail at once if tesseract's data is missing
        self._model, self._reads = model, goals is None
        self._asked: dict[str, Reading | NotUnderstoodError] = {}  # instructions as read so far
        self._repairs = repairs
        understand = self._understand if goals is None else lambda _: Reading(list(goals))
        self._engine = Engine(understand=understand, repairs=None if model is None else repairs)

    @property
    def endpoint(self) -> Endpoint:
        """The engine, as an endpoint of its own kind."""
        return _ENDPOINT

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:  # noqa: ARG002
        """Return the endpoint: there is nothing to ask."""
        return _ENDPOINT

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """Decide the next step."""
        began = time.monotonic()
        prompt = request.native.get("prompt")
        if not isinstance(prompt, PromptRequest):
            why = "The literal engine cannot answer this: it is no request of the literal family."
            raise ModelError("refused", why, "")
        usage = Usage()
        if self._model is not None and self._reads:
            usage = await self._ask(self._model, without_notes(prompt.instruction), on_progress)
        elif self._model is not None and (question := self._engine.question) is not None:
            usage = await self._repair(self._model, question, on_progress)
        reply = await asyncio.to_thread(self._engine.reply, prompt)  # OCR takes up to a second
        text = render(reply.thought, Call(FUNCTION, reply.arguments))
        on_progress(Delta(text))
        took = (time.monotonic() - began) * 1000
        return Completion(Answer(text, finish_reason="stop", usage=usage), took, took, len(request.images()))

    def awaited(self) -> Callable[[Outline], bool] | None:
        """Return a check for the expected effect of the last step; None if no effect is awaited."""
        return self._engine.shows_awaited if self._engine.awaits else None

    async def aclose(self) -> None:
        """Close the client of the model, if there is one."""
        if self._model is not None:
            await self._model.aclose()

    async def _ask(self, model: AskedModel, instruction: str, on_progress: OnProgress) -> Usage:
        """Ask the model once for each instruction that the grammar does not understand. Return the tokens used."""
        if not instruction or instruction in self._asked:
            return Usage()
        try:
            self._asked[instruction] = await asyncio.to_thread(by_grammar, instruction)
        except NotUnderstoodError as why_not:
            try:
                self._asked[instruction], usage = await model.read(instruction, why_not, on_progress)
                return usage
            except NotUnderstoodError as error:
                self._asked[instruction] = error
        return Usage()

    async def _repair(self, model: AskedModel, question: Question, on_progress: OnProgress) -> Usage:
        """Ask the model which thing a step of a recipe means now."""
        found, question.outcome, usage = await model.choose(question, on_progress)
        if found is not None and self._repairs is not None:
            self._repairs[question.number] = found
        return usage

    def _understand(self, instruction: str) -> Reading:
        """Raises NotUnderstoodError."""
        reading = self._asked.get(instruction) or by_grammar(instruction)
        if isinstance(reading, NotUnderstoodError):
            raise reading
        return reading


def literal_engine(
    choice: EngineChoice,
    mask: Callable[[str], str] = lambda text: text,
    goals: Sequence[Goal] | None = None,
    repairs: dict[int, Target] | None = None,
) -> model_engine.Engine:
    """Return the literal engine, see `LiteralClient`. A model whose address is named gets texts with secrets masked.

    Raises EnvironmentLacksError: tesseract's data is missing, or something that a named cloud provider needs.
    UsageError: the address is invalid.
    """
    model, remark = None, ""
    if choice.url is not None:
        named = model_engine.named_endpoint(choice).endpoint
        sent = f"What the literal engine does not understand is sent to {named.host}, as text."
        model, remark = AskedModel(named, mask), "" if named.is_local else sent
    client = LiteralClient(goals, model, {} if repairs is None and goals is not None else repairs)
    return model_engine.Engine(
        "literal", _ENDPOINT, remark=remark, family="literal", client=client, awaited=client.awaited
    )  # fmt: skip
