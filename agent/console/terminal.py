"""The person at the terminal: approvals and questions, without the TUI."""

import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from agent.core.actions import Action
from agent.core.geometry import DesktopPoint
from agent.run.control import Worker
from agent.safety.naming import unplaced
from agent.safety.policy import Approval, Question
from agent.safety.question_text import Asked, asked, lines_of
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.printing import ask_for, is_terminal, shown_as, terminal_size

#: Seconds in which a person cannot have read a question.
_GRACE = 0.5
#: A terminal with fewer columns does not know its size.
_NARROWEST = 20
_YES = ("y", "yes")


class Console:
    """Asks on the terminal, if there is one. Also an `Approver` and a `Person`."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._worker: Worker | None = None
        self.interactive = _has_terminal()

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask whether an action may be carried out. Any answer but “y” and “a” means no, or names an alternative."""
        if not self.interactive:
            raise EnvironmentLacksError(
                f"The run wants to {unplaced(action)}, which needs your approval ({question.reason}); "
                "there is no terminal.",
                "Run it in a terminal, or allow everything with --approve never.",
            )
        answer = await self._answer(asked(action, question))
        word = answer.lower()
        if word in _YES:
            return Approval(allowed=True, by="you")
        if word in ("a", "always") and question.scope:
            return Approval(allowed=True, by="you", always=True)
        return Approval(allowed=False, by="you", note="" if word in ("", "n", "no", "a", "always") else answer)

    async def _answer(self, question: Asked) -> str:
        """Show a question page by page, and take the answer at its end. Before the end, a yes does not count."""
        always = "a = yes for the run, " if question.scope else ""
        keys = f"  [y = yes, {always}Enter or n = no, or what to do instead] "
        shown, unsaid = 0, ""
        while True:
            columns, rows = _size()
            text, closing = question_lines(question, columns - 1)  # anew: the terminal may be another size by now
            lines, room = [*text, *closing], max(4, rows - 3)
            last = len(lines) - shown <= room
            page = lines[shown : shown + room]
            if not last and shown < len(text):  # the reasons are last, and all on one page
                page = page[: len(text) - shown]
            more = f"  -- {shown + len(page)} of {len(lines)} lines; {unsaid}Enter = read on, n = no -- "
            line = await self._read([*page, keys if last else more])
            answer = line.strip()
            if last or not line or answer.lower() not in ("", "y", "yes", "a", "always"):
                return answer
            shown, unsaid = shown + len(page), "not all was shown yet, " if answer else ""

    async def ask(self, question: str) -> str | None:
        """The person's reply to a question of the model; None without a terminal."""
        if not self.interactive:
            return None
        return (await self._read([f"  the model asks: {question}", "  your reply: "])).strip() or None

    async def permit(self, question: str) -> bool:
        """Whether the person says yes to a question of the program's own; no without a terminal."""
        if not self.interactive:
            return False
        answer = await self._read([f"  {question}", "  [y = yes, anything else = no] "])
        return answer.strip().lower() in _YES

    async def _read(self, prompt: list[str]) -> str:
        if self._worker is None:
            self._worker = Worker("console")
        while True:
            asked_at = time.monotonic()
            line = await self._worker.call(self._read_line, prompt)
            # Keys that were in flight when the question appeared are not an answer to it; an end of input is one.
            if time.monotonic() - asked_at >= _GRACE or not line:
                return line

    def _read_line(self, prompt: list[str]) -> str:
        """Read a line until the stop switch is set: a blocked read would outlive the run.

        It reads the terminal itself, because Python's buffer would keep lines typed before the question as answers to
        later ones.
        """
        terminal = sys.stdin.fileno()
        _discard_typed(terminal)
        ask_for(*(shown_as(line, "error") for line in prompt))
        line = b""
        while not self._stop.stopped:
            ready, _, _ = select.select([terminal], [], [], 0.1)
            if not ready:
                continue
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # the terminal was closed
                return ""
            line += piece
            if not piece or line.endswith(b"\n"):
                return line.decode("utf-8", "replace")
        return ""


def terminal_ask() -> Callable[[str], bool] | None:
    """Return a function that asks a yes/no question before a run has begun; None if there is no terminal."""
    return (lambda question: _ask(f"{question} [Y/n] ", ("", *_YES))) if _has_terminal() else None


def agreed(question: str, remedy: str) -> bool:
    """Ask before a command changes something. Raises UsageError with the remedy if nobody can answer."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("Nobody is here to agree.", remedy)
    return _ask(f"{question} [y/N] ", _YES)


def _ask(question: str, yes: Sequence[str]) -> bool:
    ask_for(question)
    return sys.stdin.readline().strip().casefold() in yes


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and is_terminal("error")


def _discard_typed(terminal: int) -> None:
    import termios

    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)


def question_lines(question: Asked, width: int) -> tuple[list[str], list[str]]:
    """Return a question as lines of at most `width` cells: action, target and full text; and the reasons separately."""
    head = " ".join(filter(None, (question.what, question.where)))
    lines = _wrapped(f"allow: {head}?", "  ", width)
    lines += _wrapped(question.text, "    ", width, signs=not question.ours)
    found = [question.text[start:end] for start, end in question.marks] + list(question.found)
    for fact in (*question.facts, *(f"a rule found in it: {piece}" for piece in dict.fromkeys(found))):
        lines += _wrapped(fact, "  ", width)
    reason = _wrapped(f"asked because {'; '.join(question.reasons)}", "  ", width)
    return lines, reason + (_wrapped(f"“a” also allows {question.scope}", "  ", width) if question.scope else [])


def _wrapped(text: str, indent: str, width: int, *, signs: bool = True) -> list[str]:
    return [f"{indent}{line.text}" for line in lines_of(text, width - len(indent), signs=signs)]


def _size() -> tuple[int, int]:
    columns, rows = terminal_size("error") or (0, 0)
    return (columns, rows) if columns >= _NARROWEST and rows > 0 else (80, 24)
