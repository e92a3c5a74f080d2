"""A screen whose panel asks for approval: the keys that answer, and what keeps other keys from answering."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual.binding import Binding

from agent.tui.screens.steps import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.approval import ApprovalPanel
from agent.tui.widgets.prompt import Prompt

#: An answer is a key by itself: so many seconds pass before and after it without another.
_ALONE = 0.2


class AnsweringScreen(StepsScreen):
    """Has an `ApprovalPanel` and a `Prompt`, and takes the person's answers.

    Args:
        view: the run that is shown.
        clock: seconds.
    """

    BINDINGS: ClassVar = [
        Binding("y", "yes", "Yes, once", show=False),
        Binding("a", "always", "Always, in this scope", show=False),
        Binding("n", "no", "No", show=False),
        Binding("i", "instead", "No, do this instead", show=False),
        Binding("e", "edit", "Change it", show=False),
        Binding("x", "skip", "Skip it", show=False),
    ]

    def __init__(self, view: RunView, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(view)
        self._clock = clock
        self._keys = 0
        self._key_times = (-_ALONE, -_ALONE)  # of the last key, and of the one before

    def show_status(self) -> None:
        """Called after every answer, for a screen that shows how the run stands."""

    def answer(self, allowed: bool, **more: Any) -> None:
        """Give the person's decision."""
        self.query_one(ApprovalPanel).answer(allowed, **more)
        self.show_status()

    def key_pressed(self) -> None:
        """A key is about to do whatever it does."""
        self._keys += 1
        self._key_times = (self._clock(), self._key_times[0])

    def _takes_answers(self) -> bool:
        """Whether a key answers now; says why where it does not."""
        now, before = self._key_times
        if not self.query_one(ApprovalPanel).takes_keys or now - before < _ALONE:
            self.notify("That was too fast to be an answer: press one key.", timeout=2)
            return False
        return True

    def _answer_alone(self, allowed: bool, **more: Any) -> None:
        """Answer, unless another key follows at once."""
        if not self._takes_answers():
            return
        asking, keys = self.query_one(ApprovalPanel), self._keys
        wanted = asking.wanted

        def answer() -> None:
            if self._keys == keys and asking.wanted is wanted:
                self.answer(allowed, **more)

        self.set_timer(_ALONE, answer)

    def action_yes(self) -> None:
        """Allow it, this once."""
        self._answer_alone(True)

    def action_always(self) -> None:
        """Allow it, and everything of the same scope."""
        asking = self.query_one(ApprovalPanel)
        if asking.wanted is not None and asking.wanted.question.scope:
            self._answer_alone(True, always=True)

    def action_no(self) -> None:
        """Do not allow it."""
        self._answer_alone(False)

    def action_skip(self) -> None:
        """Go on without it."""
        self._answer_alone(False, note="Skip it and go on with the next part.")

    def action_instead(self) -> None:
        """Do not allow it, and say what to do."""
        if self._takes_answers():
            self.query_one(Prompt).open("instead")

    def action_edit(self) -> None:
        """Change it before it is done."""
        asking = self.query_one(ApprovalPanel)
        if self._takes_answers() and asking.wanted is not None:
            from agent.tui.action_text import editable

            self.query_one(Prompt).open("edit", editable(asking.wanted.target))

    def answer_changed(self, written: str) -> bool:
        """Allow what the person made of the action; False where that cannot be read, which is said."""
        wanted = self.query_one(ApprovalPanel).wanted
        if wanted is None:
            return True
        try:
            from agent.tui.action_text import edited

            viewport = self._view.rows[-1].viewport if self._view.rows else None
            action = edited(wanted.target, written, viewport.region if viewport is not None else None)
        except ValueError as error:
            self.query_one(ApprovalPanel).complain(str(error))
            self.query_one(Prompt).open("edit", written)
            return False
        self.answer(True, instead=None if action == wanted.target else action)
        return True

    def let_held_go(self) -> None:
        """Do what was held only by the pause; what a rule asks about takes an answer of its own."""
        asking = self.query_one(ApprovalPanel)
        if asking.wanted is not None and asking.wanted.question.held and asking.takes_keys:
            self.answer(True)
