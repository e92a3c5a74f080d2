"""A recorded run in short, before it is opened: its last picture, how it ended, with what, and what was asked."""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent.core.actions import points_of
from agent.core.geometry import Region
from agent.tui.pictures.picture import Picture
from agent.tui.view import Row, RunView
from agent.tui.widgets.end_card import card_words
from foundation.foreign_text import harmless

if TYPE_CHECKING:
    from agent.record.read import Bundle

#: Seconds that the cursor rests on a run before its steps are read.
_REST = 0.12
#: The size of the area shown around the last point if no window is known, in desktop units.
_WIDTH, _HEIGHT = 480, 300
#: Lines of a receipt and of the evidence that are shown.
_MOST_LINES = 6


class RunPreview(Container):
    """Shows one run in short."""

    def compose(self) -> ComposeResult:
        yield Picture()
        with VerticalScroll(can_focus=False):
            yield Static(id="short")

    @work(exclusive=True)
    async def show(self, bundle: "Bundle | None") -> None:
        """Show a run once the cursor rests on it; reading it must not block the keys."""
        from agent.tui.recorded import view_of

        await asyncio.sleep(_REST)
        if bundle is None:
            self.query_one(Picture).show(None)
            self.query_one("#short", Static).update("")
            return
        view = await asyncio.to_thread(view_of, bundle)
        if not self.query("#short"):  # its screen was left meanwhile
            return
        self.query_one(Picture).show(_last_picture(view))
        self.query_one("#short", Static).update(_words(bundle, view))


def _last_picture(view: RunView) -> Row | None:
    """The last screenshot, around the last point or window that the run used."""
    rows = [row for row in reversed(view.rows) if row.number is not None]
    last = next((row for row in rows if row.image is not None), None)
    if last is None:
        return None
    about = next((place for row in rows if (place := row.about or _around(row)) is not None), None)
    return Row(last.number, "note", "", viewport=last.viewport, image=last.image, about=about)


def _around(row: Row) -> Region | None:
    points = () if row.target is None else points_of(row.target)
    if not points:
        return None
    x, y = points[-1].rounded()
    return Region(x - _WIDTH // 2, y - _HEIGHT // 2, _WIDTH, _HEIGHT)


def _words(bundle: "Bundle", view: RunView) -> Content:
    run = bundle.run
    desktop = "sandbox" if run.sandbox else "this desktop"
    facts = [
        ("with", " · ".join(filter(None, (view.engine, view.model, run.family)))),
        ("where", desktop + (", dry run" if run.dry_run else "")),
        ("steps", str(sum(row.number is not None for row in view.rows))),
        ("asked", asked_words(bundle)),
    ]
    lines = [(f"{name:8}{harmless(value)}\n", "$text-muted") for name, value in facts if value]
    title = (f"{harmless(view.title)}\n", "bold")
    return Content.assemble(title, card_words(view, _MOST_LINES), "\n", *lines).rstrip()


def asked_words(bundle: "Bundle") -> str:
    """How often approval was asked, and the answers, as in `3 times: 2 allowed, 1 refused`."""
    approvals = [action.approval for step in bundle.steps for action in step.each_action if action.approval is not None]
    if not approvals:
        return "nothing"
    answers = Counter(approval.answer or "not answered" for approval in approvals)
    times = "once" if len(approvals) == 1 else f"{len(approvals)} times"
    return f"{times}: " + ", ".join(f"{count} {answer}" for answer, count in answers.most_common())
