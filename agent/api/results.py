"""What callers from Python get back: plain values, and the errors that say why something was not done."""

from dataclasses import dataclass, field
from pathlib import Path

from PIL.Image import Image

from agent.core.changes import Change
from agent.literal.find.finder import is_role, kinds_of
from agent.literal.vocabulary.lexicon import plain
from agent.screen.outline import Element, ShownWindow
from foundation.errors import MaiError, UsageError


class NotDoneError(MaiError):
    """A run did not do what was asked; `result` shows how far the run came."""

    def __init__(self, result: "Result") -> None:
        remedy = f"`mai-agent report {result.bundle}` shows the run." if result.bundle else ""
        super().__init__(result.message or f"The run ended: {result.outcome}.", remedy)
        self.result = result


class NotSeenError(AssertionError):
    """An expected element did not appear in time. The message lists what is there instead."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a run."""

    number: int  # the step, from 1; several actions of one answer share it
    thought: str  # the model's reason
    action: str  # the action in words
    executed: bool
    error: str = ""  # why it failed


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    instruction: str
    outcome: str  # "done", "unverified", "gave_up", "stopped" and so on, as in `RunFinished`
    message: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]  # the receipt: what changed on the computer
    evidence: tuple[str, ...]  # what shows that the task is done
    verified: bool | None  # whether the evidence shows it; None if unknown
    seconds: float
    bundle: Path | None = None  # the folder of the record

    @property
    def done(self) -> bool:
        """Whether the outcome is "done": the run claims success, and no evidence contradicts the claim."""
        return self.outcome == "done"

    def check(self) -> "Result":
        """Return the result. Raises NotDoneError if it is not done."""
        if not self.done:
            raise NotDoneError(self)
        return self


@dataclass(frozen=True, slots=True)
class Look:
    """The screen at one moment."""

    image: Image = field(repr=False)
    elements: tuple[Element, ...]  # in reading order; boxes in desktop pixels
    windows: tuple[ShownWindow, ...]  # the topmost first
    lacks: str = ""  # why elements are missing, "" if none are

    def find_all(self, name: str, role: str = "", window: str = "") -> list[Element]:
        """Return the elements of a name, exact matches first, then those that contain its words.

        Case, accents and punctuation around words do not count. `role` is an AT-SPI role, where "button" and the like
        mean their whole kind. `window` is a part of the title. Raises UsageError for an unknown role, or neither name
        nor role.
        """
        if not isinstance(name, str) or (not name and not role):
            raise UsageError("What to find has no name.", "Name the element in a text, or its role.")
        check_role(role)
        check_text("The window", window)
        kinds = kinds_of(role)
        fitting = [
            (rank, element)
            for element in self.elements
            if (not role or element.role in kinds)
            and plain(window) in plain(element.window)
            and (rank := _rank(name, element)) is not None
        ]
        return [element for _, element in sorted(fitting, key=lambda one: one[0])]

    def find(self, name: str, role: str = "", window: str = "") -> Element | None:
        """Return the best element of a name; None if there is none."""
        return next(iter(self.find_all(name, role, window)), None)

    def listed(self, most: int, role: str = "") -> str:
        """Describe the first elements, sorted by role and front window, and say why elements are missing."""
        front, kinds = next((window.title for window in self.windows if window.active), None), kinds_of(role)
        ordered = sorted(self.elements, key=lambda one: (bool(role) and one.role not in kinds, one.window != front))
        words = ", ".join(element.words for element in ordered[:most]) or "nothing"
        more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
        return f"{words}{more}{f' ({self.lacks})' if self.lacks else ''}"


def check_text(what: str, text: object) -> None:
    """Raise UsageError if something is no text."""
    if not isinstance(text, str):
        raise UsageError(f"{what} is a {type(text).__name__}, and not a text.")


def check_role(role: str) -> None:
    """Raise UsageError for a role that no element has."""
    if role and not is_role(role):
        raise UsageError(f"There is no role {role!r}.", "`look` lists the roles; kinds like button also work.")


def _rank(name: str, element: Element) -> int | None:
    wanted = plain(name) or name  # a name may be nothing but a sign: "+"
    texts = [plain(text) or text for text in (element.name, element.label, element.value or "") if text]
    if not wanted or wanted in texts:
        return 0
    return 1 if any(f" {wanted} " in f" {text} " for text in texts) else None
