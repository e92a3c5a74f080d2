"""A step of a run, which is a line of `steps.jsonl`, and each of its actions with what became of it."""

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.events.fates import Fate, answer_words, consulted_words, decider_words, handed_over_words
from agent.record.records import ActionJson, BoxRecord, Record, TokensRecord, ViewportRecord, read_action
from agent.safety.naming import Aim, named
from agent.screen.outline import Element
from foundation.chat_stream import Answer, ToolCall


class CallRecord(Record):
    """A call as the model wrote it."""

    name: str = ""
    arguments: dict[str, Any] = {}


class ElementRecord(Record):
    """An element of the screen. Its texts come from the screen and are untrusted."""

    role: str = ""  # what it is, as AT-SPI names it
    name: str = ""  # what it is called, or labelled with
    states: list[str] = []  # its states, such as checked or disabled
    window: str = ""  # the title of its window
    box: BoxRecord | None = None
    words: str = ""  # the element in words

    @property
    def element(self) -> Element | None:
        """The record as an `Element`; None if it has no box."""
        if self.box is None:
            return None
        return Element(0, self.role, self.name, self.box.region, states=frozenset(self.states), window=self.window)


class DescribedRecord(ElementRecord):
    """The element that an action went to, as the outline of the screen described it."""

    app: str = ""  # the class of its application
    alike: int = 1  # how many elements of its window had its role and name
    source: str = ""  # how it was found: tree, words or both
    label: str = ""  # the text of its label
    near: list[str] = []  # the texts beside, above and around it that similar elements did not have


class AimRecord(Record):
    """The target of an action."""

    names: list[str] = []  # names of the targets at its points, or of the field that received the text
    window: str = ""  # the title of the window
    box: BoxRecord | None = None  # the region of that window
    field: BoxRecord | None = None  # the region of the field that received the text
    app: str = ""  # the class of the window's application

    @property
    def aim(self) -> Aim:
        """The record as an `Aim`."""
        box, field = (None if place is None else place.region for place in (self.box, self.field))
        return Aim(tuple(self.names), self.window, box, field, self.app)


class ApprovalRecord(Record):
    """A question about the action that the model proposed, and what the person said to it."""

    reason: str = ""  # why the proposed action needed approval
    scope: str = ""  # what a permission for the rest of the run would allow
    allowed: bool | None = None  # null while nobody has answered
    by: str | None = None  # who or what decided; not always a person
    note: str = ""  # what to do instead, for the model
    always: bool = False
    instead: ActionJson | None = None  # the action as the person changed it
    milliseconds: float = 0.0
    at: float | None = None  # when it was answered, in seconds since the run began
    #: the decision by its kind: allowed, changed, refused, skipped or told (what to do instead)
    answer: str | None = None
    aim: AimRecord = Field(default_factory=AimRecord)  # the target of the proposed action, if known
    instead_aim: AimRecord = Field(default_factory=AimRecord)
    #: why the policy would ask about `instead`; empty if it would not
    instead_reason: str = ""

    @property
    def words(self) -> str:
        """What was decided and by whom, on one line."""
        return "not answered" if self.answer is None else answer_words(self.answer, self.by, self.note)


class ActionRecord(Record):
    """One action of a step, and what became of it."""

    call: CallRecord | None = None
    action: ActionJson | None = None  # as the model wrote it, in its own coordinates
    #: width and height of the model's coordinates, and where they begin unless at 0, for actions with points
    grid: list[float] | None = None
    target: ActionJson | None = None  # the same in desktop units
    approval: ApprovalRecord | None = None
    executed: bool = False  # whether the desktop was touched by it
    dry_run: bool = False
    detail: str | None = None
    error: str | None = None
    target_image: str | None = None  # the file with the marked target; of a dry run
    elements: list[ElementRecord] = []  # the elements it hit, as they were before, if known; both ends of a drag
    #: the target, if known; of the person's change, if there is one
    aim: AimRecord = Field(default_factory=AimRecord)
    #: the target, as in the outline before it, so that a recipe finds it again
    described: DescribedRecord | None = None
    fate: Fate | None = None  # what became of it

    @property
    def hit(self) -> str:
        """The elements that the action hit, in words; "" if unknown."""
        return " → ".join(element.words for element in self.elements if element.words)

    @property
    def final(self) -> dict[str, Any] | None:
        """The JSON of the action that was to be carried out: the target, or the person's change of it."""
        return (self.approval and self.approval.instead) or self.target

    @property
    def final_action(self) -> Action[DesktopPoint] | None:
        """`final` as an action; None if it is damaged."""
        return read_action(self.final)

    @property
    def words(self) -> str:
        """The action that was to be carried out, in words with the names of its targets; its kind if it is unknown."""
        return self._words(self.final, self.aim)

    @property
    def proposed(self) -> str:
        """What the model proposed, in words like `words`."""
        approval = self.approval
        return self._words(self.target, self.aim if approval is None or approval.instead is None else approval.aim)

    @property
    def changed_to(self) -> str:
        """The person's change of the action, in words; "" if they changed nothing."""
        return self.words if self.approval is not None and self.approval.instead is not None else ""

    @staticmethod
    def _words(data: dict[str, Any] | None, aim: AimRecord) -> str:
        action = read_action(data)
        return str((data or {}).get("type") or "") if action is None else named(action, aim.aim)

    @property
    def became(self) -> Fate:
        """The fate of the action."""
        return self.fate or "broken off"


