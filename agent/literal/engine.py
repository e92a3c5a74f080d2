"""The engine: decides the next action from what the instruction says and what the screen tells of its elements.

It follows the goals one by one. A goal is reached only when a control, a setting, a file, a window or the typed text
itself says so; what cannot be found is looked for where such things live, and then it says what it could not find. It
never clicks something else instead, and what it did without seeing an effect it does not call done.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.literal.do.next_step import next_step
from agent.literal.do.proof import leads, shown_by_sum
from agent.literal.find.reader import Reader
from agent.literal.find.scene import Scene
from agent.literal.goals import Click, Close, Goal, Open, Press, Type, Wait
from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError
from agent.literal.language.wording import UNDERSTOOD, describe_goal
from agent.literal.state.conversation import Conversation, Intent, Move, Reached, memory
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, WhichError
from agent.literal.vocabulary.names import Names
from agent.screen.outline import Outline

if TYPE_CHECKING:
    from PIL.Image import Image

_INSTEAD = re.compile(r"[,;]?\s*\binstead\b[.!]?\s*$|^\s*instead,?\s+", re.IGNORECASE)
_SKIP = re.compile(r"\s*(?:please )?skip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """The engine's next answer: a thought, and the arguments of one call."""

    thought: str
    arguments: dict[str, Any]


class Engine:
    """Answers chats. It keeps nothing but the loaded reader; the chat itself is its memory.

    Args:
        read: makes an outline of the words of a screenshot, for screens of which nothing else is told.
        understand: the goals of an instruction.
    """

    def __init__(
        self,
        read: "Callable[[Image], Outline] | None" = None,
        understand: Callable[[str], list[Goal]] = read_instruction,
    ) -> None:
        self._read = read or Reader().outline
        self._understand = understand

    def reply(self, conversation: Conversation) -> Reply:
        """The next answer for a conversation."""
        try:
            goals = self._understand(conversation.instruction)
        except NotUnderstoodError as error:
            return _give_up(f"{error} This is the literal engine; it understands: {UNDERSTOOD}.", ())
        told, unclear = _read_told(conversation.told)
        goals += told
        outline = conversation.screen.outline
        if outline is not None and not outline.elements:
            # Reading takes seconds: what is opened, or only waited for, needs no words.
            answer = _Run(conversation, goals, unclear, Scene(outline)).reply()
            if answer.arguments["action"] == "wait" or (answer.arguments["action"] == "open" and not outline.windows):
                return answer
        return _Run(conversation, goals, unclear, self._scene(conversation)).reply()

    def _scene(self, conversation: Conversation) -> Scene:
        outline = conversation.screen.outline
        if outline is not None and outline.elements:
            return Scene(outline)
        assert conversation.picture is not None
        words = self._read(conversation.picture.image)
        return Scene(words if outline is None else replace(outline, elements=words.elements))


