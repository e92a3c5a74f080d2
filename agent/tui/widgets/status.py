"""The line that says at a glance what is going on: dry or live, engine, step, time."""

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from agent.run.control import Hold
from agent.tui.view import TONES, RunView, State
from foundation.foreign_text import harmless

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
