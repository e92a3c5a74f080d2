"""What a run bundle holds, as models: the run (`run.json`) and its steps (a line of `steps.jsonl` each).

The recorder writes these models, and everything that shows a run reads them. A record that is made must be right; one
that is read may come from a crash or an older version, so what is damaged in it is left out, and what is not known to
this version is kept. Format 1 had no lists: a step's only action stood in the step itself, the only model in the run.
"""

from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Annotated, Any, Self, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from agent.actions import Action
from agent.changes import Change
from agent.geometry import DesktopPoint, Region, Size, Viewport
from agent.record.actions import read_action
from agent.run.events import Receipt
from agent.run.fates import Fate
from agent.safety.naming import Aim, named
from agent.safety.policy import Approval
from agent.screen.outline import Element
from foundation.chat_stream import Answer, ToolCall


def _readable(value: Any) -> Any:
    """A text without half characters, which no file could hold."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


#: Stands for the schema of any action, which would be too long to be repeated wherever there is one.
ACTION_SCHEMA = {"title": "Action", "type": "object"}
Text: TypeAlias = Annotated[str, BeforeValidator(_readable)]
#: An action as `actions.to_json` writes it; kept as it is, so that kinds of later versions are not lost.
ActionJson: TypeAlias = Annotated[dict[str, Any], WithJsonSchema(ACTION_SCHEMA)]


class Record(BaseModel):
    """Anything in a bundle."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    @classmethod
    def read(cls, data: Any) -> Self:
        """The record in a JSON value; what is damaged in it is left out, with what cannot be without it."""
        data = data if isinstance(data, dict) else {}
        while True:
            try:
                return cls.model_validate(data)
            except ValidationError as error:
                data = _without(data, {_place(data, problem["loc"]) for problem in error.errors()})


#: The way to a part of a JSON value: names in tables, numbers in lists.
_Place: TypeAlias = tuple[str | int, ...]


def _place(data: Any, place: _Place) -> _Place:
    """The place; where nothing is there, that of what lacks it."""
    for depth, name in enumerate(place):
        if isinstance(data, dict) and name not in data:
            return place[:depth]
        data = data[name]
    return place


def _without(data: dict[str, Any], places: set[_Place]) -> dict[str, Any]:
    data = deepcopy(data)
    for *way, last in sorted(places, reverse=True):  # the end of a list first, so that its other numbers stay
        del reduce(getitem, way, data)[last]  # type: ignore[arg-type]
    return data


class CallRecord(Record):
    """A call as the model wrote it."""

    name: Text = ""
    arguments: dict[Text, Any] = {}


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
        return Answer(self.parts.content, self.parts.reasoning, calls)


class TokensRecord(Record):
    """Tokens of requests; null where the server does not say."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


class ViewportRecord(Record):
    """How the captured pixels lie on the desktop, which is measured in desktop units."""

    left: int
    top: int
    width: int
    height: int
    captured_width: int
    captured_height: int

    @property
    def viewport(self) -> Viewport:
        """The same as a value to calculate with."""
        region = Region(self.left, self.top, self.width, self.height)
        return Viewport(region, Size(self.captured_width, self.captured_height))


class ImageRecord(Record):
    """A screenshot that the model saw: its file in the bundle, its size as sent, the tokens of all of a step's."""

    file: Text = ""
    width: int = 1
    height: int = 1
    tokens: int | None = None


class BoxRecord(Record):
    """A rectangle in desktop units."""

    left: int
    top: int
    width: int
    height: int

    @property
    def region(self) -> Region:
        """The same as a value."""
        return Region(self.left, self.top, self.width, self.height)


class ElementRecord(Record):
    """An element of the screen; its texts are those of whatever was on the screen.

    Args:
        role: what it is, as AT-SPI names it.
        name: what it is called, or labelled with.
        states: how it stood, such as checked or disabled.
        window: the title of its window.
        words: all that in words.
    """

    role: Text = ""
    name: Text = ""
    states: list[Text] = []
    window: Text = ""
    box: BoxRecord | None = None
    words: Text = ""

    @property
    def element(self) -> Element | None:
        """The same as a value; None where it does not say where it was."""
        if self.box is None:
            return None
        return Element(0, self.role, self.name, self.box.region, states=frozenset(self.states), window=self.window)


class AimRecord(Record):
    """What an action went to.

    Args:
        names: what lies at its points, or the field that gets what is typed.
        window: the title of the window.
        box: where that window was.
        field: where the field was that got what was typed.
    """

    names: list[Text] = []
    window: Text = ""
    box: BoxRecord | None = None
    field: BoxRecord | None = None

    @property
    def aim(self) -> Aim:
        """The same as a value."""
        box, field = (None if place is None else place.region for place in (self.box, self.field))
        return Aim(tuple(self.names), self.window, box, field)


