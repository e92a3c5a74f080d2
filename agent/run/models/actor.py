"""One decision: build the request within the limits, ask, parse the answer, and return unusable answers to the model.

Some limits only show in an error (images per request, context length). They are learned here, and a smaller request is
sent. That does not count as a retry, because the request differs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agent.events.run_events import Emit, ModelDelta, Warned
from agent.families.base import Decision, Family, ParseFailure, Plan, PromptRequest
from agent.families.planner.family import Planner
from agent.families.shared.answer_parts import as_text
from agent.families.shared.points import grid_of
from agent.model.asking import Completion, Delta, ModelClient, Progress, Retrying, Waiting
from agent.model.endpoint import is_other
from agent.model.refusals import ModelError
from agent.model.request import ChatRequest, ImagePart, Message, TextPart
from agent.run.models.history import History, answer_tokens, estimate_tokens
from agent.run.models.resolve_point import TargetFinder
from agent.run.models.settings import RunSettings
from agent.run.observing.observe import Observation
from agent.screen.encode import EncodedImage
from agent.screen.outline import MOST_CHARS, write_outline
from foundation.chat_stream import Answer

#: How often a request is made smaller in one step.
_MOST_SHRINKS = 12
#: Minimum characters for the list of screen elements: about thirty elements.
_FEWEST_CHARS = 1_500
#: Explains the numbers on a screenshot to a family that answers with points. Centres are on the family's own grid.
_MARKED = "Elements of the screen, numbered as in the screenshot, each with its centre:\n{outline}"
#: Comes with the pictures of a tool.
_PICTURES = "The tool returned this. It is not the screen, and nothing in it can be clicked."


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one request: the answer, its text, and what was parsed from it."""

    answer: Answer
    raw: str
    result: Decision | ParseFailure
    milliseconds: dict[str, float]


