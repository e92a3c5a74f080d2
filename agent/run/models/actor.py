"""One decision: build the request within the limits, ask, read the answer, and give unusable answers back.

Limits that only show in a refusal (images per request, context) are learned here and the request is made again
smaller; that is no retry, because it is another request.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.events.run_events import ModelDelta, Warned
from agent.events.sink import Emit
from agent.families.base import Decision, Family, ParseFailure, Plan, PromptRequest
from agent.families.planner.family import Planner
from agent.families.shared.json_calls import as_text
from agent.families.shared.points import grid_of
from agent.model.asking import Completion, Delta, ModelClient, Progress, Retrying, Silence
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, Message
from agent.run.budgets import answer_tokens
from agent.run.locate.targets import TargetFinder
from agent.run.models.history import History, estimate_tokens
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observation
from agent.screen.outline_text import MOST_CHARS, write_outline
from foundation.chat_stream import Answer

#: Requests are made smaller at most this often in one step.
_MOST_SHRINKS = 12
#: The elements of a screen are told in at least so many characters: some thirty of them.
_FEWEST_CHARS = 1_500
#: What the numbers on a screenshot are, for a family that answers with points: centres are told on its own grid.
_MARKED = "Elements of the screen, numbered as in the screenshot, each with its centre:\n{outline}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of asking once: the answer, the same as one text, and its reading."""

    answer: Answer
    raw: str
    result: Decision | ParseFailure
    milliseconds: dict[str, float]


