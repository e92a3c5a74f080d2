"""Detects a lone Escape quickly, because two of them stop a run and nothing may delay that.

A terminal sends Escape as the byte that every other special key begins with, so it is known only when nothing follows.
Textual waits 100 ms for that and looks at its clock ten times a second, which together is up to 200 ms.
"""

import codecs
import os
import selectors
import time
from contextlib import suppress
from typing import Any

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

#: Seconds without a byte after which an Escape stands alone: a key's bytes are sent at once, and rarely arrive
#: 25 ms apart over a network. ESCDELAY, which Textual and ncurses read too, overrides it.
ESCAPE_DELAY = constants.ESCAPE_DELAY if "ESCDELAY" in os.environ else 0.025
#: Seconds within which a second Escape belongs to the first.
_DOUBLE = 1.0
_ESCAPE = "\x1b"
#: Seconds between two checks whether the program ends.
_IDLE = 0.1


class LastingOutput:
    """A terminal's output that ignores writes once the terminal is gone.

    Textual's writing thread ends at the first error, and the next writer would wait forever for room in its queue.
    """

    def __init__(self, output: Any) -> None:
        self._output = output

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._output.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._output.flush()


class PromptDriver(LinuxDriver):
    """Textual's driver, but it decides about a lone Escape as soon as the delay has passed."""

    def start_application_mode(self) -> None:
        self._file: Any = LastingOutput(self._file)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _sigcont_application(self, *_: object) -> None:
        # A terminal that closes sends SIGCONT, too. Textual would start its threads a second time, and never end them.
        if self._must_signal_resume:
            super()._sigcont_application()

    def run_input_thread(self) -> None:
        parser = XTermParser(self._debug)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            patience, escaped = _IDLE, float("-inf")
            while not self.exit_event.is_set():
                if selector.select(patience):
                    typed = decoder.decode(os.read(self.fileno, 4096))
                    if not typed:  # the terminal is gone, or half a character came
                        self.exit_event.wait(_IDLE)
                        continue
                    # Do not wait after a second Escape: at worst, a key that came in two pieces stops the run.
                    again = not typed.strip(_ESCAPE) and (len(typed) > 1 or time.monotonic() - escaped < _DOUBLE)
                    constants.ESCAPE_DELAY = 0 if again else ESCAPE_DELAY  # type: ignore[misc]  # the parser reads it
                    escaped = time.monotonic() if typed == _ESCAPE else float("-inf")
                    for event in parser.feed(typed):
                        self.process_message(event)
                    patience = ESCAPE_DELAY + 0.001
                else:
                    patience = _IDLE
                for event in parser.tick():
                    self.process_message(event)