class FailureRecord(Record):
    """Why an answer cannot be used: `kind` for programs."""

    kind: str = ""
    message: str = ""


class ToolCallRecord(Record):
    """A call that the server returned apart from the text; its arguments are the model's JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class AnswerPartsRecord(Record):
    """An answer in the parts that the server returned."""

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCallRecord] = []
    finish_reason: str | None = None


class AnswerRecord(Record):
    """One answer of the model: as one text, and in parts where it came in parts."""

    raw: str = ""
    model: str | None = None  # the model that answered, as the server named it; null if it named none
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
    """A screenshot that the model saw: file in the bundle, size as sent, tokens of all images of the step."""

    file: str = ""
    width: int = 1
    height: int = 1
    tokens: int | None = None


class BetweenRecord(Record):
    """What happened between two steps: an event with its fields."""

    event: str = ""  # Paused, Resumed, UserActed, PersonSaid, ReliefAsked, HandedOver or HandedBack
    step: int | None = None
    reason: str | None = None
    what: str | None = None
    text: str | None = None
    role: str | None = None
    model: str | None = None
    host: str | None = None
    why: str | None = None
    steps: int | None = None
    allowed: str | None = None
    file: str | None = None
    at: float | None = None  # when, in seconds since the run began

    @model_serializer(mode="wrap")
    def _own_fields(self, handler: SerializerFunctionWrapHandler) -> Any:
        return {name: value for name, value in handler(self).items() if value is not None}

    @property
    def words(self) -> str:
        """What happened, in words; empty for an unknown event."""
        return {
            "Paused": f"paused: {self.reason or ''}", "Resumed": "resumed",
            "UserActed": f"you acted: {self.what or ''}", "PersonSaid": f"you said: {self.text or ''}",
            "ReliefAsked": f"you were asked whether {self.model or 'the fallback model'} at {self.host} may take over",
            "HandedOver": handed_over_words(
                self.model or "", self.host or "", self.steps or 0, self.why or "", self.allowed or ""
            ),
            "HandedBack": f"handed back: {self.why or ''}",
        }.get(self.event, "")  # fmt: skip


class ConsultedRecord(Record):
    """A request for the place of something, besides the request for the decision."""

    role: str = ""  # the role of the model that was asked; "actor" for the acting model itself
    model: str = ""  # its name at the endpoint
    why: str = ""  # "ground" for a place that a plan names, "zoom" for a closer look
    asked: str = ""  # what to find, in words
    raw: str = ""  # its answer
    point: list[float] | None = None  # the place in desktop units; null if the model gave none
    absent: bool = False  # the model says it is not on the screen
    usage: TokensRecord = Field(default_factory=TokensRecord)
    milliseconds: float = 0.0

    @property
    def words(self) -> str:
        """The request and its result, on one line."""
        point = None if self.point is None else DesktopPoint(*self.point)
        return consulted_words(self.why, self.role, self.asked, point)


class StepRecord(ActionRecord):
    """One step. Its own action fields are those of its first action, which scripts have always read."""

    step: int | None = None
    at: float | None = None  # start, in seconds since the run's start
    before: list[BetweenRecord] = []  # what happened before it: what the person did, and who took over
    screen: str = ""  # a fingerprint of the screen
    image: ImageRecord | None = None  # the first of `images`
    images: list[ImageRecord] = []
    viewport: ViewportRecord | None = None
    #: boxes of the elements that the model may name by number, each as left, top, width, height
    boxes: dict[str, Annotated[tuple[int, int, int, int], Field(strict=False)]] = {}  # JSON has lists, no tuples
    by: str = "actor"  # the role of the model that decided: "actor", or "relief" while another one works in its place
    answers: list[AnswerRecord] = []  # all tries; the last one counts
    thought: str = ""
    consulted: list[ConsultedRecord] = []  # further requests that located the points
    doubt: str = ""  # why the element there may not be the one that the model wanted; empty if nothing suggests it
    actions: list[ActionRecord] = []
    changed: bool | None = None  # whether the step changed the screen; null if nothing was done
    note: str | None = None  # what the model was told about it
    reply: str | None = None  # what the person answered, or a tool
    tokens: TokensRecord = Field(default_factory=TokensRecord)
    milliseconds: dict[str, float] = {}  # of every stage; several tries add up

    @property
    def found(self) -> list[str]:
        """The requests that located its points, and the doubt about them, in words."""
        return [*(one.words for one in self.consulted), *([f"doubt: {self.doubt}"] if self.doubt else [])]

    @property
    def how(self) -> list[str]:
        """Which other model decided it, and how its places were found."""
        return [*filter(None, [decider_words(self.by)]), *self.found]

    @property
    def each_action(self) -> list[ActionRecord]:
        """Its actions; without any, the step itself, which holds the reason."""
        return self.actions or [self]


_OF_AN_ACTION = tuple(ActionRecord.model_fields)


def with_firsts(step: dict[str, Any]) -> dict[str, Any]:
    """A step's JSON with the fields of its first action, and its first image, as its own."""
    first: dict[str, Any] = next(iter(step["actions"]), step)
    return step | {name: first[name] for name in _OF_AN_ACTION} | {"image": next(iter(step["images"]), None)}
