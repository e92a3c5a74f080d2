"""The person at the terminal: approvals and questions, without the TUI."""

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from agent.actions import Action, describe, describe_in_full
from agent.geometry import DesktopPoint
from agent.run.worker import Worker
from agent.safety.policy import Approval, Question
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError
from foundation.printing import ask_for, is_terminal, remark

#: Seconds in which a person cannot have read a question.
_GRACE = 0.5


class Console:
    """Asks on the terminal, where there is one. Also an `Approver` and a `Person`."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._worker: Worker | None = None
        self.interactive = _has_terminal()

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask whether an action may be carried out; all but yes and always is no, and may say what to do instead."""
        if not self.interactive:
            raise EnvironmentLacksError(
                f"The model wants to {describe(action)}, which needs your approval ({question.reason}); "
                "there is no terminal.",
                "Run it in a terminal, or allow everything with --approve never.",
            )
        answer = (await self._read(_prompt(action, question))).strip()
        word = answer.lower()
        if word in ("y", "yes"):
            return Approval(allowed=True, by="you")
        if word in ("a", "always") and question.scope:
            return Approval(allowed=True, by="you", always=True)
        return Approval(allowed=False, by="you", note="" if word in ("", "n", "no", "a", "always") else answer)

    async def ask(self, question: str) -> str | None:
        """The person's reply to a question of the model; None without a terminal."""
        if not self.interactive:
            return None
        return (await self._read([f"  the model asks: {question}", "  your reply: "])).strip() or None

    async def _read(self, prompt: list[str]) -> str:
        if self._worker is None:
            self._worker = Worker("console")
        while True:
            asked = time.monotonic()
            line = await self._worker.call(self._read_line, prompt)
            # Keys that were in flight when the question appeared are not an answer to it; an end of input is one.
            if time.monotonic() - asked >= _GRACE or not line:
                return line

    def _read_line(self, prompt: list[str]) -> str:
        """Read a line, giving up when the stop switch is set: a blocked read would outlive the run.

        Reads the terminal itself: Python's buffer would keep lines that were typed before the question, and give them
        out as answers to later ones.
        """
        terminal = sys.stdin.fileno()
        _discard_typed(terminal)
        ask_for(*prompt)
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


def say(text: str) -> None:
    """A line beside the output."""
    remark(text)


def terminal_ask() -> Callable[[str], bool] | None:
    """Asks yes or no before a run has begun (may something be installed?); None where there is no terminal."""
    return _ask if _has_terminal() else None


def _ask(question: str) -> bool:
    ask_for(f"{question} [Y/n] ")
    return sys.stdin.readline().strip().casefold() in ("", "y", "yes")


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and is_terminal("error")


def _discard_typed(terminal: int) -> None:
    """Forget what was typed before the question was shown."""
    import termios

    with suppress(termios.error):
        termios.tcflush(terminal, termios.TCIFLUSH)


def _prompt(action: Action[DesktopPoint], question: Question) -> list[str]:
    # The printer tells the reason; where its lines go elsewhere, it must still be read before the answer is given.
    why = [] if is_terminal("output") else [f"  asks first: {question.reason}"]
    always = f"a = always {question.scope}, " if question.scope else ""
    asked = f"  allow: {describe_in_full(action)}? [y = yes, {always}Enter or n = no, or what to do instead] "
    return [*why, asked]
