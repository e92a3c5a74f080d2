"""Asks a model about a screenshot, and maps its decision to the screen. Nothing is touched."""

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agent.api.results import check_text
from agent.core.actions import Action, describe, map_points, points_of
from agent.core.actions import to_json as action_json
from agent.core.geometry import DesktopPoint, Size, Viewport
from agent.families.base import Decision, ParseFailure, PromptRequest
from agent.families.shared.answer_parts import as_text
from agent.literal.client import literal_engine
from agent.model.asking import Completion, Patience
from agent.model.endpoint import is_other
from agent.model.engines import Engine, choose_engine
from agent.model.request import ChatRequest, to_openai
from agent.options import RunOptions
from agent.prompts.store import published_words
from agent.run.calibration.remembered import recalled
from agent.run.models.history import answer_tokens, pixel_budget
from agent.run.models.roles import ServedModel, open_model
from agent.run.observing.outliner import Outliner
from agent.screen.capture import Frame
from agent.screen.encode import EncodedImage, encode, fit, resize
from agent.screen.outline import Element, Outline
from foundation.chat_stream import Answer
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

#: A screen that is larger than every pixel budget.
_LARGE = Size(7680, 4320)
#: Seconds to wait for the elements: on a busy machine, reading a whole screen takes a while.
_TIMEOUT = 20.0


class Asker:
    """Asks one model about screenshots."""

    def __init__(self, model: ServedModel, options: RunOptions) -> None:
        name = model.family.facts.name
        self._options = options
        self._system = options.settings.system_prompt(name, options.system_prompt)
        self._chosen = {"thinking": options.thinking}
        self.others: set[str] = set()  # other models that answered in the model's place, by the names they gave
        self._model = replace(model, family=model.family.wording(published_words(name, options.words), self._chosen))

    @property
    def metrics(self) -> str | None:
        """The URL of the server's /metrics; None for servers other than vLLM."""
        endpoint = self._model.endpoint
        return f"{endpoint.base_url.removesuffix('/v1')}/metrics" if endpoint.kind == "vllm" else None

    async def ask(
        self, instruction: str, seen: "Seen", *, grounding: bool = False
    ) -> tuple[Decision | ParseFailure, str]:
        """Return the decision about a screenshot, and the answer's text. Raises MaiError if the model gives none."""
        question = await self.question(instruction, seen, grounding=grounding)
        answer = (await question.send()).answer
        if is_other(self._model.endpoint.model or "", answer.model):
            self.others.add(answer.model)
        return question.parse(answer), as_text(answer)

    def named(self) -> dict[str, Any]:
        """Return the model, its family, the source of the prompt for points, and a hash of a request's settings."""
        used = self._model.in_use("grounder")
        settings = self.grounding_digest("", _LARGE, "")[:16]
        return {"model": used.model, "family": used.family, "words": used.words, "settings": settings}

    async def question(self, instruction: str, seen: "Seen", *, grounding: bool = False) -> "Question":
        """Return the request about a screenshot, ready to be sent. Raises UsageError: the model cannot answer it."""
        model, size = self._fitted(Size(*seen.frame.image.size))
        facts = model.family.facts
        resized = await asyncio.to_thread(resize, seen.frame.image, size)
        sent = await asyncio.to_thread(encode, resized, facts.image_format, facts.quality)
        if grounding:
            return self._question(model, model.family.grounding_request(instruction, sent), size, grounding=True)
        outline = (seen.outline() or await asyncio.to_thread(_words_of, seen.frame)) if facts.outline else None
        prompt = PromptRequest(
            instruction, (sent,), system_prompt=self._system, options=self._chosen,
            outline=outline, model=model.endpoint.model or "",
        )  # fmt: skip
        return self._question(model, model.family.request(prompt), size, grounding=False)

    def grounding_digest(self, instruction: str, screen: Size, picture: str) -> str:
        """Return a hash of the request for a point, made from the picture's hash instead of its pixels."""
        model, size = self._fitted(screen)
        empty = EncodedImage(b"", model.family.facts.image_format, size)
        grounding = model.family.grounding_request(instruction, empty)
        request = self._question(model, grounding, size, grounding=True).request
        context = [model.endpoint.model, model.family.facts.name, picture, [size.width, size.height]]
        messages = to_openai(request.messages, lambda _: None)
        parts = [request.required_parts(), request.optional_parts("vllm")]
        return sha256(json.dumps([context, messages, parts], sort_keys=True).encode()).hexdigest()

    def _fitted(self, screen: Size) -> tuple[ServedModel, Size]:
        """Return the model with its calibration for such a screen, and the size at which it gets the screenshot."""
        model = recalled(self._model, screen, self._options.max_pixels)
        budget = pixel_budget(model.family, model.endpoint.limits, self._options.max_pixels)
        return model, fit(model.family.facts.image.capped(budget), screen)

    def _question(self, model: ServedModel, request: ChatRequest, sent: Size, *, grounding: bool) -> "Question":
        limit = answer_tokens(model.family, model.endpoint.limits.context)
        return Question(model, replace(request, max_tokens=limit), sent, grounding)


@dataclass(frozen=True, slots=True)
class Question:
    """A request about one screenshot."""

    model: ServedModel
    request: ChatRequest
    sent: Size  # the screenshot as the model gets it
    grounding: bool  # whether a point is asked for

    async def send(self) -> Completion:
        """Ask. Raises ModelError."""
        return await self.model.client.complete(self.request)

    def parse(self, answer: Answer) -> Decision | ParseFailure:
        """Parse the answer to it."""
        family = self.model.family
        return (family.parse_grounding if self.grounding else family.parse)(answer, (self.sent,))


