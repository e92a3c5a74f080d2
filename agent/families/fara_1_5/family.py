"""Fara 1.5: a web browser's actions, and an answer that ends the task."""

from agent.core.actions import Action
from agent.core.geometry import GridPoint
from agent.families.base import ArgumentError, Call
from agent.families.qwen.browsing import Fara
from agent.families.shared.computer_use import Vocabulary


class Fara15(Fara):
    """Fara 1.5, 4B to 27B."""

    def act(self, call: Call, words: Vocabulary) -> Action[GridPoint] | list[Action[GridPoint]]:
        """What one call stands for; a task is not ended without the answer."""
        arguments = call.arguments
        ends = str(arguments.get("action", "")).strip().lower() == "terminate"
        if ends and not str(arguments.get("answer") or "").strip() and not arguments.get("status"):
            raise ArgumentError("bad_argument", 'terminate needs an "answer"')
        return super().act(call, words)


def create() -> Fara15:
    """The family, as the registry asks for it."""
    return Fara15("fara-1.5")
