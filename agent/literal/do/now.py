"""The state that a goal is pursued with: the current screen, the run's moves, and the steps it can take.

A generator (`Pursuit`) pursues a goal. It yields a step, receives the `Move` after the screen has settled, and returns
the evidence that the goal is reached. It raises StuckError if it cannot be reached.
"""

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.core.notes import Note, NoteKind
from agent.literal.find.effects import Effects, effects, new_changes
from agent.literal.find.finder import WHOLE, Finder, fit_of
from agent.literal.find.scene import CLICKABLE, SWITCHES, TEXTS, Scene
from agent.literal.goals import PANELS, Goal, Question, Target
from agent.literal.vocabulary.lexicon import ORDINALS, either
from agent.literal.vocabulary.translations import Names
from agent.screen.outline import Element

#: Roles with a mark at the left end of their box; a click on the mark works in all toolkits.
_MARKED = frozenset({"check box", "radio button"})
#: Most choices listed in a question.
_MOST_CHOICES = 6


@dataclass(frozen=True, slots=True)
class Step:
    """The next action for a goal."""

    words: str
    call: Mapping[str, Any]  # the arguments of the call: "action", "coordinate" and so on
    main: bool = False  # the goal's own action, not one on the way to it
    #: whether the current screen shows what the step was done for; None: wait until the screen is still
    until: Callable[[], object] | None = None

    @classmethod
    def press(cls, words: str, keys: str, *, main: bool = False) -> "Step":
        """Return the step that presses a key combination."""
        return cls(words, {"action": "key", "keys": keys}, main)

    @classmethod
    def select_all(cls) -> "Step":
        """Return the step that selects a field's text. Typed text arrives after the keys, so nothing is awaited."""
        return cls("Select what stands there, to replace it.", {"action": "key", "keys": "ctrl+a"}, until=lambda: True)

    @classmethod
    def start(cls, words: str, application: str, *, main: bool = False) -> "Step":
        """Return the step that opens an application, a panel, a folder or a file."""
        return cls(words, {"action": "open", "text": application}, main)

    @classmethod
    def type(cls, words: str, text: str, *, main: bool = False) -> "Step":
        """Return the step that types into the focused element."""
        return cls(words, {"action": "type", "text": text}, main)

    @classmethod
    def wait(cls, words: str, seconds: float = 1.0) -> "Step":
        """Return a wait. Wait before repeating an action, because a repetition would undo a late effect."""
        return cls(words, {"action": "wait", "seconds": seconds})


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached. `words` have the evidence, or the action if there is no evidence."""

    words: str
    verified: bool = True
    on_the_way: bool = False  # it only led to what came next, whose success proves it


@dataclass(frozen=True, slots=True)
class Already(Done):
    """The goal was reached before anything was done for it."""


class StuckError(Exception):
    """The goal cannot be reached; the message is the reason."""


class WhichError(Exception):
    """Several things have the wanted name, and the person's answer names none of them."""


#: How a note quotes a typed text that is not truncated.
_TYPED = re.compile(r"type “([^“”…]+)”")


@dataclass(frozen=True, slots=True)
class Move:
    """A step that was carried out, with the screen before it."""

    step: Step
    scene: Scene
    changes: Sequence[Change] = ()  # changes of the computer from the run's start until the step
    notes: tuple[Note, ...] = ()  # the program's notes on it
    reply: str = ""  # the person's answer to it

    def typed(self, text: str) -> str:
        """Return the typed text, or the person's version if they changed it."""
        changed = [note.detail for note in self.notes if note.kind == "changed"]
        theirs = _TYPED.fullmatch(changed[-1]) if changed else None
        return text if theirs is None else theirs[1]

    def has(self, kind: NoteKind) -> bool:
        """Return whether it has a note of this kind."""
        return any(note.kind == kind for note in self.notes)

    @property
    def action(self) -> str:
        """The action's name."""
        return str(self.step.call["action"])

    @property
    def failure(self) -> str | None:
        """The reason why it failed; None if it succeeded."""
        return next((note.detail for note in self.notes if note.kind == "failed"), None)

    @property
    def outdated(self) -> bool:
        """Whether it was left out because something changed since the look."""
        return (self.failure or "").endswith("look again")

    @property
    def denied(self) -> bool:
        """Whether the person refused it without a message."""
        return self.has("refused") and not self.has("said")

    @property
    def skipped(self) -> bool:
        """Whether the person skipped it, or refused it with a message."""
        return self.has("skipped") or (self.has("refused") and self.has("said"))


