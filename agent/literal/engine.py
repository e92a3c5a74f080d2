"""The engine: decides the next action from what the instruction says and what can be read on the screen.

It follows the goals one by one. A goal is done only when the screen shows that its action had an effect; what cannot be
found is looked for where such things live, and after a few tries the engine says what it could not find. It never
clicks something else instead.
"""

import re
from dataclasses import dataclass
from typing import Any

from agent.literal.conversation import Conversation, Move, mark
from agent.literal.goal_state import Done, GoalState, Step, Stuck
from agent.literal.goals import Click, Goal, Open, Toggle
from agent.literal.grammar import read_instruction
from agent.literal.next_step import next_step
from agent.literal.reader import Reader
from agent.literal.sentences import NotUnderstoodError
from agent.literal.wording import UNDERSTOOD, describe_goal

_INSTEAD = re.compile(r"[,;]?\s*\binstead\b[.!]?\s*$|^\s*instead,?\s+", re.IGNORECASE)
_SKIP = re.compile(r"\s*(?:please )?skip\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """The engine's next answer: a thought, and the arguments of one call."""

    thought: str
    arguments: dict[str, Any]


class Engine:
    """Answers chats. It keeps nothing but the loaded reader; the chat itself is its memory."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader or Reader()

    def reply(self, conversation: Conversation) -> Reply:
        """The next answer for a conversation."""
        try:
            goals = read_instruction(conversation.instruction)
        except NotUnderstoodError as error:
            return _end(f"{error} This is the literal engine; it understands: {UNDERSTOOD}.", success=False)
        assert conversation.screen is not None
        moves = conversation.moves
        told, unclear = _read_told(conversation.told)
        goals += told
        if moves and moves[-1].has("dry_run"):
            return Reply(
                "This is a dry run: the screen does not show what my action would have changed.",
                {"action": "answer", "text": "Dry run: this is the first step; the next depend on what it changes."},
            )
        part = moves[-1].part if moves else 0
        said: list[str] = []
        if moves and _says_one_of(unclear, moves[-1]):
            said.append(f"I cannot follow what you say; I understand: {UNDERSTOOD}.")
        while part < len(goals):
            tried = [move for move in moves if move.part == part]
            if any(move.denied for move in tried):
                return _end(" ".join([*said, f"You did not allow this: {describe_goal(goals[part])}."]), success=False)
            if skipped := [move for move in tried if move.skipped]:
                # It must not go on as if nothing had been said.
                if any(_says_one_of(unclear, move) for move in skipped):
                    return _end(" ".join([*said, "So I stop, as you did not allow what I would do."]), success=False)
                said.append(f"You did not want this: {describe_goal(goals[part])}.")
                part += 1
                continue
            now = GoalState(
                goal=goals[part],
                moves=tried,
                earlier=[move for move in moves if move.part < part],
                image=conversation.screen.image,
                read=self._reader.read,
                last=part == len(goals) - 1,
                been=tuple(_names(goal) for goal in goals[:part]),
            )
            match next_step(now):
                case Done(words):
                    said.append(words)
                    part += 1
                case Stuck(words):
                    return _end(" ".join([*said, words]), success=False)
                case Step(words, intent, arguments):
                    thought = " ".join([*said, words, mark(part, len(goals), intent)])
                    return Reply(thought, arguments)
        left_out = {move.part for move in moves if move.skipped}
        done = "; ".join(describe_goal(goal) for at, goal in enumerate(goals) if at not in left_out)
        parts = "All other parts" if left_out else "All parts"
        return _end(f"{' '.join(said)} {parts} are done: {done or 'none'}.", success=True)


def _says_one_of(texts: list[str], move: Move) -> bool:
    return any(note.kind == "said" and note.detail in texts for note in move.notes)


def _read_told(texts: list[str]) -> tuple[list[Goal], list[str]]:
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


def _names(goal: Goal) -> str:
    """What a goal is about, "" for goals about nothing on the screen."""
    match goal:
        case Open(name):
            return name
        case Click(target) | Toggle(target):
            return target.name
        case _:
            return ""


def _end(words: str, *, success: bool) -> Reply:
    status = "success" if success else "fail"
    return Reply(words, {"action": "terminate", "status": status, "text": words})
