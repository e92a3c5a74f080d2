"""What a goal knows while it is pursued: the screen now, what was done in this run, and the steps that it can take.

A goal is pursued by a generator (`Pursuit`). It yields a step, gets back what became of it (`Move`) once the screen has
settled again, and returns whether the goal is reached.
"""

import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.core.notes import Note, NoteKind
from agent.literal.find.effects import Effects, effects
from agent.literal.find.finder import WHOLE, Finder, Found
from agent.literal.find.scene import CLICKABLE, TEXTS, Scene, middle
from agent.literal.goals import Goal, Target
from agent.literal.vocabulary.lexicon import ORDINALS, either
from agent.literal.vocabulary.names import Names
from agent.screen.outline import Element

#: Their mark stands at the left end of their box, and only there everywhere.
_MARKED = frozenset({"check box", "radio button"})
#: How many of several things a question names.
_MOST_CHOICES = 6


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next for a goal."""

    words: str
    call: Mapping[str, Any]  # the arguments of the call: "action", "coordinate" and so on
    main: bool = False  # what the goal itself asks for; False on the way there


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached; `words` say what shows it, or what was done if nothing shows it."""

    words: str
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Stuck:
    """The goal cannot be reached; `words` say why."""

    words: str


@dataclass(frozen=True, slots=True)
class Move:
    """A step that was taken, with the screen that it was decided on."""

    step: Step
    scene: Scene
    changes: Sequence[Change] = ()  # on the computer, from the beginning of the run until then
    notes: tuple[Note, ...] = ()  # what the program said of it
    reply: str = ""  # what the person answered to it

    def has(self, kind: NoteKind) -> bool:
        """Whether the program noted this of it."""
        return any(note.kind == kind for note in self.notes)

    @property
    def action(self) -> str:
        """The name of its action."""
        return str(self.step.call["action"])

    @property
    def failure(self) -> str | None:
        """Why it could not be done; None if it was done."""
        return next((note.detail for note in self.notes if note.kind == "failed"), None)

    @property
    def denied(self) -> bool:
        """Whether the person did not allow it, and said nothing more."""
        return self.has("refused") and not self.has("said")

    @property
    def skipped(self) -> bool:
        """Whether the person wants something else, or nothing, instead of it."""
        return self.has("skipped") or (self.has("refused") and self.has("said"))


_T = TypeVar("_T")
Verdict: TypeAlias = Done | Stuck
#: Steps on the way to something.
Steps = Generator[Step, Move, _T]
Pursuit: TypeAlias = Generator[Step, Move, Verdict]


class WhichError(Exception):
    """Several things have the name that the person said, and their answer names none of them."""


