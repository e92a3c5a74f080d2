"""A screen whose panel asks for approval: the keys that answer, and what keeps other keys from answering."""

from collections.abc import Callable
from typing import Any, ClassVar

from textual import getters
from textual.binding import Binding

from agent.tui.screens.steps import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.approval import ApprovalPanel
from agent.tui.widgets.prompt import Prompt

#: An answer is a key by itself: so many seconds pass before and after it without another.
_ALONE = 0.2
_ANSWERS: dict[str, dict[str, Any]] = {
    "yes": {"allowed": True},
    "always": {"allowed": True, "always": True},
    "no": {"allowed": False},
    "skip": {"allowed": False, "skip": True},
}


class AnsweringScreen(StepsScreen):
    """Has an `ApprovalPanel` and a `Prompt`, and takes the person's answers."""

    BINDINGS: ClassVar = [
        Binding("y", "answer('yes')", "Yes, once", show=False),
        Binding("a", "answer('always')", "Always, in this scope", show=False),
        Binding("n", "answer('no')", "No", show=False),
        Binding("i", "instead", "No, do this instead", show=False),
        Binding("e", "edit", "Change it", show=False),
        Binding("x", "answer('skip')", "Skip it", show=False),
    ]

    asking = getters.query_one(ApprovalPanel)
    prompt = getters.query_one(Prompt)

    def __init__(self, view: RunView, clock: Callable[[], float]) -> None:
        super().__init__(view)
        self._clock = clock
        self._keys = 0
        self._key_times = (-_ALONE, -_ALONE)  # of the last key, and of the one before

    def key_pressed(self) -> None:
        """A key is about to do whatever it does."""
        self._keys += 1
        self._key_times = (self._clock(), self._key_times[0])

    def _takes_answers(self) -> bool:
        """Whether a key answers now; says why where it does not."""
        now, before = self._key_times
        if not self.asking.takes_keys or now - before < _ALONE:
            self.notify("That was too fast to be an answer: press one key.", timeout=2)
            return False
        return True

    def action_answer(self, name: str) -> None:
        """Answer, unless another key follows at once."""
        if not self._takes_answers():
            return
        keys, wanted = self._keys, self.asking.wanted

        def answer() -> None:
            if self._keys == keys and self.asking.wanted is wanted:
                self.asking.answer(**_ANSWERS[name])

        self.set_timer(_ALONE, answer)

    def action_instead(self) -> None:
        if self._takes_answers():
            self.prompt.open("instead")

    def action_edit(self) -> None:
        wanted = self.asking.wanted
        if self._takes_answers() and wanted is not None:
            from agent.tui.action_text import editable

            self.prompt.open("edit", editable(wanted.target))

    def answer_changed(self, written: str) -> bool:
        """Allow what the person made of the action; False where that cannot be read, which is said."""
        from agent.tui.action_text import edited

        wanted = self.asking.wanted
        if wanted is None:
            return True
        viewport = self.view.rows[-1].viewport if self.view.rows else None
        try:
            action = edited(wanted.target, written, viewport.region if viewport is not None else None)
        except ValueError as error:
            self.asking.complain(str(error))
            self.prompt.open("edit", written)
            return False
        self.asking.answer(True, instead=None if action == wanted.target else action)
        return True

    def let_held_go(self) -> None:
        """Do what was held only by the pause; what a rule asks about takes an answer of its own."""
        wanted = self.asking.wanted
        if wanted is not None and wanted.question.held and self.asking.takes_keys:
            self.asking.answer(True)
