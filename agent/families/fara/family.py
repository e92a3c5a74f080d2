"""Fara-7B: typing that clicks first and presses Enter after, and thoughts that are the answer in the end."""

from dataclasses import replace

from agent.core.actions import Action, Finish
from agent.core.geometry import GridPoint
from agent.families.base import Call, Decision
from agent.families.qwen.browsing import Fara
from agent.families.shared.computer_use import Vocabulary
from agent.families.shared.text_entry import read_typing


class Fara7(Fara):
    """Fara-7B."""

    def act(self, call: Call, words: Vocabulary) -> Action[GridPoint] | list[Action[GridPoint]]:
        """What one call stands for; Enter follows a text unless the call says otherwise."""
        return read_typing(call, words, enter=True)

    def finished(self, decision: Decision) -> Decision:
        """What it thought as it ended the task is what it has to say."""
        last = decision.actions[-1]
        if not isinstance(last, Finish) or last.message:
            return decision
        return replace(decision, actions=(*decision.actions[:-1], replace(last, message=decision.thought[:4000])))


def create() -> Fara7:
    """The family, as the registry asks for it."""
    return Fara7("fara")
