"""The person at the terminal (a real pseudo-terminal), signals, and the printers."""

import asyncio
import errno
import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from stubs.endpoint import act
from stubs.events import printed, run_of, started, step

from agent.console.printers import JsonPrinter, PlainPrinter
from agent.console.terminal import Console
from agent.core.actions import Click, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.events.as_json import to_json
from agent.events.run_events import Acted, ApprovalAsked, ApprovalGiven, ModelDelta, Warned
from agent.safety.naming import Aim
from agent.safety.policy import Approval, Question
from agent.safety.stop import StopSwitch, stop_signals
from agent.screen.outline import Element
from agent.workplace import broken_off
from foundation.errors import EnvironmentLacksError, ExitStatus

CLICK = Click(DesktopPoint(10, 20))
RISKY = Question("risky", "clicking")


class Terminal:
    """A pseudo-terminal in place of standard input and error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.master, self.slave = pty.openpty()
        self.shown = b""
        self._monkeypatch = monkeypatch

    def console(self, stop: StopSwitch) -> Console:
        """A console on this terminal (put in place only now, because pytest puts its own in place before a test)."""
        self._monkeypatch.setattr(sys, "stdin", os.fdopen(os.dup(self.slave), "r", encoding="utf-8"))
        self._monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(self.slave), "w", encoding="utf-8"))
        return Console(stop)

    def wait_for(self, text: str) -> None:
        """Until the program has shown this."""
        while text.encode() not in self.shown:
            self.shown += os.read(self.master, 4096)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def answer(self, prompt: str, text: str) -> None:
        """As a person does: read, think, type."""

        def person() -> None:
            self.wait_for(prompt)
            time.sleep(0.6)
            self.type(text)

        threading.Thread(target=person, daemon=True).start()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    found = Terminal(monkeypatch)
    yield found
    for handle in (found.master, found.slave):
        os.close(handle)


@pytest.mark.parametrize(
    ("typed", "approval"),
    [
        ("y\n", Approval(allowed=True, by="you")),
        (" YES \n", Approval(allowed=True, by="you")),
        ("a\n", Approval(allowed=True, by="you", always=True)),
        ("Always\n", Approval(allowed=True, by="you", always=True)),
        ("\n", Approval(allowed=False, by="you")),
        ("n\n", Approval(allowed=False, by="you")),
        ("use the menu\n", Approval(allowed=False, by="you", note="use the menu")),
    ],
)
async def test_only_a_yes_allows_an_action(terminal: Terminal, typed: str, approval: Approval) -> None:
    terminal.answer("allow: click at 10,20?", typed)
    assert await terminal.console(StopSwitch()).approve(CLICK, RISKY) == approval


async def test_a_yes_for_the_run_names_its_scope_and_is_not_offered_without_one(terminal: Terminal) -> None:
    console = terminal.console(StopSwitch())
    terminal.answer("“a” also allows clicking", "a\n")
    assert (await console.approve(CLICK, RISKY)).always
    terminal.shown = b""
    terminal.answer("allow:", "a\n")
    assert await console.approve(CLICK, Question("risky", "")) == Approval(allowed=False, by="you")
    assert "for the run" not in terminal.shown.decode("utf-8", "replace")


async def test_what_would_steer_the_terminal_or_cannot_be_seen_is_spelled_out(terminal: Terminal) -> None:
    question = Question("risky", "typing into \x1b]0;evil\x07\u202eroot\x9b")
    terminal.answer("instead] ", "n\n")
    await terminal.console(StopSwitch()).approve(TypeText("a\u200bb\x1b[2J\n"), question)
    shown = terminal.shown.decode()
    assert "a⟨U+200B⟩b⟨U+001B⟩[2J⏎" in shown
    assert "⟨U+001B⟩]0;evil⟨U+0007⟩⟨U+202E⟩root⟨U+009B⟩" in shown.replace("\r\n  ", "")
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\u200b"} & set(shown)


LONG = TypeText("\n".join(f"harmless line {number}" for number in range(59)) + "\nrm -rf ~/Documents\n")


@pytest.mark.parametrize("answer", ["y\n", "a\n", "Always\n", "\n"])
async def test_a_long_text_is_shown_page_by_page_and_approved_at_its_end_only(terminal: Terminal, answer: str) -> None:
    def person() -> None:
        for page in (1, 2):
            terminal.wait_for("read on, n = no -- ")
            assert b"because" not in terminal.shown, page
            terminal.shown = b""
            time.sleep(0.6)
            terminal.type(answer)
        terminal.wait_for("or what to do instead] ")
        time.sleep(0.6)
        terminal.type("y\n")

    threading.Thread(target=person, daemon=True).start()
    given = await asyncio.wait_for(terminal.console(StopSwitch()).approve(LONG, RISKY), 20)
    assert given == Approval(allowed=True, by="you")
    assert "rm -rf ~/Documents⏎\r\n" in terminal.shown.decode()
    assert terminal.shown.decode().endswith("[y = yes, a = yes for the run, Enter or n = no, or what to do instead] ")
    assert terminal.shown.index(b"asked because risky") < terminal.shown.index(b"also allows clicking")


@pytest.mark.parametrize(("answer", "note"), [("n\n", ""), ("use the menu\n", "use the menu"), ("\x04", "")])
async def test_a_no_needs_no_reading_to_the_end(terminal: Terminal, answer: str, note: str) -> None:
    terminal.answer("read on, n = no -- ", answer)
    given = await asyncio.wait_for(terminal.console(StopSwitch()).approve(LONG, RISKY), 20)
    assert given == Approval(allowed=False, by="you", note=note)


async def test_no_line_of_a_question_is_wider_than_the_terminal(terminal: Terminal) -> None:
    fcntl.ioctl(terminal.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 40, 0, 0))
    terminal.answer("or what to do instead] ", "n\n")
    await terminal.console(StopSwitch()).approve(TypeText("日本 rm -rf ~ " * 30), replace(RISKY, reason="r " * 90))
    lines = terminal.shown.decode().split("\r\n")
    assert max(map(cell_len, lines[:-1])) < 40


def test_a_person_is_not_told_coordinates_in_plain_lines() -> None:
    out = io.StringIO()
    printer = PlainPrinter(out)
    target, aim = Click(DesktopPoint(412.3, 305.9)), Aim(("“Appearance”",), "Settings")
    printer.handle(ApprovalAsked(1, target, "it clicks", aim=aim))
    printer.handle(ApprovalGiven(1, allowed=True, by="you", instead=Click(DesktopPoint(411, 300)), instead_aim=aim))
    assert out.getvalue().splitlines()[0] == "  asks first: click “Appearance” · Settings, because it clicks"
    assert "41" not in out.getvalue()
    assert "30" not in out.getvalue()


async def test_an_answer_that_comes_too_soon_to_be_one_is_asked_for_again(terminal: Terminal) -> None:
    def hasty() -> None:
        terminal.wait_for("allow:")
        terminal.type("y\n")
        terminal.shown = b""
        terminal.wait_for("allow:")
        time.sleep(0.6)
        terminal.type("n\n")

    threading.Thread(target=hasty, daemon=True).start()
    assert (await asyncio.wait_for(terminal.console(StopSwitch()).approve(CLICK, RISKY), 20)).allowed is False


async def test_the_reply_to_the_models_question_is_what_was_typed(terminal: Terminal) -> None:
    terminal.answer("Which one?", "the réd one\n")
    assert await terminal.console(StopSwitch()).ask("Which one?") == "the réd one"


async def test_what_was_typed_before_the_question_is_no_answer_to_it(terminal: Terminal) -> None:
    console = terminal.console(StopSwitch())
    terminal.type("y\ny\ny\n")
    terminal.answer("allow:", "n\n")
    assert (await console.approve(CLICK, RISKY)).allowed is False


async def test_lines_in_flight_do_not_answer_the_next_question(terminal: Terminal) -> None:
    console = terminal.console(StopSwitch())
    terminal.answer("allow:", "n\ny\ny\n")
    assert (await console.approve(CLICK, RISKY)).allowed is False
    terminal.shown = b""
    terminal.answer("allow:", "n\n")
    assert (await console.approve(CLICK, RISKY)).allowed is False


async def test_an_end_of_input_is_a_no_at_once(terminal: Terminal) -> None:
    def close() -> None:
        terminal.wait_for("allow:")
        terminal.type("\x04")

    threading.Thread(target=close, daemon=True).start()
    approval = await asyncio.wait_for(terminal.console(StopSwitch()).approve(CLICK, RISKY), 20)
    assert approval.allowed is False
    assert terminal.shown.count(b"allow:") == 1


async def test_a_stop_ends_the_reading(terminal: Terminal) -> None:
    stop = StopSwitch()
    threading.Timer(0.2, stop.stop, ("now",)).start()
    assert await asyncio.wait_for(terminal.console(stop).ask("Hm?"), 20) is None


async def test_without_a_terminal_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    console = Console(StopSwitch())
    assert await console.ask("Hm?") is None
    with pytest.raises(EnvironmentLacksError, match="--approve never") as raised:
        await console.approve(CLICK, RISKY)
    assert RISKY.reason in str(raised.value)


# Signals


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, "Ctrl-C"),
        (signal.SIGTERM, "a signal asked for it"),
        (signal.SIGHUP, "the terminal was closed"),
    ],
)
def test_a_signal_sets_the_stop_switch_and_handlers_are_put_back(number: signal.Signals, reason: str) -> None:
    stop = StopSwitch()
    before = signal.getsignal(number)
    with stop_signals(stop):
        signal.raise_signal(number)
        signal.raise_signal(number)
        signal.raise_signal(number)  # impatience is no reason to leave keys pressed
    assert stop.reason == reason
    assert signal.getsignal(number) == before


STUBBORN = """
import signal, sys, time
from agent.safety.stop import stop_signals
from agent.safety.stop import StopSwitch
with stop_signals(StopSwitch()):
    signal.raise_signal(signal.SIGINT)
    print("stopping", flush=True)
    while True:
        time.sleep(0.1)