@dataclass
class Now:
    """The run as the goal at hand sees it. The engine replaces `scene` and `changes` before each decision."""

    scene: Scene
    changes: Sequence[Change] = ()  # on the computer since the run began
    image: Size = field(default_factory=lambda: Size(1, 1))  # the screenshot's, in whose pixels calls name points
    names: Names = field(default_factory=Names)
    moves: list[Move] = field(default_factory=list)  # of the whole run
    begun: int = 0  # how many moves were made before the goal at hand
    last: bool = True  # no goal comes after the one at hand
    following: Goal | None = None  # the goal after the one at hand
    answer: str | None = None  # to the question which of several things is meant

    @property
    def finder(self) -> Finder:
        """Looks for things on the screen now."""
        return Finder(self.scene, self.names)

    @property
    def earlier(self) -> Sequence[Move]:
        """The moves for the goals before."""
        return self.moves[: self.begun]

    def the(
        self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, least: float = WHOLE
    ) -> Steps[Found | None]:
        """Find the one thing that a target means; ask if several of one kind and name are in sight.

        Raises WhichError: the person does not say which.
        """
        if target.ordinal or target.under or len(rivals := self.finder.rivals(target, roles, least=least)) < 2:
            return self.finder.best(target, roles, least=least)
        choices = [self.finder.where(one.element) for one in rivals]
        if self.answer is None:
            yield from self.ask(target.name, choices)
            return (yield from self.the(target, roles, least))
        return rivals[self.chosen(target.name, choices)]

    def ask(self, name: str, choices: Sequence[str]) -> Steps[None]:
        """Ask which of several things is meant, unless the person was asked before."""
        if self.answer is None:
            question = f"{_told(name, choices)}. Which one?"
            move = yield Step("I ask which is meant.", {"action": "ask_user", "question": question})
            self.answer = move.reply.casefold()

    def chosen(self, name: str, choices: Sequence[str]) -> int:
        """Which of several things the person's answer names. Raises WhichError: none of them."""
        number = _number_in(self.answer, choices) if self.answer else None
        if number is None:
            raise WhichError(f"{_told(name, choices)}. Say which, for example “the second”.")
        return number

    def effects_of(self, move: Move) -> Effects:
        """What became of a move, up to now."""
        return effects(move.scene, self.scene, move.changes, self.changes)

    def changed_since(self, move: Move, kind: str) -> list[Change]:
        """The changes of a kind that were not told when a move was decided."""
        known = {(change.what, change.after) for change in move.changes}
        return [one for one in self.changes if one.kind == kind and (one.what, one.after) not in known]

    def point(self, x: float, y: float) -> list[int]:
        """A point of the desktop as a call names it."""
        size = self.scene.outline.size
        return [round(x * self.image.width / size.width), round(y * self.image.height / size.height)]

    def click(self, words: str, element: Element, action: str = "click", *, main: bool = True) -> Step:
        """The step that clicks an element."""
        box = element.box
        x, y = middle(box)
        if element.role in _MARKED and box.width > 1.5 * box.height:
            x = box.left + box.height / 2
        return self.click_at(words, x, y, action, main=main)

    def click_at(self, words: str, x: float, y: float, action: str = "click", *, main: bool = True) -> Step:
        """The step that clicks a point of the desktop."""
        return Step(words, {"action": action, "coordinate": self.point(x, y)}, main)

    def clicked(self, move: Move, box: Region) -> bool:
        """Whether a move clicked within a box."""
        point = move.step.call.get("coordinate")
        if not isinstance(point, list) or len(point) != 2:
            return False
        left, top = self.point(box.left, box.top)
        right, bottom = self.point(box.left + box.width, box.top + box.height)
        return bool(left <= point[0] <= right and top <= point[1] <= bottom)

    def opened(self, application: str) -> bool:
        """Whether it was tried to open the application in this run."""
        wanted = application.casefold()
        return any(
            move.action == "open" and str(move.step.call.get("text", "")).casefold() == wanted for move in self.moves
        )


def _told(name: str, choices: Sequence[str]) -> str:
    told = [f"{number}) {one}" for number, one in enumerate(choices[:_MOST_CHOICES], 1)]
    more = f" and {len(choices) - _MOST_CHOICES} more" if len(choices) > _MOST_CHOICES else ""
    return f"{len(choices)} things are called “{name}”: {', '.join(told)}{more}"


def _number_in(reply: str, choices: Sequence[str]) -> int | None:
    """The choice that a reply names: by its number ("2", "the second one"), or by its words alone."""
    words = re.findall(r"\w+", reply)
    numbers = {int(word) for word in words if word.isdecimal() and len(word) < 4}
    positions = (ORDINALS[word] for word in re.findall(rf"\b{either(ORDINALS)}\b", reply))
    numbers |= {at if at > 0 else len(choices) + 1 + at for at in positions}
    if len(numbers) == 1 and 1 <= (number := numbers.pop()) <= len(choices):
        return number - 1
    named = [at for at, choice in enumerate(choices) if reply.strip(" .") and reply.strip(" .") in choice.casefold()]
    return named[0] if len(named) == 1 else None


def press(words: str, keys: str, *, main: bool = False) -> Step:
    """The step that presses a chord."""
    return Step(words, {"action": "key", "keys": keys}, main)


def start(words: str, application: str, *, main: bool = False) -> Step:
    """The step that opens an application, a panel, a folder or a file."""
    return Step(words, {"action": "open", "text": application}, main)


def type_in(words: str, text: str, *, main: bool = False) -> Step:
    """The step that types into what has the focus."""
    return Step(words, {"action": "type", "text": text}, main)


def wait(words: str, seconds: float = 1.0) -> Step:
    """Look again before anything is done a second time: a late effect would be undone by it."""
    return Step(words, {"action": "wait", "seconds": seconds})


def until(check: Callable[[], _T], words: str, times: int = 2, seconds: float = 1.0) -> Steps[_T]:
    """Look up to `times` times more until `check` gives something true. Return what it gave last."""
    for _ in range(times):
        if found := check():
            return found
        yield wait(words, seconds)
    return check()