class _Run:
    """One reply in the making."""

    def __init__(self, conversation: Conversation, goals: Sequence[Goal], unclear: list[str], scene: Scene) -> None:
        self._conversation = conversation
        self._goals = goals
        self._unclear = unclear
        self._scene = scene
        self._reached = list(conversation.reached)
        self._said: list[str] = []

    def reply(self) -> Reply:
        """The next step, or the end."""
        moves, goals = self._conversation.moves, self._goals
        part = moves[-1].part if moves else 0
        if moves and self._says_something_unclear(moves[-1]):
            self._said.append(f"I cannot follow what you say; I understand: {UNDERSTOOD}.")
        while part < len(goals):
            tried = [move for move in moves if move.part == part]
            if any(move.denied for move in tried):
                return self._fail(f"You did not allow this: {describe_goal(goals[part])}.")
            if skipped := [move for move in tried if move.skipped]:
                # It must not go on as if nothing had been said.
                if any(self._says_something_unclear(move) for move in skipped):
                    return self._fail("So I stop, as you did not allow what I would do.")
                self._said.append(f"You did not want this: {describe_goal(goals[part])}.")
                part += 1
                continue
            match self._verdict(part, tried):
                case Done(words, verified):
                    self._said.append(f"{words[:1].upper()}{words[1:]}.")
                    self._reached.append(Reached(words, verified))
                    part += 1
                case Stuck(words):
                    return self._fail(words)
                case Step(words, intent, arguments, about):
                    thought = " ".join([*self._said, words])
                    return Reply(thought, {**arguments, **self._memory(part, intent, about)})
        return self._end()

    def _memory(self, part: int, intent: Intent, about: str) -> dict[str, Any]:
        return memory(part, intent, about, self._reached)

    def _verdict(self, part: int, tried: Sequence[Move]) -> Verdict:
        if any(move.has("dry_run") for move in tried):
            return self._dry_verdict(part)
        state = self._state(part, tried)
        try:
            verdict = next_step(state)
        except WhichError as error:
            if state.tried("ask"):  # nobody answered, or not with one of them
                return Stuck(f"{error.words}. Say which, for example “the second”.")
            return Step(
                "I ask which is meant.", "ask", {"action": "ask_user", "question": f"{error.words}. Which one?"}
            )
        if any(move.has("dry_run") for move in self._conversation.moves):
            return self._dry_start(part, verdict)
        return verdict

    def _dry_verdict(self, part: int) -> Verdict:
        """After the first step of a goal, nothing more can be known of it: the effect of that is not to be seen."""
        return Done(f"what follows to {describe_goal(self._goals[part])} depends on what that shows", verified=False)

    def _dry_start(self, part: int, verdict: Verdict) -> Verdict:
        """The start of a later goal of a dry run, as far as it does not depend on what was only told before it."""
        goal = self._goals[part]
        free = isinstance(goal, Open | Press | Wait) or (isinstance(goal, Type) and goal.into is None)
        before = self._goals[:part]
        untouched = not any(isinstance(one, Open | Click | Close | Press) for one in before)
        if free or (untouched and isinstance(verdict, Step) and verdict.intent in ("act", "focus")):
            return verdict
        return Done(f"how to {describe_goal(goal)} cannot be known before the rest is really done", verified=False)

    def _state(self, part: int, tried: Sequence[Move]) -> GoalState:
        conversation, goals = self._conversation, self._goals
        image = conversation.picture.size if conversation.picture is not None else self._scene.outline.size
        return GoalState(
            goal=goals[part],
            moves=tried,
            earlier=[move for move in conversation.moves if move.part < part],
            scene=self._scene,
            changes=conversation.changes,
            last=part == len(goals) - 1,
            following=goals[part + 1] if part + 1 < len(goals) else None,
            image=image,
            names=Names.told(conversation.screen.environ),
        )

    def _says_something_unclear(self, move: Move) -> bool:
        return any(note.kind == "said" and note.detail in self._unclear for note in move.notes)

    def _fail(self, words: str) -> Reply:
        return _give_up(" ".join([*self._said, words]), self._reached)

    def _end(self) -> Reply:
        moves = self._conversation.moves
        left_out = {move.part for move in moves if move.skipped}
        kept = [goal for at, goal in enumerate(self._goals) if at not in left_out]
        if left_out and not kept:
            return self._fail("Nothing else was to be done.")
        done = "; ".join(map(describe_goal, kept))
        evidence = [one.words for one in self._reached if one.verified]
        unverified = self._unverified(kept)
        if any(move.has("dry_run") for move in moves):
            words = " ".join([*self._said, "Dry run: that is as far as it can be known."])
            return Reply(words, {"action": "answer", "text": words})
        if unverified:
            words = " ".join([*self._said, "I did what was asked, but nothing shows that it took effect."])
        else:
            words = " ".join([*self._said, f"{'All other parts' if left_out else 'All parts'} are done: {done}."])
        return Reply(words, _finish("success", words, evidence, verified=not unverified))

    def _unverified(self, goals: Sequence[Goal]) -> list[Reached]:
        """What nothing shows of these goals, which were reached; what only leads to the next is shown by that one."""
        parts = list(zip(goals, self._reached, strict=False))
        summed = shown_by_sum(goals, self._reached)
        return [
            one
            for at, (goal, one) in enumerate(parts)
            if not one.verified
            and at not in summed
            and not (leads(goal) and next((later.verified for g, later in parts[at + 1 :] if not leads(g)), False))
        ]


def _read_told(texts: Sequence[str]) -> tuple[list[Goal], list[str]]:
    """What the person said since, as goals that come after all others; and what cannot be understood."""
    goals: list[Goal] = []
    unclear: list[str] = []
    for text in texts:
        if _SKIP.match(text):
            continue
        try:
            goals += read_instruction(_INSTEAD.sub("", text))
        except NotUnderstoodError:
            unclear.append(text)
    return goals, unclear


def _give_up(words: str, reached: Sequence[Reached]) -> Reply:
    return Reply(words, _finish("fail", words, [one.words for one in reached if one.verified], verified=False))


def _finish(status: str, words: str, evidence: Sequence[str], *, verified: bool) -> dict[str, Any]:
    return {"action": "terminate", "status": status, "text": words, "evidence": list(evidence), "verified": verified}