_T = TypeVar("_T")
#: A generator of steps that returns a value. It may raise StuckError.
Steps = Generator[Step, Move, _T]
Pursuit: TypeAlias = Steps[Done]
#: Steps that end with another goal if the control is of another kind.
OrGoal: TypeAlias = Steps[Done | Goal]


@dataclass
class Now:
    """The run as the current goal sees it. The engine replaces `scene` and `changes` before each decision."""

    scene: Scene
    changes: Sequence[Change] = ()  # changes of the computer since the run began
    image: Size = field(default_factory=lambda: Size(1, 1))  # the screenshot's size; calls use its pixels
    names: Names = field(default_factory=Names)
    moves: list[Move] = field(default_factory=list)  # of the whole run
    begun: int = 0  # number of moves before the current goal
    last: bool = True  # the current goal is the last
    following: Goal | None = None  # the next goal
    answer: str | None = None  # the person's answer to the question which of several things is meant
    asks: bool = False  # a person can be asked
    #: targets that a text model found for steps of a recipe, by the steps' numbers; None if there is no such model
    repairs: dict[int, Target] | None = None
    question: Question | None = None  # for the text model
    #: what is on a panel or dock counts, too, although an earlier goal opened a window
    anywhere: bool = False

    @property
    def finder(self) -> Finder:
        """A finder for the current screen."""
        return Finder(self.scene, self.names)

    def fits(self, text: str, name: str) -> bool:
        """Return whether a text is a name, or its translation."""
        return any(fit_of(text, one) >= WHOLE for one in self.names.of(name))

    @property
    def earlier(self) -> Sequence[Move]:
        """The moves for earlier goals."""
        return self.moves[: self.begun]

    def the(
        self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, least: float = WHOLE
    ) -> Steps[Element | None]:
        """Find the thing that a target means; ask if several of one kind and name are visible."""
        # A shell's own menus have switches, in no window.
        free = self.anywhere or target.inside == PANELS or set(roles) <= SWITCHES
        is_bound = self.scene.front is not None and not free
        opened = is_bound and any(move.action == "open" and move.step.main for move in self.earlier)
        finder = Finder(self.scene, self.names, in_windows=opened)
        if target.ordinal or target.under or len(rivals := finder.rivals(target, roles, least=least)) < 2:
            return finder.best(target, roles, least=least)
        answered = self.answer is not None
        at = yield from self.pick(target.name, [self.finder.where(one.element) for one in rivals])
        return rivals[at].element if answered else (yield from self.the(target, roles, least))

    def first(self, targets: Iterable[Target], roles: Collection[str], least: float = WHOLE) -> Steps[Element | None]:
        """Find the thing that the first of several targets means; see `the`."""
        for target in targets:
            if (found := (yield from self.the(target, roles, least))) is not None:
                return found
        return None

    def pick(self, name: str, choices: Sequence[str]) -> Steps[int]:
        """Ask which of several things is meant, unless the person was asked before; return its index.

        Raises WhichError if the answer names none.
        """
        named = [f"{number}) {one}" for number, one in enumerate(choices[:_MOST_CHOICES], 1)]
        more = f" and {len(choices) - _MOST_CHOICES} more" if len(choices) > _MOST_CHOICES else ""
        summary = f"{len(choices)} things are called “{name}”: {', '.join(named)}{more}"
        if self.answer is None:
            question = f"{summary}. Which one?"
            move = yield Step("I ask which is meant.", {"action": "ask_user", "question": question})
            self.answer = move.reply.casefold()
        number = choice_in(self.answer, choices) if self.answer else None
        if number is None:
            raise WhichError(f"{summary}. Say which, for example “the second”.")
        return number

    def effects_of(self, move: Move) -> Effects:
        """Return the effects of a move up to now."""
        return effects(move.scene, self.scene, move.changes, self.changes)

    def changed_since(self, move: Move, kind: str) -> list[Change]:
        """Return the changes of a kind that were not known before a move."""
        return [one for one in new_changes(move.changes, self.changes) if one.kind == kind]

    def point(self, x: float, y: float) -> list[int]:
        """Convert desktop coordinates to screenshot pixels."""
        size = self.scene.outline.size
        return [round(x * self.image.width / size.width), round(y * self.image.height / size.height)]

    def click(self, words: str, element: Element, action: str = "click", *, main: bool = True) -> Step:
        """Return the step that clicks an element."""
        box = element.box
        x, y = box.middle.x, box.middle.y
        if element.role in _MARKED and box.width > 1.5 * box.height:
            x = box.left + box.height / 2
        elif element.role == "spin button":  # its text, not the buttons beside it, which change the number
            x = box.left + min(box.width * 0.3, 24)
        return self.click_at(words, x, y, action, main=main)

    def click_at(self, words: str, x: float, y: float, action: str = "click", *, main: bool = True) -> Step:
        """Return the step that clicks a point in desktop coordinates."""
        return Step(words, {"action": action, "coordinate": self.point(x, y)}, main)

    def clicked(self, move: Move, box: Region) -> bool:
        """Return whether a move clicked within a box."""
        point = move.step.call.get("coordinate")
        if not isinstance(point, list) or len(point) != 2:
            return False
        left, top = self.point(box.left, box.top)
        right, bottom = self.point(box.right, box.bottom)
        return bool(left <= point[0] <= right and top <= point[1] <= bottom)

    def opened(self, application: str) -> bool:
        """Return whether the run has tried to open the application."""
        wanted = application.casefold()
        return any(
            move.action == "open" and str(move.step.call.get("text", "")).casefold() == wanted for move in self.moves
        )