#: What a skip was told to the model as, before it was an answer of its own (formats 1 and 2).
_SKIP_OF_OLD = "Skip it and go on with the next part."


class ApprovalRecord(Record):
    """A question about the action that the model proposed, and what the person said to it.

    Args:
        reason: why it was asked about what the model proposed.
        scope: what "always" would allow.
        aim: what the proposed action goes to, where that is known.
        allowed: null while nobody has answered.
        by: who or what decided; not always a person.
        note: what to do instead, for the model.
        answer: the decision by its kind: allowed, changed, refused, skipped or told (what to do instead).
        instead: the action as the person changed it.
        instead_reason: why it would have been asked about that, had the model proposed it; empty where it would not.
        at: when it was answered, in seconds since the run began.
    """

    reason: Text = ""
    scope: Text = ""
    allowed: bool | None = None
    by: Text | None = None
    note: Text = ""
    always: bool = False
    instead: ActionJson | None = None
    milliseconds: float = 0.0
    at: float | None = None
    answer: Text | None = None
    aim: AimRecord = Field(default_factory=AimRecord)
    instead_aim: AimRecord = Field(default_factory=AimRecord)
    instead_reason: Text = ""

    @model_validator(mode="after")
    def _with_an_answer(self) -> Self:
        """Before format 3, the answer was told by the other fields."""
        if self.answer is None and self.allowed is not None:
            skip = self.note == _SKIP_OF_OLD
            given = Approval(self.allowed, "", self.note, skip=skip)
            self.answer = "changed" if self.allowed and self.instead is not None else given.answer
            self.note = "" if skip else self.note
        return self

    @property
    def words(self) -> str:
        """What was decided and by whom, on one line."""
        if self.answer is None:
            return "not answered"
        told = {"told": "not allowed"}.get(self.answer, self.answer)
        note = f": “{self.note}”" if self.note else ""
        return f"{told} by {self.by}{note}" if self.by else f"{told}{note}"


class ActionRecord(Record):
    """One action of a step, and what became of it.

    Args:
        aim: what it went to, where that is known; of what was carried out, where the person changed it.
        elements: what it hit, as it stood before, where that is known: at both ends of a drag.
        action: as the model wrote it, in its own coordinates.
        grid: width and height of the model's coordinates, for actions with points.
        target: the same in desktop units.
        fate: what became of it: done, dry run, failed, refused, skipped, told, overtaken, left out, unanswered, said or
            broken off.
        executed: whether the desktop was touched by it.
        target_image: the file with the marked target; of a dry run.
    """

    call: CallRecord | None = None
    action: ActionJson | None = None
    grid: list[float] | None = None
    target: ActionJson | None = None
    approval: ApprovalRecord | None = None
    executed: bool = False
    dry_run: bool = False
    detail: Text | None = None
    error: Text | None = None
    target_image: Text | None = None
    elements: list[ElementRecord] = []
    aim: AimRecord = Field(default_factory=AimRecord)
    fate: Text | None = None

    @property
    def hit(self) -> str:
        """What it hit, in words; "" where that is not known."""
        return " → ".join(element.words for element in self.elements if element.words)

    @property
    def final(self) -> dict[str, Any] | None:
        """The JSON of what was to be carried out at last: the person may have changed the target."""
        return (self.approval and self.approval.instead) or self.target

    @property
    def final_action(self) -> Action[DesktopPoint] | None:
        """The same as an action; None for what is damaged."""
        return read_action(self.final)

    @property
    def words(self) -> str:
        """What was to be carried out at last, with names for what it went to; its kind where it is not known here."""
        return self._words(self.final, self.aim)

    @property
    def proposed(self) -> str:
        """What the model proposed, in words like `words`."""
        asked = self.approval
        return self._words(self.target, self.aim if asked is None or asked.instead is None else asked.aim)

    @property
    def changed_to(self) -> str:
        """What the person made of it, in words like `words`; "" where they changed nothing."""
        return self.words if self.approval is not None and self.approval.instead is not None else ""

    @staticmethod
    def _words(told: dict[str, Any] | None, aim: AimRecord) -> str:
        action = read_action(told)
        return str((told or {}).get("type") or "") if action is None else named(action, aim.aim)

    @property
    def became(self) -> Fate:
        """What became of it; found out from the other fields in records before format 3."""
        if self.fate in get_args(Fate):
            return self.fate  # type: ignore[return-value]  # it is one of them
        if self.error is not None:
            return "failed"
        asked = self.approval
        if asked is not None and asked.answer in ("refused", "skipped", "told"):
            return asked.answer  # type: ignore[return-value]  # these answers are fates too
        if self.executed:
            return "done"
        if self.dry_run:
            return "dry run"
        if asked is not None and asked.answer is None:
            return "unanswered"
        return "said" if (self.target or {}).get("type") in ("finish", "answer", "ask_user") else "broken off"


