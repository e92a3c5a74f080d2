"""One action in a bundle: what was proposed, what it was asked about, what the person made of it, what became of it."""

from typing import Any, Self, get_args

from pydantic import (
    Field,
    model_validator,
)

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint, Region
from agent.events.fates import Fate
from agent.record.actions import read_action
from agent.record.records import ActionJson, Record, Text
from agent.safety.naming import Aim, named
from agent.safety.policy import Approval
from agent.screen.outline import Element


class CallRecord(Record):
    """A call as the model wrote it."""

    name: Text = ""
    arguments: dict[Text, Any] = {}


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
        app: the class of the window's application.
    """

    names: list[Text] = []
    window: Text = ""
    box: BoxRecord | None = None
    field: BoxRecord | None = None
    app: Text = ""

    @property
    def aim(self) -> Aim:
        """The same as a value."""
        box, field = (None if place is None else place.region for place in (self.box, self.field))
        return Aim(tuple(self.names), self.window, box, field, self.app)


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


#: Kinds of actions that only say something.
_SAID = ("finish", "answer", "absent", "remember", "ask_user")


class ActionRecord(Record):
    """One action of a step, and what became of it.

    Args:
        aim: what it went to, where that is known; of what was carried out, where the person changed it.
        elements: what it hit, as it stood before, where that is known: at both ends of a drag.
        action: as the model wrote it, in its own coordinates.
        grid: width and height of the model's coordinates, and where they begin unless at 0, for actions with points.
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
        return "said" if (self.target or {}).get("type") in _SAID else "broken off"
