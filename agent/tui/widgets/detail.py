"""One step in full: its screenshot with the target marked, and what was thought, answered and done."""

import json
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from agent.core.actions import AskUser, to_json
from agent.tui.pictures.picture import LEAST, Picture, pictures_wanted
from agent.tui.view import Row
from foundation.foreign_text import harmless, on_one_line

_PAGES = ("thought", "answer", "details")
#: The order of the stages in the details; what they mean is in docs/architecture.md.
_STAGES = ("capture", "fit", "encode", "prompt", "ttft", "model", "parse", "map", "act", "settle")


#: The share of the height that the words get beside a picture, and their fewest and most lines, as in the styles below.
_WORDS, _FEWEST, _MOST = 0.3, 4, 10
#: Lines of words beside a picture that would be too small otherwise.
_TIGHT = 2


class Detail(Vertical):
    """Shows one row of the history."""

    page: reactive[int] = reactive(0)
    whole: reactive[bool] = reactive(False, init=False)
    idle: reactive[Content | None] = reactive(None, init=False)  # what is shown while there is no run

    def __init__(self) -> None:
        super().__init__()
        self._row: Row | None = None
        self._pictured: Row | None = None
        self.add_class("-nothing")

    def compose(self) -> ComposeResult:
        yield Picture()
        yield Static(id="pages")
        with VerticalScroll(id="scroll", can_focus=False):
            yield Static(id="words")

    def on_mount(self) -> None:
        self.on_resize()

    def on_resize(self) -> None:
        """Give all the room to the words if a picture would be too small even beside a few lines."""
        width, height = self.size
        words = min(_MOST, max(_FEWEST, round(height * _WORDS)))
        small = width < LEAST[0] or height - _TIGHT - 1 < LEAST[1]
        self.set_class(not pictures_wanted() or small, "-wordy")
        self.set_class(height - words - 1 < LEAST[1], "-tight")

    def show(self, row: Row | None, pictured: Row | None = None) -> None:
        """Show a row, again if it changed; `pictured` is the row with the screenshot if that is another one."""
        follows = row is not None and row.mark == "thinking"
        if row is not self._row or follows:  # follow a streaming answer; show another step from its top
            scroll = self.query_one("#scroll", VerticalScroll)
            self.call_after_refresh(scroll.scroll_end if follows else scroll.scroll_home, animate=False)
        self._row, self._pictured = row, pictured or row
        self.set_class(row is None, "-nothing")
        self._show_words()
        self.call_after_refresh(self._show_picture)  # words first: a picture takes longer

    def scroll_words(self, lines: int) -> None:
        self.query_one("#scroll").scroll_relative(y=lines, animate=False)

    def watch_page(self) -> None:
        self._show_words()

    def watch_idle(self) -> None:
        self._show_words()

    def watch_whole(self) -> None:
        self.set_class(self.whole, "-whole")
        self._show_words()
        self._show_picture()

    def next_page(self) -> None:
        self.page = (self.page + 1) % len(_PAGES)

    def _show_picture(self) -> None:
        self.query_one(Picture).show(self._pictured, self.whole)

    def _show_words(self) -> None:
        if self.whole and self._row is not None:
            title = (on_one_line(self._row.words), "bold $foreground")
            self.query_one("#pages", Static).update(
                Content.assemble(" ", title, ("  z back · j k other steps", "$text-muted"))
            )
            return
        names = [(f" {name} ", "bold $foreground" if at == self.page else "") for at, name in enumerate(_PAGES)]
        self.query_one("#pages", Static).update(Content.assemble(*names, (" v next · z zoom", "$text-muted")))
        words = (
            (self.idle or Content("")) if self._row is None else (_thought, _answers, _details)[self.page](self._row)
        )
        self.query_one("#words", Static).update(words)


def _thought(row: Row) -> Content:
    if row.mark == "asking":  # what and why stand in the question
        return Content(harmless(row.thought.strip()))
    parts: list[tuple[str, str]] = [(f"{harmless(row.words)}\n", "bold")]
    if isinstance(row.target, AskUser):  # the whole question; the row has only its beginning
        parts = [("it asks you\n", "bold"), (f"{harmless(row.target.question)}\n", "")]
    facts = (
        ("on ", row.hit, "$text-muted"),
        ("", row.found, "$text-muted"),
        ("the model proposed: ", row.proposed, "$text-muted"),
        ("", row.approval, "$text-warning"),
        ("", row.outcome, "$text-error" if row.mark == "failed" else "$text-accent"),
        ("\n", row.thought.strip(), ""),
        ("\ntold the model: ", row.note, "$text-muted"),
    )
    parts += [(f"{label}{harmless(text)}\n", style) for label, text, style in facts if text]
    return Content.assemble(*parts).rstrip()


def _answers(row: Row) -> Content:
    return Content(harmless("\n\n".join(_pretty(answer) for answer in row.answers) or row.thought))


def _details(row: Row) -> Content:
    lines: list[tuple[str, str]] = []
    if row.target is not None:
        action = {name: _rounded(value) for name, value in to_json(row.target).items()}
        lines.append((f"{harmless(json.dumps(action, ensure_ascii=False))}\n", ""))
    named = zip(("prompt", "answer", "from cache"), row.tokens, strict=True)
    tokens = ", ".join(f"{count} {name}" for name, count in named if count is not None)
    lines.append((f"tokens  {tokens or 'unknown'}\n", ""))
    longest = max(row.milliseconds.values(), default=0.0)
    for stage in _STAGES:
        if (value := row.milliseconds.get(stage)) is not None:
            bar = "█" * round(20 * value / longest) if longest else ""
            lines.append((f"{stage:8}{value:9.1f} ms ", ""))
            lines.append((f"{bar}\n", "$accent"))
    if row.image is not None:
        lines.append((f"{row.image}\n", "$text-muted"))
    return Content.assemble(*lines)


def _rounded(value: Any) -> Any:
    return [round(one) if isinstance(one, float) else one for one in value] if isinstance(value, list) else value


def _pretty(raw: str) -> str:
    try:
        return json.dumps(json.loads(raw), ensure_ascii=False, indent=2)
    except ValueError:
        return raw