class BetweenRecord(Record):
    """What the person did between two steps: an event with its fields.

    Args:
        event: Paused, Resumed, UserActed or PersonSaid (Told in format 1).
        at: when, in seconds since the run began.
    """

    event: Text = ""
    step: int | None = None
    reason: Text | None = None
    what: Text | None = None
    text: Text | None = None
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
        }.get(self.event, "")  # fmt: skip


class StepRecord(ActionRecord):
    """One step. Its own action fields are those of its first action, which scripts have always read.

    Args:
        at: when it began, in seconds since the run did.
        before: what the person did before it.
        screen: a fingerprint of the screen.
        image: the first of `images`.
        answers: all tries; the last one counts.
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
    answers: list[AnswerRecord] = []
    thought: Text = ""
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
    def each_action(self) -> list[ActionRecord]:
        """Its actions; of a step without any the step itself, which says why."""
        return self.actions or [self]


_OF_AN_ACTION = tuple(ActionRecord.model_fields)


def with_firsts(step: dict[str, Any]) -> dict[str, Any]:
    """A step's JSON with the fields of its first action, and its first image, as its own."""
    first: dict[str, Any] = next(iter(step["actions"]), step)
    return step | {name: first[name] for name in _OF_AN_ACTION} | {"image": next(iter(step["images"]), None)}


class ModelRecord(Record):
    """A model that a run used: what served it, its name there, whose format it was asked in, and where."""

    engine: Text | None = None
    model: Text | None = None
    family: Text | None = None
    endpoint: Text | None = None


class ChangeRecord(Record):
    """One thing that is not as it was when the run began.

    Args:
        kind: setting, file, window, app or clipboard.
        what: names it so that it can be found again.
        before: null where it was not there, or not set.
        after: null where it is not there any more.
        undo: what it takes to undo it; null where it cannot be.
    """

    kind: Text = ""
    what: Text = ""
    before: Text | None = None
    after: Text | None = None
    undo: dict[Text, Any] | None = None

    @property
    def change(self) -> Change:
        """The same as the value that everything else works with."""
        return Change(self.kind, self.what, self.before, self.after, self.undo)  # type: ignore[arg-type]  # or of a later version


class ReceiptRecord(Record):
    """What the run left behind it.

    Args:
        remarks: what could not be watched.
        watched: whether it is known what changed.
    """

    changes: list[ChangeRecord] = []
    remarks: list[Text] = []
    watched: bool = False

    @property
    def receipt(self) -> Receipt:
        """The same as the event that it was."""
        return Receipt(tuple(change.change for change in self.changes), tuple(self.remarks), self.watched)


class UndoneRecord(Record):
    """What became of one change when the run was undone.

    Args:
        kind: of the change, which is told by this and by `what`.
        at: when, in ISO 8601.
        done: whether it was put back.
        words: what was done, or why it could not be.
    """

    kind: Text = ""
    what: Text = ""
    at: Text = ""
    done: bool = False
    words: Text = ""


class RunRecord(ModelRecord):
    """The run as a whole. Its own model fields are those of the model that acted.

    Args:
        format: the version of these records.
        outcome: how it ended; `running` until then.
        status: the exit status; null until the end.
        pid: the process that ran it.
        models: every model by its role; "actor" is the one that looks and acts.
        bundle: the folder where it was recorded.
        receipt: what changed; null in older runs, and in those that broke off.
        evidence: what shows that the task is done, or speaks against it.
        undone: what `mai-agent undo` did later.
        sandbox_name: the throw-away desktop it was on; empty for a person's own.
        verified: whether that shows that it is done; null where it cannot be told.
        steps: how many steps were begun.
        recorded: how many steps are in the bundle; null until the end, and in runs of format 1.
        masked: how many secrets were masked.
    """

    format: int = 1
    id: Text = ""
    instruction: Text = ""
    version: Text = ""
    started: Text = ""
    outcome: Text = "unknown"
    status: int | None = None
    message: Text = ""
    pid: int | None = None
    warnings: list[Text] = []
    models: dict[Text, ModelRecord] = {}
    style: Text | None = None
    dry_run: bool = False
    approve: Text | None = None
    sandbox: bool = False
    sandbox_name: Text = ""
    viewport: ViewportRecord | None = None
    bundle: Text | None = None
    receipt: ReceiptRecord | None = None
    evidence: list[Text] = []
    undone: list[UndoneRecord] = []
    verified: bool | None = None
    steps: int | None = None
    recorded: int | None = None
    seconds: float | None = None
    tokens: TokensRecord | None = None
    masked: int | None = None
    finished: Text | None = None

    @model_validator(mode="after")
    def _as_roles(self) -> Self:
        """A run of format 1 has one model."""
        if not self.models and self.engine is not None:
            actor = {name: getattr(self, name) for name in ModelRecord.model_fields}
            self.models = {"actor": ModelRecord.model_construct(**actor)}
        return self
