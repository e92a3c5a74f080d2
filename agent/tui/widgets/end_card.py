"""The card at the end of a run: how it ended, what changed, what shows that, and the keys for what comes next."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent.events.change_words import in_words
from agent.tui.view import SIGNS, TONES, RunView
from foundation.foreign_text import on_one_line

_SIGNS = {"good": SIGNS["done"], "plain": SIGNS["dry"], "doubt": "?", "bad": SIGNS["failed"]}


class EndCard(VerticalScroll, can_focus=False):
    """Shows how a run ended, once it has."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield Static()

    def show(self, view: RunView, keys: str = "") -> None:
        self.display = view.state == "ended"
        self.border_subtitle = keys
        if not self.display:
            return
        words = card_words(view)
        if words != self._shown:
            self._shown = words
            for tone in TONES:
                self.set_class(view.ending[1] == tone, f"-{tone}")
            self.query_one(Static).update(words)


def card_words(view: RunView, most: int | None = None) -> Content:
    """Return the card's text, with at most `most` lines of each list."""
    ending, tone = view.outcome_words, view.ending[1]
    message = on_one_line(in_words(view.stage, (*view.changes, *view.taken_back)))
    sign = SIGNS["skipped"] if view.outcome == "stopped" else _SIGNS[tone]
    parts = [(f"{sign} {ending}", f"bold {TONES[tone]}"), (f"  {message}\n" if message else "\n", "")]
    changes = {str(change) for change in view.changes}
    evidence = [
        line for line in view.evidence if line not in changes and on_one_line(line).casefold() not in message.casefold()
    ]
    lists = (
        ("undone  ", [(line, "") for line in view.undone], ""),
        ("changed " if view.changes else "", [(line.words, line.exactly) for line in view.receipt], ""),
        ("shows   ", [(line, "") for line in evidence], TONES["doubt"] if view.outcome == "unverified" else ""),
    )
    for name, lines, colour in lists:
        for at, (words, exactly) in enumerate(lines[:most]):
            parts += [(name if at == 0 else " " * len(name), "$text-muted"), (on_one_line(words), colour)]
            parts += [(f"  ({on_one_line(exactly)})" if exactly else "", "$text-muted"), ("\n", "")]
        if most is not None and len(lines) > most:
            parts.append((f"{'':8}and {len(lines) - most} more\n", "$text-muted"))
    return Content.assemble(*parts).rstrip()