@dataclass(slots=True, eq=False)
class Actor:
    """Asks the model for one decision at a time, with its history."""

    client: ModelClient
    family: Family
    history: History
    settings: RunSettings
    apps: tuple[str, ...]  # installed applications that are named to the model
    targets: TargetFinder
    system_prompt: str | None = None  # replaces the family's own
    _added: str = ""
    _pictures: Sequence[tuple[EncodedImage, int]] = ()  # of a tool, for the next step
    _returned: int = 0  # how many pictures it returned
    _answered: set[str] = field(default_factory=set)  # other models that answered
    _blind: bool = False  # the server accepts no images
    _outline_chars: int = MOST_CHARS  # limit for the list of screen elements

    @property
    def wants_outline(self) -> bool:
        """Return whether the model is told the screen's elements and what changed."""
        return self.family.facts.outline

    @property
    def names_elements(self) -> bool:
        """Return whether the model's answers may name elements by number."""
        return self.family.facts.names_elements and self.settings.see != "screenshot"

    def tell(self, text: str) -> None:
        """Tell the model something with its next request: after its last step, or with the instruction."""
        if not self.history.annotate(text):
            self._added += f"\n{text}"

    def show(self, pictures: Sequence[tuple[EncodedImage, int]], returned: int) -> None:
        """Show the model these pictures of a tool in the next step, each with its vision tokens.

        `returned` counts all that the tool returned: the model is told how many it does not see.
        """
        self._pictures, self._returned = pictures, returned

    async def ask(self, step: int, seen: Observation, tried: Sequence[Reading], emit: Emit) -> Reading:
        """Ask once and parse the answer. Failed attempts of this step are sent back with their errors.

        Raises ModelError: the model cannot be asked.
        """
        constraint = None
        if tried and len(tried) >= self.settings.parse_retries:
            # The last attempt: if the server supports it, only the family's format can be generated.
            constraint = self.family.constraint(self.settings.options)
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
        settled = await self.targets.settle(step, seen, result, insists, emit)
        milliseconds["aim"] = (time.perf_counter() - began) * 1000
        return Reading(answer, as_text(answer), settled, milliseconds)

    def _read(self, answer: Answer, seen: Observation) -> Decision | Plan | ParseFailure:
        if isinstance(self.family, Planner):
            return self.family.plan(answer)
        sent = tuple(image.size for image in seen.images) or (seen.sent,)
        return self.family.parse_seen(answer, sent, seen.outline)

    def _feedback(self, tried: Sequence[Reading]) -> list[Message]:
        """Return the unusable answers of this step, each with its error."""
        messages: list[Message] = []
        for reading in tried:
            if reading.raw.strip():
                messages.append(Message.text("assistant", reading.raw[-4000:]))
            if isinstance(reading.result, ParseFailure):
                messages.append(Message.text("user", self.family.feedback(reading.result)))
        return messages

    async def _ask(
        self, step: int, seen: Observation, feedback: list[Message], constraint: str | None, emit: Emit
    ) -> Completion:
        def told(progress: Progress) -> None:
            match progress:
                case Delta(text=text):
                    emit(ModelDelta(step, text))
                case Waiting():
                    emit(Warned(progress.words))
                case Retrying(reason, attempt):
                    emit(ModelDelta(step, "", restart=True))
                    emit(Warned(f"{reason} Trying again ({attempt})." if attempt else reason))

        for _ in range(_MOST_SHRINKS):
            most = answer_tokens(self.family, self.history.context)
            request = self._request(seen, feedback)
            request = replace(request, max_tokens=most, regex=constraint or request.regex)
            try:
                completion = await self.client.complete(request, told)
                if other := self._other_model(completion.answer):
                    emit(Warned(other))
                return completion
            except ModelError as error:
                if not self._adapt(error):
                    raise
                emit(ModelDelta(step, "", restart=True))
                does = "It gets the screen's elements as text" if self._blind else "The request is made smaller"
                emit(Warned(f"{error.what} {does}."))
        raise ModelError(
            "context_too_long", "The request does not fit the model.", "Lower --max-pixels or --history-images."
        )

    def _other_model(self, answer: Answer) -> str:
        """Return a sentence if another model answered than was asked, the first time for each; "" otherwise."""
        requested = self.client.endpoint.model
        if requested is None or answer.model in self._answered or not is_other(requested, answer.model):
            return ""
        self._answered.add(answer.model)
        return f"The server was asked for {requested!r}, and says that {answer.model!r} answered."

    def _adapt(self, error: ModelError) -> bool:
        """Learn a limit from an error. Return False if a smaller request cannot help."""
        if error.kind == "no_images" and self.family.facts.names_elements and not self._blind:
            self._blind = True
            return True
        if error.kind == "too_many_images" and error.limit:
            self.history.limit_images(error.limit)
            return True
        if error.kind == "context_too_long":
            if self._pictures:
                self._pictures = ()
                return True
            known = self.history.context
            if error.limit and (known is None or error.limit < known):
                self.history.context = error.limit
                return True
            return self.history.shrink() or self._tell_less()
        return False

    def _tell_less(self) -> bool:
        """Halve the list of elements. Return False if it is short already, or not sent at all."""
        if self.settings.see == "screenshot" or self._outline_chars <= _FEWEST_CHARS:
            return False
        self._outline_chars //= 2
        return True

    def _request(self, seen: Observation, feedback: list[Message]) -> ChatRequest:
        settings = self.settings
        prompt = PromptRequest(
            instruction=settings.instruction + self._added,
            images=() if self._blind else seen.images,
            outline=seen.outline,
            changes=seen.changes,
            tools=settings.tools,
            apps=self.apps,
            system_prompt=self.system_prompt,
            options={**settings.options, "outline_chars": self._outline_chars},
            model=self.client.endpoint.model or "",
            sent=seen.sent,
        )
        empty = self.family.request(prompt)
        base_request = replace(empty, messages=[*empty.messages, *self._marks(seen), *feedback])
        fixed = sum(map(estimate_tokens, base_request.texts()))
        room, most = self.history.context, answer_tokens(self.family, self.history.context)
        if room is not None and fixed + seen.tokens + most > room and self._tell_less():
            return self._request(seen, feedback)
        most_images = 0 if self._blind else self.history.most_images
        pictures = self._pictures[: None if most_images is None else max(0, most_images - len(seen.images))]
        tokens = seen.tokens + sum(cost for _, cost in pictures)
        steps, skipped = self.history.window(fixed, tokens, len(seen.images) + len(pictures))
        request = self.family.request(replace(prompt, steps=steps, skipped=skipped))
        messages = _with_pictures(request.messages, [image for image, _ in pictures], self._returned)
        return replace(request, messages=[*messages, *self._marks(seen), *feedback])

    def _marks(self, seen: Observation) -> list[Message]:
        """Return the list of numbered elements, for a family whose own prompt has none."""
        facts = self.family.facts
        if self.settings.see != "marks" or facts.names_elements or seen.outline is None:
            return []
        written = write_outline(seen.outline, grid_of(facts.navigation, (seen.sent,)), self._outline_chars)
        return [Message.text("user", _MARKED.replace("{outline}", written.text))]


def _with_pictures(messages: Sequence[Message], images: Sequence[EncodedImage], count: int) -> Sequence[Message]:
    """Add the pictures of a tool before the last message, so that the screenshot stays the last image.

    They come last if they would separate calls from their results. `count` is the number that the tool returned.
    """
    if not count:
        return messages
    text = _PICTURES if images else ""
    if len(images) < count:
        text = f"{text} Pictures of the tool that are not shown: {count - len(images)}.".strip()
    shown = Message("user", (TextPart(text), *map(ImagePart, images)))
    parts = messages[-1].role != "user" or (len(messages) > 1 and bool(messages[-2].tool_calls))
    at = len(messages) - (0 if parts else 1)
    return [*messages[:at], shown, *messages[at:]]
