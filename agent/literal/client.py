"""The literal engine behind the `ModelClient` interface, so that a run uses it like any other model."""

import asyncio
import time
from collections.abc import Callable, Sequence

from agent.families.base import Call, PromptRequest
from agent.families.literal.family import FUNCTION, render
from agent.literal.engine import BadRequestError, Engine
from agent.literal.find.reader import WHO
from agent.literal.goals import Goal
from agent.model import engines as model_engine
from agent.model.asking import Completion, Delta, OnProgress
from agent.model.endpoint import Endpoint, Limits
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest
from agent.screen.ocr import data_folder
from foundation.chat_stream import Answer

#: The engine in this process. OCR works best on the full resolution: no pixel budget.
_ENDPOINT = Endpoint("literal", "", "mai-agent-literal", "literal", Limits(max_pixels=16_777_216))


class LiteralClient:
    """See `ModelClient`. Raises EnvironmentLacksError if tesseract's data is missing.

    Args:
        goals: what to do, whatever the instruction says; None to read the instruction.
    """

    def __init__(self, goals: Sequence[Goal] | None = None) -> None:
        data_folder(WHO)  # fail at once if tesseract's data is missing
        self._engine = Engine() if goals is None else Engine(understand=lambda _: list(goals))

    @property
    def endpoint(self) -> Endpoint:
        """See `ModelClient.endpoint`."""
        return _ENDPOINT

    async def discover(self, prefer: Callable[[str], object] = lambda _: False) -> Endpoint:  # noqa: ARG002
        """See `ModelClient.discover`."""
        return _ENDPOINT

    async def complete(self, request: ChatRequest, on_progress: OnProgress = lambda _: None) -> Completion:
        """See `ModelClient.complete`."""
        began = time.monotonic()
        text = await asyncio.to_thread(self._answer, request)  # OCR takes up to a second
        on_progress(Delta(text))
        took = (time.monotonic() - began) * 1000
        return Completion(Answer(text, finish_reason="stop"), took, took, len(request.images()))

    async def aclose(self) -> None:
        """See `ModelClient.aclose`."""

    def _answer(self, request: ChatRequest) -> str:
        prompt = request.native.get("prompt")
        try:
            if not isinstance(prompt, PromptRequest):
                raise BadRequestError("it is no request of the literal family")
            reply = self._engine.reply(prompt)
        except BadRequestError as error:
            raise ModelError("refused", f"The literal engine cannot answer this: {error}.", "") from error
        return render(reply.thought, Call(FUNCTION, reply.arguments))


def literal_engine(goals: Sequence[Goal] | None = None) -> model_engine.Engine:
    """Return the literal engine, see `LiteralClient`. Raises EnvironmentLacksError if tesseract's data is missing."""
    return model_engine.Engine("literal", _ENDPOINT, family="literal", client=LiteralClient(goals))