"""


def test_a_run_that_does_not_end_after_a_stop_is_ended_by_asking_again() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"stopping\n"
        process.send_signal(signal.SIGINT)
        time.sleep(2.5)
        assert process.poll() is None  # too soon to be meant
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


# Printers


def test_every_event_is_one_line_of_json() -> None:
    events = run_of(2)
    out = printed(JsonPrinter, events)
    lines = out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == [type(event).__name__ for event in events]
    assert out.isascii()
    assert all(json.loads(line) == to_json(event) for line, event in zip(lines, events, strict=True))


def test_the_pieces_of_an_answer_are_one_line_without_the_secret_that_it_types() -> None:
    out, answer = io.StringIO(), act("type", "Next.", text="Tr0ub4dor&3x")
    events = step(1, answer)
    whole = next(event for event in events if isinstance(event, ModelDelta))
    pieces = [ModelDelta(1, "void"), ModelDelta(1, answer[:-20], restart=True), ModelDelta(1, answer[-20:])]
    printer = JsonPrinter(out)
    for event in events:
        for piece in pieces if event is whole else [event]:
            printer.handle(piece)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["Observed", "ModelDelta", "ModelDelta", "Decided", "StepFinished"]
    assert lines[2]["text"] == answer.replace("Tr0ub4dor&3x", "[redacted 12 chars]")
    assert "Tr0ub4dor" not in out.getvalue()


def test_plain_lines_do_not_tell_a_secret_that_is_typed() -> None:
    secret = act("type", "Now I type the password.", text="swordfish")
    out = printed(PlainPrinter, [*step(1, act("type", "Next.", text="Tr0ub4dor&3x")), *step(2, secret)])
    assert "next: type “[redacted 12 chars]”" in out
    assert "swordfish" not in out


def test_plain_lines_do_not_tell_what_goes_into_a_password_field() -> None:
    typed = TypeText("apple tree")
    field = Element(1, "password text", "Unlock", Region(0, 0, 100, 20), window="Login", app="Login")
    [seen, *_, decided, _] = step(1, act("type", "Next: apple tree.", text="apple tree"))
    out = printed(PlainPrinter, (seen, decided, Acted(1, typed, True, False, "typed", None, 2.0, elements=(field,))))
    assert "next: type “[redacted 10 chars]”" in out
    assert "apple" not in out


def test_plain_lines_tell_the_task_each_decision_and_the_end() -> None:
    out = io.StringIO()
    for event in run_of(2):
        PlainPrinter(out).handle(event)
    text = out.getvalue()
    for expected in (
        "task: open settings",
        "step 2: saw 1600x1200",
        "done: The task is done. (2 steps",
    ):
        assert expected in text
    assert "note: a remark" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_a_character_does_not_end_the_run(tmp_path: Path, encoding: str) -> None:
    with (tmp_path / "out").open("w", encoding=encoding) as out:
        printer = PlainPrinter(out)
        printer.handle(started("öffne 設定 \ud800"))
        printer.handle(Warned("“quoted”"))
        for event in step(1, thought="漢字"):
            printer.handle(event)
    assert b"task: " in (tmp_path / "out").read_bytes()


def test_a_run_whose_output_cannot_be_written_is_recorded_with_the_programs_status() -> None:
    end = broken_off(OSError(errno.ENOSPC, "No space left on device"))
    assert (end.outcome, end.status) == ("failed", ExitStatus.ENVIRONMENT)
    assert "the output cannot be written (No space left on device)" in end.message
    assert broken_off(BrokenPipeError()).status == ExitStatus.NOT_DONE
