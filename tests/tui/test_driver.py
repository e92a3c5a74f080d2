"""What is typed in a terminal, as the application hears it, through a real pseudo-terminal."""

import os
import signal
import threading
import time
import tty
from contextlib import suppress

import pytest
from textual import constants, events
from textual.drivers._writer_thread import WriterThread

from agent.options import RunOptions
from agent.settings import Settings
from agent.tui import escape_key_driver as driver
from agent.tui.app import MaiApp
from agent.tui.escape_key_driver import LastingOutput, PromptDriver


class Typist:
    """A driver that reads a terminal, and what it heard, with when."""

    def __init__(self) -> None:
        self.terminal, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        self.heard: list[tuple[float, events.Event]] = []
        self._driver = PromptDriver.__new__(PromptDriver)
        self._driver._debug = False
        self._driver.fileno = self._theirs
        self._driver.exit_event = threading.Event()
        self._driver.process_message = lambda event: self.heard.append((time.monotonic(), event))  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._driver.run_input_thread, daemon=True)
        self._thread.start()

    def types(self, *pieces: bytes, pause: float = 0.0) -> None:
        for piece in pieces:
            os.write(self.terminal, piece)
            time.sleep(pause)

    def keys(self, count: int) -> list[str]:
        """The keys heard, once there are so many."""
        deadline = time.monotonic() + 10
        while len(self.heard) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        return [event.key for _, event in self.heard if isinstance(event, events.Key)]

    def close(self) -> None:
        self._driver.exit_event.set()
        self._thread.join(5)
        for file in (self.terminal, self._theirs):
            with suppress(OSError):
                os.close(file)


@pytest.fixture
def typist(monkeypatch):
    monkeypatch.setattr(constants, "ESCAPE_DELAY", constants.ESCAPE_DELAY)
    made = Typist()
    yield made
    made.close()


def test_a_terminal_that_closes_does_not_start_the_driver_again(monkeypatch):
    resumed: list[bool] = []
    monkeypatch.setattr(PromptDriver, "resume_application_mode", lambda _: resumed.append(True))
    made = PromptDriver.__new__(PromptDriver)
    made._auto_restart = True
    for suspended in (False, True):  # SIGCONT comes with SIGHUP, or after ctrl+z
        made._must_signal_resume = suspended
        made._sigcont_application(signal.SIGCONT, None)
        assert len(resumed) == suspended


def test_a_lone_escape_is_heard_though_nothing_follows(typist):
    typist.types(b"\x1b")
    assert typist.keys(1) == ["escape"]


def test_the_second_escape_is_waited_for_no_more(typist, monkeypatch):
    monkeypatch.setattr(driver, "ESCAPE_DELAY", 5.0)  # were it waited for, nothing would be heard in time
    typist.types(b"\x1b", b"\x1b", pause=0.1)
    assert typist.keys(2) == ["escape", "escape"]


def test_two_escapes_that_come_together_are_two(typist):
    typist.types(b"\x1b\x1b")
    assert typist.keys(2) == ["escape", "escape"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [(b"\x1ba", "alt+a"), (b"\x1b[A", "up"), (b"\x1bOP", "f1"), (b"\x1b[1;3C", "alt+right"), ("ü".encode(), "ü")],
)
def test_other_keys_that_begin_with_that_byte_are_what_they_are(typist, typed, key):
    typist.types(typed)
    [heard] = typist.keys(1)
    assert heard in (key, "latin_small_letter_u_with_diaeresis")


def test_a_key_that_comes_in_pieces_is_one(typist):
    typist.types(b"\x1b", b"[", b"A", "日".encode()[:1], "日".encode()[1:], pause=0.005)
    assert typist.keys(2) == ["up", "日"]


def test_what_is_pasted_comes_whole(typist):
    typist.types(b"\x1b[200~some text\x1b[201~x")
    assert typist.keys(2) == ["x"]
    assert typist.heard[0][1].text == "some text"


def test_the_application_is_driven_by_it_in_a_terminal(tmp_path):
    assert MaiApp(RunOptions(settings=Settings(), runs=tmp_path)).driver_class is PromptDriver


def test_what_is_written_after_the_terminal_went_away_is_dropped_and_nobody_waits() -> None:
    """Textual's thread died of it, its queue filled up, and the program stayed for ever, in nobody's sight."""
    reading, writing = os.pipe()
    os.close(reading)  # every write fails from now on
    with suppress(OSError), os.fdopen(writing, "w") as output:
        thread = WriterThread(LastingOutput(output))  # type: ignore[arg-type]
        thread.start()
        for _ in range(100):  # more than its queue holds
            thread.write("x")
        thread.stop()
        assert not thread.is_alive()