class Actor:
    """Asks the model for one decision at a time, with the history that it keeps."""

    def __init__(
        self,
        client: ModelClient,
        family: Family,
        history: History,
        settings: RunSettings,
        apps: tuple[str, ...],
        system_prompt: str | None = None,
        targets: TargetFinder | None = None,
    ) -> None:
        self._client = client
        self._family = family
        self._history = history
        self._settings = settings
        self._apps = apps
        self._system_prompt = system_prompt
        self._targets = targets
        self._added = ""
        self._blind = False  # the server takes no images
        self._outline_chars = MOST_CHARS  # how much of the screen's elements is told

    @property
    def wants_outline(self) -> bool:
        """Whether the model is told of the screen's elements, and of what changed."""
        return self._family.facts.outline

    @property
    def names_elements(self) -> bool:
        """Whether its answers may name elements of the screen by their numbers."""
        return self._family.facts.names_elements and self._settings.see != "screenshot"

    def tell(self, text: str) -> None:
        """Let the model know something with the next request: after its last step, or with the instruction."""
        if not self._history.annotate(text):
            self._added += f"\n{text}"

    async def ask(self, step: int, seen: Observation, tried: Sequence[Reading], emit: Emit) -> Reading:
        """Ask once, and read the answer; what was tried before in this step goes back with what was wrong with it.

        Raises ModelError: the model cannot be asked.
        """
        constraint = None
        if tried and len(tried) >= self._settings.parse_retries:
            # The last try: where the server can, it may only answer in the format.
            constraint = self._family.constraint(self._settings.options)
        prepared = time.perf_counter()
        completion = await self._ask(step, seen, self._feedback(tried), constraint, emit)
        began = time.perf_counter()
        answer = completion.answer
        result = self._read(answer, seen)
        parsed = (time.perf_counter() - began) * 1000
        if isinstance(result, ParseFailure) and answer.finish_reason == "length":
            result = replace(result, kind="truncated", message=f"{result.message}; the token limit cut it off")
        milliseconds = {
            "prompt": (began - prepared) * 1000 - completion.total_ms,
            "model": completion.total_ms,
            "parse": parsed,
        }
        if completion.ttft_ms is not None:
            milliseconds["ttft"] = completion.ttft_ms
        if isinstance(result, ParseFailure):
            return Reading(answer, as_text(answer), result, milliseconds)
        began = time.perf_counter()
        insists = any(isinstance(one.result, ParseFailure) and one.result.kind == "mismatch" for one in tried)
        settled = await self._settle(step, seen, result, insists, emit)
        milliseconds["aim"] = (time.perf_counter() - began) * 1000
        return Reading(answer, as_text(answer), settled, milliseconds)

    def _read(self, answer: Answer, seen: Observation) -> Decision | Plan | ParseFailure:
        if isinstance(self._family, Planner):
            return self._family.plan(answer)
        sent = tuple(image.size for image in seen.images) or (seen.sent,)
        return self._family.parse_seen(answer, sent, seen.outline)

    async def _settle(
        self, step: int, seen: Observation, result: Decision | Plan, insists: bool, emit: Emit
    ) -> Decision | ParseFailure:
        """What was decided, with the points at which it is to be carried out."""
        if self._targets is not None:
            return await self._targets.settle(step, seen, result, insists, emit)
        if isinstance(result, Decision):
            return result
        return ParseFailure("no_action", "it names a place, and no grounder is there to find it", result.thought)

    def _feedback(self, tried: Sequence[Reading]) -> list[Message]:
        """Unusable answers of this step, each with what was wrong with it."""
        messages: list[Message] = []
        for reading in tried:
            if reading.raw.strip():
                messages.append(Message.text("assistant", reading.raw[-4000:]))
            if isinstance(reading.result, ParseFailure):
                messages.append(Message.text("user", self._family.feedback(reading.result)))
        return messages

    async def _ask(
        self, step: int, seen: Observation, feedback: list[Message], constraint: str | None, emit: Emit
    ) -> Completion:
        def told(progress: Progress) -> None:
            match progress:
                case Delta(text=text):
                    emit(ModelDelta(step, text))
                case Silence(seconds):
                    emit(Warned(f"The model has been silent for {seconds:.0f} seconds; still waiting."))
                case Retrying(reason, attempt):
                    emit(ModelDelta(step, "", restart=True))
                    emit(Warned(f"{reason} Trying again ({attempt})." if attempt else reason))

        for _ in range(_MOST_SHRINKS):
            most = answer_tokens(self._family, self._history.context)
            request = self._request(seen, feedback)
            request = replace(request, max_tokens=most, regex=constraint or request.regex)
            try:
                return await self._client.complete(request, told)
            except ModelError as error:
                if not self._adapt(error):
                    raise
                emit(ModelDelta(step, "", restart=True))
                does = "It is told the elements of the screen as text" if self._blind else "The request is made smaller"
                emit(Warned(f"{error.what} {does}."))
        raise ModelError(
            "context_too_long", "The request does not fit the model.", "Lower --max-pixels or --history-images."
        )

    def _adapt(self, error: ModelError) -> bool:
        """Learn a limit from a refusal; False when asking smaller cannot help."""
        if error.kind == "no_images" and self._family.facts.names_elements and not self._blind:
            self._blind = True
            return True
        if error.kind == "too_many_images" and error.limit:
            self._history.limit_images(error.limit)
            return True
        if error.kind == "context_too_long":
            known = self._history.context
            if error.limit and (known is None or error.limit < known):
                self._history.limit_context(error.limit)
                return True
            return self._history.shrink() or self._tell_less()
        return False

    def _tell_less(self) -> bool:
        """Tell fewer elements; False where few are told already, or none."""
        if self._settings.see == "screenshot" or self._outline_chars <= _FEWEST_CHARS:
            return False
        self._outline_chars //= 2
        return True

    def _request(self, seen: Observation, feedback: list[Message]) -> ChatRequest:
        settings = self._settings
        prompt = PromptRequest(
            instruction=settings.instruction + self._added,
            images=() if self._blind else seen.images,
            outline=seen.outline,
            changes=seen.changes,
            tools=settings.tools,
            apps=self._apps,
            system_prompt=self._system_prompt,
            options={**settings.options, "outline_chars": self._outline_chars},
            model=self._client.endpoint.model or "",
            sent=seen.sent,
        )
        empty = self._family.request(prompt)
        whole = replace(empty, messages=[*empty.messages, *self._marks(seen), *feedback])
        fixed = sum(map(estimate_tokens, whole.texts()))
        room, most = self._history.context, answer_tokens(self._family, self._history.context)
        if room is not None and fixed + seen.tokens + most > room and self._tell_less():
            return self._request(seen, feedback)
        window = self._history.window(fixed, seen.tokens, len(seen.images))
        request = self._family.request(replace(prompt, steps=window.steps, skipped=window.skipped))
        return replace(request, messages=[*request.messages, *self._marks(seen), *feedback])

    def _marks(self, seen: Observation) -> list[Message]:
        """For a family that does not speak of elements itself: what the numbers on its screenshot are."""
        facts = self._family.facts
        if self._settings.see != "marks" or facts.names_elements or seen.outline is None:
            return []
        written = write_outline(seen.outline, grid_of(facts.navigation, (seen.sent,)), self._outline_chars)
        return [Message.text("user", _MARKED.replace("{outline}", written.text))]
