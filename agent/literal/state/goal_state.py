"""Where the engine stands with one goal: what was tried, what the screen tells, and what may come of it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.literal.find.finder import WHOLE, Finder, Found
from agent.literal.find.scene import CLICKABLE, TEXTS, Scene, middle
from agent.literal.goals import Goal, Target
from agent.literal.state.conversation import Intent, Move
from agent.literal.state.effects import Effects, effects
from agent.literal.vocabulary.lexicon import either
from agent.literal.vocabulary.names import Names
from agent.literal.vocabulary.ordinals import ORDINALS
from agent.screen.outline import Element

#: Their mark stands at the left end of their box, and only there everywhere.
_MARKED = frozenset({"check box", "radio button"})

#: So many of several things are told.
_MOST_CHOICES = 6
#: Seconds for which a busy window, which tells nothing of what is in it, is waited for at a time.
BUSY = 1.2


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next for a goal: the words for it, its intent, the call's arguments, and what it is about."""

    words: str
    intent: Intent
    arguments: Mapping[str, Any]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The goal is reached; `words` say what shows it, or, where it is not verified, what was done."""

    words: str
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Stuck:
    """The goal cannot be reached; `words` say why."""

    words: str


Verdict: TypeAlias = Step | Done | Stuck


class WhichError(Exception):
    """Several things have the name that the person said, and nothing tells which of them is meant.

    Args:
        name: as the person said it.
        choices: each of the things in a few words.
    """

    def __init__(self, name: str, choices: Sequence[str]) -> None:
        told = [f"{number}) {one}" for number, one in enumerate(choices[:_MOST_CHOICES], 1)]
        more = f" and {len(choices) - _MOST_CHOICES} more" if len(choices) > _MOST_CHOICES else ""
        self.words = f"{len(choices)} things are called “{name}”: {', '.join(told)}{more}"
        super().__init__(self.words)


@dataclass
class GoalState:
    """How things stand with one goal."""

    goal: Goal
    moves: Sequence[Move]  # what was tried for it
    earlier: Sequence[Move]  # what was done for the goals before it
    scene: Scene  # the screen now
    changes: Sequence[Change] = ()  # on the computer since the run began
    last: bool = True  # no goal comes after it
    following: Goal | None = None  # the goal that comes after it
    image: Size = field(default_factory=lambda: Size(1, 1))  # the screenshot's, in whose pixels points are told
    names: Names = field(default_factory=Names)  # what else things are called

    @cached_property
    def finder(self) -> Finder:
        """Looks for things on the screen now."""
        return Finder(self.scene, self.names)

    def the(self, target: Target, roles: Collection[str] = CLICKABLE | TEXTS, least: float = WHOLE) -> Found | None:
        """The one thing that a target means; None for nothing.

        Raises WhichError: several of one kind and name are in sight, and the person has not said which.
        """
        rivals = [] if target.ordinal or target.under else self.finder.rivals(target, roles, least=least)
        if len(rivals) < 2:
            return self.finder.best(target, roles, least=least)
        return rivals[self.choose(target.name, [self.finder.where(one.element) for one in rivals])]

    def choose(self, name: str, choices: Sequence[str]) -> int:
        """Which of several things the person means, by what they answered. Raises WhichError: they have not said."""
        replies = [move.reply.casefold() for move in self.tried("ask") if move.reply]
        if replies and (number := _number_in(replies[-1], choices)) is not None:
            return number
        raise WhichError(name, choices)

    @property
    def latest(self) -> Move | None:
        """The last thing tried for this goal."""
        return self.moves[-1] if self.moves else None

    def tried(self, *intents: str) -> list[Move]:
        """What was tried for this goal with one of these intents."""
        return [move for move in self.moves if move.intent in intents]

    @property
    def acted(self) -> Move | None:
        """The last action for the goal itself."""
        return next((move for move in reversed(self.moves) if move.intent == "act"), None)

    @property
    def waits(self) -> int:
        """How often in a row it was only waited for an effect, up to now; waits for a busy window are none."""
        count = 0
        for move in reversed(self.moves):
            if move.intent != "late":
                break
            count += move.call.get("seconds") != BUSY
        return count

    def effects_of(self, move: Move) -> Effects:
        """What became of a move, up to now."""
        if move.screen is None:
            return Effects()
        before = None if move.screen.outline is None else Scene(move.screen.outline)
        return effects(before, self.scene, move.screen.changes, self.changes)

    def point(self, x: float, y: float) -> list[int]:
        """A point of the desktop as a call names it."""
        size = self.scene.outline.size
        return [round(x * self.image.width / size.width), round(y * self.image.height / size.height)]

    def aim(self, element: Element) -> list[int]:
        """Where to click an element."""
        box = element.box
        x, y = middle(box)
        if element.role in _MARKED and box.width > 1.5 * box.height:
            x = box.left + box.height / 2
        return self.point(x, y)

    def click(self, words: str, intent: Intent, element: Element, action: str = "click", about: str = "") -> Step:
        """The step that clicks an element."""
        return Step(words, intent, {"action": action, "coordinate": self.aim(element)}, about or element.name[:80])

    def click_at(self, words: str, intent: Intent, x: float, y: float, action: str = "click") -> Step:
        """The step that clicks a point of the desktop."""
        return Step(words, intent, {"action": action, "coordinate": self.point(x, y)})

    def clicked(self, move: Move, box: Region) -> bool:
        """Whether a move clicked within a box."""
        point = move.call.get("coordinate")
        if not isinstance(point, list) or len(point) != 2:
            return False
        left, top = self.point(box.left, box.top)
        right, bottom = self.point(box.left + box.width, box.top + box.height)
        return bool(left <= point[0] <= right and top <= point[1] <= bottom)

    def opened(self, application: str) -> bool:
        """Whether it was tried to open the application in this run."""
        wanted = application.casefold()
        moves = (*self.earlier, *self.moves)
        return any(move.action == "open" and str(move.call.get("text", "")).casefold() == wanted for move in moves)


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


def press(words: str, intent: Intent, keys: str, about: str = "") -> Step:
    """The step that presses a chord."""
    return Step(words, intent, {"action": "key", "keys": keys}, about)


def start(words: str, intent: Intent, application: str) -> Step:
    """The step that opens an application, a panel, a folder or a file."""
    return Step(words, intent, {"action": "open", "text": application}, application)


def wait(words: str, seconds: float = 1.0) -> Step:
    """Look again before anything is done a second time: a late effect would be undone by it."""
    return Step(words, "late", {"action": "wait", "seconds": seconds})
