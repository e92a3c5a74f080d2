"""The panel in which an action is approved: part of the screen, not a window over it, so the run stays in sight.

Keys that were in flight when it appeared approve nothing: for half a second it takes none.
"""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from agent.actions import Action, describe_in_full, points_of
from agent.geometry import DesktopPoint
from agent.safety.text import harmless
from agent.tui.conductor import ApprovalWanted
from agent.tui.view import Row
from agent.tui.widgets.picture import Picture

#: Seconds in which a person cannot have read what is asked (codex and mistral-vibe use about as long).
GRACE = 0.5


class ApprovalPanel(Horizontal):
    """Shows what is to be approved, why it is asked, and the keys that answer."""

    DEFAULT_CSS = """
    ApprovalPanel {
        display: none;
        height: auto;
        max-height: 12;
        border: round $text-warning;
        border-title-color: $text-warning;
        padding: 0 1;
        & > Picture { width: 36; height: 9; margin-right: 1; }
        & > Picture.-none { display: none; }
        & > Vertical { height: auto; width: 1fr; }
        & #asked { text-style: bold; }
        & #why { color: $text-warning; }
        & #keys { margin-top: 1; }
        &.-waiting #keys { color: $text-disabled; }
    }
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._since = 0.0
        self.wanted: ApprovalWanted | None = None

    def compose(self) -> ComposeResult:
        yield Picture()
        with Vertical():
            yield Static(id="asked")
            yield Static(id="why")
            yield Static(id="keys")

    @property
    def takes_keys(self) -> bool:
        """Whether the person had time to read."""
        return self.wanted is not None and self._clock() - self._since >= GRACE

    def ask(self, wanted: ApprovalWanted, row: Row | None) -> None:
        """Show what is wanted."""
        self.wanted, self._since = wanted, self._clock()
        self.border_title = "may it do this?"
        self.query_one("#asked", Static).update(Content(harmless(describe_in_full(wanted.target))))
        self.query_one("#why", Static).update(Content(harmless(f"asked because {wanted.question.reason}")))
        self.query_one("#keys", Static).update(_keys(wanted.question.scope, self.screen.has_class("-small")))
        self.query_one(Picture).set_class(not points_of(wanted.target), "-none")
        self.display = True
        self.add_class("-waiting")
        self.set_timer(GRACE, lambda: self.remove_class("-waiting"))
        self.query_one(Picture).show(row)

    def complain(self, problem: str) -> None:
        """Say what is wrong with what the person wrote."""
        words = harmless(f"That cannot be read: {problem}.")
        self.query_one("#why", Static).update(Content.styled(words, "$text-error"))

    def settle(self) -> None:
        """Put it away."""
        self.wanted = None
        self.display = False

    def answer(
        self,
        allowed: bool,
        note: str = "",
        always: bool = False,
        instead: "Action[DesktopPoint] | None" = None,
        skip: bool = False,
    ) -> None:
        """Give the person's decision to whoever waits for it."""
        from agent.safety.policy import Approval

        wanted = self.wanted
        self.settle()
        if wanted is not None:
            wanted.answer(Approval(allowed, "you", note, always, instead, skip))


def _keys(scope: str, narrow: bool) -> Content:
    """The keys that answer, all of them in sight: on a narrow terminal in one word each."""
    words = ("yes", "no", "instead", "edit", "skip") if narrow else (
        " yes, once", " no", " no, do this instead", " change it", " skip"
    )  # fmt: skip
    keys = [*zip("yniex", words, strict=True), *([("a", f" always: {harmless(scope)}")] if scope else [])]
    gap = " " if narrow else "   "
    return Content.assemble(*(part for key, what in keys for part in ((f" {key} ", "reverse"), f"{what}{gap}")))
