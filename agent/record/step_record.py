"""A step of a run: a line of `steps.jsonl`. Format 1 had no lists: a step's only action stood in the step itself."""

from typing import Any, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from agent.core.geometry import DesktopPoint
from agent.events.fates import consulted_words, decider_words, handed_over_words
from agent.record.action_record import ActionRecord
from agent.record.records import Record, Text, TokensRecord, ViewportRecord
from foundation.chat_stream import Answer, ToolCall


class FailureRecord(Record):
    """Why an answer cannot be used: `kind` for programs."""

    kind: Text = ""
    message: Text = ""


class ToolCallRecord(Record):
    """A call that a server told apart from the text; the arguments are JSON as the model wrote it."""

    id: Text = ""
    name: Text = ""
    arguments: Text = ""


class AnswerPartsRecord(Record):
    """An answer in its parts, as the server told them apart."""

    content: Text = ""
    reasoning: Text = ""
    tool_calls: list[ToolCallRecord] = []
    finish_reason: Text | None = None


class AnswerRecord(Record):
    """One answer of the model: as one text, and in parts where it came in parts."""

    raw: Text = ""
    failure: FailureRecord | None = None
    parts: AnswerPartsRecord | None = None

    @property
    def answer(self) -> Answer:
        """The answer as it came, to be read again."""
        if self.parts is None:
            return Answer(self.raw)
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in self.parts.tool_calls)
        return Answer(self.parts.content, self.parts.reasoning, calls, self.parts.finish_reason)


class ImageRecord(Record):
    """A screenshot that the model saw: its file in the bundle, its size as sent, the tokens of all of a step's."""

    file: Text = ""
    width: int = 1
    height: int = 1
    tokens: int | None = None


class BetweenRecord(Record):
    """What happened between two steps: an event with its fields.

    Args:
        event: Paused, Resumed, UserActed, PersonSaid (Told in format 1), ReliefAsked, HandedOver or HandedBack.
        at: when, in seconds since the run began.
    """

    event: Text = ""
    step: int | None = None
    reason: Text | None = None
    what: Text | None = None
    text: Text | None = None
    role: Text | None = None
    model: Text | None = None
    host: Text | None = None
    why: Text | None = None
    steps: int | None = None
    allowed: Text | None = None
    file: Text | None = None
    at: float | None = None

    @model_serializer(mode="wrap")
    def _own_fields(self, handler: SerializerFunctionWrapHandler) -> Any:
        return {name: value for name, value in handler(self).items() if value is not None}

    @property
    def words(self) -> str:
        """What happened, in words; empty for what is not known."""
        said = f"you said: {self.text or ''}"
        return {
            "Paused": f"paused: {self.reason or ''}", "Resumed": "resumed",
            "UserActed": f"you acted: {self.what or ''}", "PersonSaid": said, "Told": said,
            "ReliefAsked": f"you were asked whether {self.model or 'the relief'} at {self.host} may take over",
            "HandedOver": handed_over_words(
                self.model or "", self.host or "", self.steps or 0, self.why or "", self.allowed or ""
            ),
            "HandedBack": f"handed back: {self.why or ''}",
        }.get(self.event, "")  # fmt: skip


class ConsultedRecord(Record):
    """A model that was asked besides the decision: where something is.

    Args:
        role: whose part it was; "actor" for the acting model itself.
        model: its name at the endpoint.
        why: "ground" for a place that a plan names, "zoom" for a closer look.
        asked: for what, in words.
        raw: its answer.
        point: the place in desktop units; null where it gave none.
        absent: it says that this is not on the screen.
    """

    role: Text = ""
    model: Text = ""
    why: Text = ""
    asked: Text = ""
    raw: Text = ""
    point: list[float] | None = None
    absent: bool = False
    usage: TokensRecord = Field(default_factory=TokensRecord)
    milliseconds: float = 0.0

    @property
    def words(self) -> str:
        """What came of it, on one line."""
        point = None if self.point is None else DesktopPoint(*self.point)
        return consulted_words(self.why, self.role, self.asked, point)


class StepRecord(ActionRecord):
    """One step. Its own action fields are those of its first action, which scripts have always read.

    Args:
        at: when it began, in seconds since the run did.
        before: what happened before it: what the person did, and who took over.
        screen: a fingerprint of the screen.
        image: the first of `images`.
        boxes: of the elements that the model was told and may name by number, each as left, top, width, height.
        by: the role of the model that decided: "actor", or "relief" while another one works in its place.
        answers: all tries; the last one counts.
        consulted: what else was asked to find the places.
        doubt: why what lies there may be something else than what the model wanted; empty for no reason.
        changed: whether the screen changed by it; null where nothing was done.
        note: what the model was told about it.
        reply: what the person answered, or a tool.
        milliseconds: of every stage; several tries add up.
    """

    step: int | None = None
    at: float | None = None
    before: list[BetweenRecord] = []
    screen: Text = ""
    image: ImageRecord | None = None
    images: list[ImageRecord] = []
    viewport: ViewportRecord | None = None
    boxes: dict[Text, tuple[int, int, int, int]] = {}
    by: Text = "actor"
    answers: list[AnswerRecord] = []
    thought: Text = ""
    consulted: list[ConsultedRecord] = []
    doubt: Text = ""
    actions: list[ActionRecord] = []
    changed: bool | None = None
    note: Text | None = None
    reply: Text | None = None
    tokens: TokensRecord = Field(default_factory=TokensRecord)
    milliseconds: dict[Text, float] = {}

    @model_validator(mode="after")
    def _as_lists(self) -> Self:
        """A step of format 1 has its action and its image for itself alone."""
        if not self.actions and self.target is not None:
            self.actions = [ActionRecord.model_construct(**{name: getattr(self, name) for name in _OF_AN_ACTION})]
        if not self.images and self.image is not None:
            self.images = [self.image]
        return self

    @property
    def found(self) -> list[str]:
        """How its places were found, where that was asked for by itself, and what speaks against them."""
        return [*(one.words for one in self.consulted), *([f"doubt: {self.doubt}"] if self.doubt else [])]

    @property
    def how(self) -> list[str]:
        """Which other model decided it, and how its places were found."""
        return [*filter(None, [decider_words(self.by)]), *self.found]

    @property
    def each_action(self) -> list[ActionRecord]:
        """Its actions; of a step without any the step itself, which says why."""
        return self.actions or [self]


_OF_AN_ACTION = tuple(ActionRecord.model_fields)


def with_firsts(step: dict[str, Any]) -> dict[str, Any]:
    """A step's JSON with the fields of its first action, and its first image, as its own."""
    first: dict[str, Any] = next(iter(step["actions"]), step)
    return step | {name: first[name] for name in _OF_AN_ACTION} | {"image": next(iter(step["images"]), None)}
