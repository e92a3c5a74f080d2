"""A screen whose panel asks for approval: the keys that answer, and what keeps other keys from answering."""

from collections.abc import Callable
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import getters
from textual.binding import Binding

from agent.conductor import ApprovalWanted
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.safety.question_text import lines_of
from agent.tui.screens.steps import StepsScreen
from agent.tui.view import RunView
from agent.tui.widgets.approval import ApprovalPanel
from agent.tui.widgets.prompt import Prompt, Purpose

#: Seconds without another key before and after a key that counts as an answer.
_ALONE = 0.2
#: On terminals that are not low: rows of the history that stay beside a question; rows that a question may always take,
#: enough for the reason and a page of text; and the share of the screen that it may take if that is more.
_ROWS, _ENOUGH, _SHARE = 3, 14, 0.6
#: Characters of a question that are laid out for the three lines that show it.
_LONGEST_QUESTION = 1000
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
        Binding("a", "answer('always')", "Yes, for the rest of the run", show=False),
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

    def say(self, text: str) -> None:
        raise NotImplementedError

    def key_pressed(self) -> None:
        self._keys += 1
        self._key_times = (self._clock(), self._key_times[0])

    def _takes_answers(self) -> bool:
        """Whether a key counts as an answer now. If it does not, show the person why."""
        now, before = self._key_times
        if not self.asking.takes_keys or now - before < _ALONE:
            self.say("That was too fast to be an answer: press one key.")
            return False
        return True

    def write(self, purpose: Purpose, text: str = "") -> None:
        self.add_class("-writing")
        self.fit_question()
        self.prompt.open(purpose, text)

    def written(self) -> None:
        self.remove_class("-writing")
        self.fit_question()

    def _all_was_shown(self) -> bool:
        """Whether the action may be approved; if not, scroll on to the unread part and say so."""
        if self.asking.complete:
            return True
        self.asking.reader.read_on()
        self.say("Not all of it was in sight yet." if self.asking.fits else "Make the terminal larger first.")
        return False

    def action_answer(self, name: str, then: Callable[[], None] = lambda: None) -> None:
        """Answer unless another key follows at once, and then call `then`."""
        allows = _ANSWERS[name]["allowed"]
        if not self._takes_answers() or (allows and not self._all_was_shown()):
            return
        keys, wanted = self._keys, self.asking.wanted

        def answer() -> None:
            # The terminal may have been made smaller meanwhile.
            if self._keys == keys and self.asking.wanted is wanted and (self.asking.complete or not allows):
                self.asking.answer(**_ANSWERS[name])
                then()

        self.set_timer(_ALONE, answer)

    def action_instead(self) -> None:
        if self._takes_answers():
            self.write("instead")

    def action_edit(self) -> None:
        target = self.asking.target
        if self._takes_answers() and target is not None:
            from agent.safety.editing import editable

            self.write("edit", editable(target))

    def answer_changed(self, written: str) -> bool:
        """Allow the action as the person changed it. If it cannot be parsed, show why and return False.

        A text too long for the input line was not fully visible, so ask about it again.
        """
        from agent.safety.editing import edited

        wanted, target = self.asking.wanted, self.asking.target
        if wanted is None or target is None:
            return True
        viewport = self.view.rows[-1].viewport if self.view.rows else None
        try:
            action = edited(target, written, viewport.region if viewport is not None else None)
        except ValueError as error:
            self.asking.complain(str(error))
            self.write("edit", written)
            return False
        if cell_len(written) >= self.prompt.line.size.width:
            self.ask(wanted, None if action == wanted.target else action)
        else:
            self.asking.answer(True, instead=None if action == wanted.target else action)
        return True

    def ask(self, wanted: ApprovalWanted, changed: "Action[DesktopPoint] | None" = None) -> None:
        self.asking.ask(wanted, changed)
        self.add_class("-asking")
        self.set_class(self.prompt.line.has_focus and bool(self.prompt.line.value), "-writing")
        self.fit_question()
        if not self.has_class("-writing"):  # never take a half-typed line away
            (self.asking.reader if self.asking.reader.can_focus else self.history).focus()

    def fit_question(self) -> None:
        """Give the question the free room; the instruction, its row and the state stay in sight."""
        if self.asking.wanted is None:
            return
        low = self.has_class("-low")
        # Title, rows and state; on higher terminals also the person's line and the keys.
        others = (3 if low else 4 + _ROWS) + (self.has_class("-writing") if low else 1)
        height = self.size.height - others
        if not low:
            height = min(height, max(_ENOUGH, round(self.size.height * _SHARE)))
        self.asking.fit(self.size.width, height)

    def on_resize(self) -> None:
        self.fit_question()

    def on_screen_resume(self) -> None:
        self.asking.seen_again()


def quoted_question(question: str, width: int) -> str:
    """A question on at most three lines, quoted and as one paragraph: a model must not choose the layout."""
    words = f"asks you: “{' '.join(question[:_LONGEST_QUESTION].split())}”"
    lines = [line.text for line in lines_of(words, max(20, width - 2))]
    if len(lines) > 3 or len(question) > _LONGEST_QUESTION:
        more = "… (all of it stands above)"
        lines = [*lines[:2], lines_of(lines[2], max(4, width - 2 - len(more)))[0].text + more]
    return "\n".join(lines)
