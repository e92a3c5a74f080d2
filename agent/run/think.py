"""One decision: build the request within the limits, ask, read the answer, and give unusable answers back.

Limits that only show in a refusal (images per request, context) are learned here and the request is made again
smaller; that is no retry, because it is another request.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.families.base import (
    Decision,
    Family,
    Message,
    ParseFailure,
    PastStep,
    PromptRequest,
    TextPart,
)
from agent.model.client import ChatClient, Completion, Delta, Retrying, Silence, Usage
from agent.model.refusals import ModelError
from agent.run.events import ModelDelta, Warned
from agent.run.history import History, estimate_tokens
from agent.run.observe import Observation
from agent.run.settings import RunSettings

#: The least room that an answer needs: a short thought and a call.
_MIN_ANSWER_TOKENS = 256
#: Requests are made smaller at most this often in one step.
_MOST_SHRINKS = 12


@dataclass(frozen=True, slots=True)
class Thought:
    """What came of asking once: the answer and its reading."""

    raw: str
    result: Decision | ParseFailure
    usage: Usage
    milliseconds: dict[str, float]
    images_sent: int
    last: bool  # no further try follows


ThinkItem: TypeAlias = ModelDelta | Warned | Thought


def answer_tokens(family: Family, context: int | None) -> int:
    """Room for the answer: what the family asks for, at most a quarter of a small context."""
    wanted = family.facts.sampling.max_tokens
    return wanted if context is None else min(wanted, max(_MIN_ANSWER_TOKENS, context // 4))


class Mind:
    """Asks the model for one decision at a time, with the history that it keeps."""

    def __init__(
        self, client: ChatClient, family: Family, history: History, settings: RunSettings, apps: tuple[str, ...]
    ) -> None:
        self._client = client
        self._family = family
        self._history = history
        self._settings = settings
        self._apps = apps
        self._added = ""

    def tell(self, text: str) -> None:
        """Let the model know something with the next request: after its last step, or with the instruction."""
        if not self._history.annotate(text):
            self._added += f"\n{text}"

    async def decide(self, step: int, seen: Observation) -> AsyncIterator[ThinkItem]:
        """Ask until an answer can be read or the tries are used up; the last `Thought` has `last` set.

        Raises:
            ModelError: the model cannot be asked.
        """
        feedback: list[Message] = []
        for attempt in range(self._settings.parse_retries + 1):
            final = attempt == self._settings.parse_retries
            constraint = None
            if attempt and final:  # the last try: where the server can, it may only answer in the format
                constraint = self._family.constraint(self._settings.style, self._settings.thinking)
            prepared = time.perf_counter()
            completion: Completion | None = None
            async for item in self._ask(step, seen, feedback, constraint):
                if isinstance(item, Completion):
                    completion = item
                else:
                    yield item
            assert completion is not None, "a stream ends with its completion"
            began = time.perf_counter()
            result = self._family.parse(completion.text, seen.image.size)
            parsed = (time.perf_counter() - began) * 1000
            if isinstance(result, ParseFailure) and completion.finish_reason == "length":
                result = replace(result, kind="truncated", message=f"{result.message}; the token limit cut it off")
            last = final or isinstance(result, Decision)
            milliseconds = {
                "prompt": (began - prepared) * 1000 - completion.total_ms,
                "model": completion.total_ms,
                "parse": parsed,
            }
            if completion.ttft_ms is not None:
                milliseconds["ttft"] = completion.ttft_ms
            yield Thought(completion.text, result, completion.usage, milliseconds, completion.images_sent, last)
            if isinstance(result, Decision):
                return
            if completion.text.strip():
                feedback.append(Message.text("assistant", completion.text[-4000:]))
            feedback.append(Message.text("user", self._family.feedback(result)))

    async def _ask(
        self, step: int, seen: Observation, feedback: list[Message], constraint: str | None
    ) -> AsyncIterator[ModelDelta | Warned | Completion]:
        for _ in range(_MOST_SHRINKS):
            messages = self._messages(seen, feedback)
            most = answer_tokens(self._family, self._history.context)
            try:
                async for item in self._client.stream(messages, self._family.facts.sampling, most, constraint):
                    match item:
                        case Delta(text):
                            yield ModelDelta(step, text)
                        case Silence(seconds):
                            yield Warned(f"The model has been silent for {seconds:.0f} seconds; still waiting.")
                        case Retrying(reason, attempt):
                            yield ModelDelta(step, "", restart=True)
                            yield Warned(f"{reason} Trying again ({attempt})." if attempt else reason)
                        case Completion():
                            yield item
                return
            except ModelError as error:
                if not self._adapt(error):
                    raise
                yield ModelDelta(step, "", restart=True)
                yield Warned(f"{error.what} The request is made smaller.")
        raise ModelError(
            "context_too_long", "The request does not fit the model.", "Lower --max-pixels or --history-images."
        )

    def _adapt(self, error: ModelError) -> bool:
        """Learn a limit from a refusal; False when asking smaller cannot help."""
        if error.kind == "too_many_images" and error.limit:
            self._history.limit_images(error.limit)
            return True
        if error.kind == "context_too_long":
            known = self._history.context
            if error.limit and (known is None or error.limit < known):
                self._history.limit_context(error.limit)
                return True
            return self._history.shrink()
        return False

    def _messages(self, seen: Observation, feedback: list[Message]) -> list[Message]:
        empty = self._request(seen, (), 0)
        fixed = sum(
            estimate_tokens(part.text)
            for message in [*self._family.messages(empty), *feedback]
            for part in message.parts
            if isinstance(part, TextPart)
        )
        window = self._history.window(fixed, seen.tokens)
        return [*self._family.messages(self._request(seen, window.steps, window.skipped)), *feedback]

    def _request(self, seen: Observation, steps: tuple[PastStep, ...], skipped: int) -> PromptRequest:
        settings = self._settings
        return PromptRequest(
            instruction=settings.instruction + self._added,
            current=seen.image,
            steps=steps,
            skipped=skipped,
            tools=settings.tools,
            apps=self._apps,
            style=settings.style,
            thinking=settings.thinking,
            system_prompt=settings.system_prompt,
        )