def decision_json(result: Decision | ParseFailure, text: str, seen: "Seen") -> dict[str, Any]:
    """Return a decision as JSON values, with points in screen pixels."""
    if isinstance(result, ParseFailure):
        return {"ok": False, "raw": text, "error": {"kind": result.kind, "message": result.message}}
    actions, hits = _on_screen(result, seen)
    written = [action_json(action) for action in actions]
    elements = [[element.to_json() for element in hit] for hit in hits]
    answer = {"ok": True, "raw": text, "thought": result.thought, "action": written[0], "actions": written}
    return answer | {"elements": elements}


def decision_lines(result: Decision | ParseFailure, seen: "Seen") -> Iterator[str]:
    """Yield a decision as lines for a person."""
    if isinstance(result, ParseFailure):
        yield f"no decision: {result.message}"
        return
    if result.thought:
        yield f"thought: {' '.join(result.thought.split())}"
    for action, hit in zip(*_on_screen(result, seen), strict=True):
        yield f"decided: {describe(action)}"
        if hit:
            yield f"on: {' → '.join(element.words for element in hit)}"


def _on_screen(result: Decision, seen: "Seen") -> tuple[list[Action[DesktopPoint]], list[list[Element]]]:
    actions = [map_points(action, seen.frame.viewport.to_desktop) for action in result.actions]
    outline = seen.outline()
    return actions, [[] if outline is None else _hit(outline, action) for action in actions]


def _words_of(frame: Frame) -> Outline:
    """Return the words of a picture, which has no other elements."""
    outliner = Outliner(lambda: None, lambda: None)
    try:
        return outliner.take(frame).result()
    finally:
        outliner.close()


def _hit(outline: Outline, action: Action[DesktopPoint]) -> list[Element]:
    """The elements that an action would hit, at both ends of a drag."""
    return [element for point in points_of(action) if (element := outline.at(point)) is not None]


@dataclass(frozen=True, slots=True)
class Seen:
    """The screen, and its elements if they are read."""

    frame: Frame
    outlining: "Future[Outline] | None" = None

    def outline(self) -> Outline | None:
        """Return the elements; None if they are not read, or take too long."""
        if self.outlining is None:
            return None
        wait((self.outlining,), _TIMEOUT)
        return self.outlining.result() if self.outlining.done() else None


def read_image(path: Path) -> Frame:
    """Return a picture as a captured screen. Raises UsageError if it cannot be read."""
    from PIL import Image, UnidentifiedImageError

    try:
        if path.exists() and not path.is_file():
            raise OSError("it is not a file")  # a pipe would be waited for
        with Image.open(path) as image:
            read = image.convert("RGB")
            return Frame(read, Viewport.of_image(Size(*read.size)), 0.0)
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:  # also a NUL in a path
        raise UsageError(f"{path} is no image that can be read ({error}).", "Name a PNG, JPEG or WebP file.") from error


def _check_no_loop() -> None:
    """Raise UsageError if an event loop runs here, which waiting would block."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError("An event loop runs here, and this would block it.", "Call it by asyncio.to_thread.")


class ModelServer:
    """A model that decides about pictures; a context manager. A server that was started goes on running."""

    def __init__(self, options: RunOptions, tell: Callable[[str], None]) -> None:
        self._options = options
        self._tell = tell
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._engine: Engine  # set by `__enter__`
        self._asker: Asker | None = None  # while it is open

    def __enter__(self) -> Self:
        """Find or start the server. Raises MaiError."""
        _check_no_loop()
        engine = choose_engine(self._options.engine, literal_engine, self._tell)
        try:
            if engine.name == "literal":
                raise EnvironmentLacksError(
                    "There is no model to ask.", "`mai-server up` starts one, or name endpoint=."
                )
            patience = Patience.of(self._options.patience)
            model = self._runner.run(open_model(engine, self._options.family, patience, self._opened))
        except BaseException:
            self.close()
            raise
        self._engine, self._asker = engine, Asker(model, self._options)
        self.model = model.endpoint.model or ""  # the served model's name
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._asker = None
        with suppress(RuntimeError), self._runner:  # it may be closed already
            self._runner.run(self._opened.aclose())

    @property
    def url(self) -> str:
        """The base URL of the API, for any OpenAI client."""
        return self._engine.endpoint.base_url

    @property
    def api_key(self) -> str:
        """Its key; "" for servers without one."""
        return self._engine.endpoint.api_key

    def act(self, image: "str | Path | Image", instruction: str) -> dict[str, Any]:
        """Return the decision about a picture, as `mai-agent act --json` prints it. Raises MaiError."""
        return self._ask(instruction, image, grounding=False)

    def ground(self, image: "str | Path | Image", what: str) -> tuple[float, float] | None:
        """Return the point of something on a picture, in pixels; None if the answer has none. Raises MaiError."""
        action = self._ask(what, image, grounding=True).get("action") or {}
        point = action.get("point")
        return (point[0], point[1]) if point else None

    def _ask(self, instruction: str, image: "str | Path | Image", *, grounding: bool) -> dict[str, Any]:
        from PIL import Image

        if self._asker is None:
            raise UsageError("The model is not open.", "Ask inside `with mai_agent.server() as model:`.")
        _check_no_loop()
        check_text("What is asked", instruction)
        if isinstance(image, str | Path):
            frame = read_image(Path(image))
        elif not isinstance(image, Image.Image):
            raise UsageError(f"The picture is a {type(image).__name__}.", "Pass a path or a Pillow image.")
        else:
            frame = Frame(image.convert("RGB"), Viewport.of_image(Size(*image.size)), 0.0)
        seen = Seen(frame)
        result, text = self._runner.run(self._asker.ask(instruction, seen, grounding=grounding))
        return decision_json(result, text, seen)
