"""Shows the state of a run in one line; and the card at its end: how it ended, what changed, and the evidence."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from agent.events.change_words import in_words
from agent.run.control import Hold
from agent.tui.view import SIGNS, TONES, RunView, State
from foundation.foreign_text import harmless, on_one_line

_COLOURS: dict[State, str] = {
    "idle": "$text-muted", "preparing": "$text-accent", "running": "$text-success", "asking": "$text-warning",
    "paused": "$text-warning",
}  # fmt: skip
_GROUNDS = {"DRY RUN": "primary", "SANDBOX": "success", "LIVE": "error"}


class StatusLine(Static):
    """One line about a run."""

    DEFAULT_CSS = "StatusLine { height: 1; background: $panel; padding: 0 1; }"

    def show(self, view: RunView, seconds: float, server: str = "", held_by: Hold = "", note: str = "") -> None:
        """Show the state of the run.

        With `note`, show this sentence instead of the numbers, or alone if both do not fit.
        """
        word = view.state_name(held_by)
        colour = TONES[view.ending[1]] if view.state == "ended" else _COLOURS[view.state]
        if held_by:
            colour = "$text-warning"
        mode = "DRY RUN" if view.dry_run else "SANDBOX" if view.sandbox else "LIVE"
        parts = [(f" {mode} ", f"bold $text on ${_GROUNDS[mode]}-muted")]
        parts += [(" ✓", "$success")] if word == "DONE" else []  # green in 16 colours, too
        parts.append((f" {word} ", f"bold {colour}"))
        if note:
            room = self.size.width - sum(cell_len(text) for text, _ in parts) - 3
            self.update(
                Content.assemble(*(parts if cell_len(note) <= room else []), (f" {note}", "bold $text-warning"))
            )
            return
        if view.step:
            limit = f" of {view.max_steps}" if view.max_steps is not None and view.active else ""
            parts.append((f" step {view.step}{limit} ", ""))
        if view.active or view.seconds:
            shown = seconds if view.active else view.seconds
            parts.append((f" {int(shown) // 60}:{int(shown) % 60:02} ", "$text-muted"))
        if view.engine:
            model = "" if view.model in ("", view.engine) else f" · {harmless(view.model)}"
            parts.append((f" {harmless(view.engine)}{model} ", "$text-muted"))
        if server:
            parts.append((f" {harmless(server)} ", "$text-muted"))
        elif view.tokens:
            parts.append((f" {view.tokens:,} tokens ", "$text-muted"))
        self.update(Content.assemble(*parts))


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
        words = card_words(view, keys=keys if self.screen.has_class("-low") else "")  # without a border, no subtitle
        if words != self._shown:
            self._shown = words
            for tone in TONES:
                self.set_class(view.ending[1] == tone, f"-{tone}")
            self.query_one(Static).update(words)


def card_words(view: RunView, most: int | None = None, keys: str = "") -> Content:
    """Return the card's text, with at most `most` lines of each list, and the keys in its first line."""
    ending, tone = view.outcome_words, view.ending[1]
    message = on_one_line(in_words(view.stage, (*view.changes, *view.taken_back)))
    sign = SIGNS["skipped"] if view.outcome == "stopped" else _SIGNS[tone]
    parts = [(f"{sign} {ending}", f"bold {TONES[tone]}"), (f"  {keys}\n" if keys else "  ", "$text-muted")]
    parts.append((f"{message}\n", ""))
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