#: Words of a reply around the words that name a choice.
_AROUND = frozenset(
    "the one that in at on of from under with folder file window please i mean it is".split()  # noqa: SIM905
)


def choice_in(reply: str, choices: Sequence[str]) -> int | None:
    """Return the index of the choice that a reply names: by number ("2", "the second one") or by its words."""
    words = re.findall(r"\w+", reply)
    numbers = {int(word) for word in words if word.isdecimal() and len(word) < 4}
    positions = (ORDINALS[word] for word in re.findall(rf"\b{either(ORDINALS)}\b", reply))
    numbers |= {at if at > 0 else len(choices) + 1 + at for at in positions}
    if len(numbers) == 1 and 1 <= (number := numbers.pop()) <= len(choices):
        return number - 1
    named = [at for at, choice in enumerate(choices) if reply.strip(" .") and reply.strip(" .") in choice.casefold()]
    if len(named) == 1:
        return named[0]
    told = [set(re.findall(r"\w+", choice.casefold())) for choice in choices]  # "the one in Downloads"
    fitting = [at for at, choice in enumerate(told) if set(words) - _AROUND <= choice]
    return fitting[0] if len(fitting) == 1 and set(words) - _AROUND else None


def agrees(words: str, question: str) -> Steps[bool]:
    """Ask a question, and return whether the person says yes."""
    move = yield Step(words, {"action": "ask_user", "question": f"{question} (yes or no)"})
    return move.reply.strip(" .!").casefold() in ("y", "yes")


def opened(step: Step, check: Callable[[], object], name: str) -> Steps[None]:
    """Open something, and wait until it is there."""
    attempt = yield step
    if attempt.failure is not None:
        raise StuckError(f"I could not open “{name}”: {attempt.failure}.")
    failed = f"I opened “{name}”, but it did not come to the front."
    yield from surely(check, f"“{name}” is not visible yet: wait.", failed, 6)


def until(check: Callable[[], _T], words: str, times: int = 2, seconds: float = 1.0) -> Steps[_T]:
    """Wait up to `times` times until `check` returns something true. Return its last result."""
    for _ in range(times):
        if found := check():
            return found
        yield Step.wait(words, seconds)
    return check()


def surely(check: Callable[[], _T | None], words: str, failed: str, times: int = 2, seconds: float = 1.0) -> Steps[_T]:
    """Wait as `until` does. Raise StuckError with the message `failed` if `check` returns nothing true."""
    if found := (yield from until(check, words, times, seconds)):
        return found
    raise StuckError(failed)
