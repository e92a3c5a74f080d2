"""A separate program that releases the keys and buttons that the hand holds, if the hand cannot.

The hand's thread may hang in a call to a display that does not answer, a long call into C may hold the GIL, and the
whole process may be killed. In all these cases, the X server keeps keys down. So this process has its own connection
and reads from standard input what is pressed and released. It releases everything if the hand has not done so 15 ms
after a stop, or if standard input ends. After a stop, it also closes the hand's connection by force: a hand that wakes
up seconds later would otherwise go on in the middle of its action.

Started by `desktop.py`. Imports nothing of ours, so that it starts in a few milliseconds.

    python releaser_process.py SIGNAL_DESCRIPTOR SIGNAL_NUMBERS

Standard input says "client 1234" (a resource of the hand's connection), "busy", "idle", "+ key 38", "- button 1",
"stop", or ends.
"""

import os
import select
import socket
import sys
import time
from contextlib import suppress
from typing import Any

#: Seconds for the hand to release everything itself. It needs a few milliseconds, seldom more than six.
_TIMEOUT = 0.015
#: Seconds to keep releasing: presses that were sent before the end can still arrive at a display that hung.
_AFTERCARE = 0.5
_TICK = 0.02


class Releaser:
    """Keeps track of what is pressed, and releases it if the hand does not."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._down: list[tuple[str, int]] = []
        self._client = 0
        self._busy = False
        self._rest = b""
        self._stopped: float | None = None

    def take(self, data: bytes) -> None:
        """Process data from the hand."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            match line.decode("ascii").split():
                case ["stop"]:
                    self.stop()
                case ["client", number]:
                    self._client = int(number)
                case ["busy" | "idle" as word]:
                    self._busy = word == "busy"
                case ["+", kind, code]:
                    self._down.append((kind, int(code)))
                case ["-", kind, code] if (kind, int(code)) in self._down:
                    self._down.remove((kind, int(code)))

    def stop(self) -> None:
        """Start the time limit after which nothing may stay down."""
        self._stopped = self._stopped or time.monotonic()

    def timeout(self) -> float | None:
        """Return the seconds that the hand has left after a stop; None if it was not stopped or holds nothing."""
        if self._stopped is None or not (self._busy or self._down):
            return None
        return max(0.0, self._stopped + _TIMEOUT - time.monotonic())

    def let_go(self) -> None:
        """Release what is down, repeatedly for `_AFTERCARE` seconds at most."""
        from Xlib import X
        from Xlib.ext import xtest

        until = time.monotonic() + _AFTERCARE
        while self._down:
            held = [one for one in self._down if self._is_down(*one)]
            for kind, code in reversed(held):
                xtest.fake_input(self._display, X.KeyRelease if kind == "key" else X.ButtonRelease, code)
            self._display.sync()
            if time.monotonic() >= until:
                return
            time.sleep(_TICK)

    def take_over(self) -> None:
        """Close the hand's connection, which drops its pending requests, and release what it held."""
        if self._client:
            self._display.create_resource_object("window", self._client).kill_client()
            self._display.sync()
            self._client = 0
        self.let_go()
        self._down.clear()  # nothing more can be done
        self._busy = False

    def _is_down(self, kind: str, code: int) -> bool:
        if kind == "key":
            return bool(self._display.query_keymap()[code // 8] >> code % 8 & 1)
        if code > 5:  # the server reports only the first five
            return True
        return bool(self._display.screen().root.query_pointer().mask >> (7 + code) & 1)


def main() -> None:
    """Serve until standard input ends."""
    shared, numbers = int(sys.argv[1]), bytes(int(number) for number in sys.argv[2].split(","))
    from Xlib.display import Display
    from Xlib.ext import xtest

    display = Display()
    xtest.grab_control(display, True)  # served even while another client has grabbed the server
    display.sync()
    releaser, stdin = Releaser(display), sys.stdin.fileno()
    signals = socket.socket(fileno=shared) if shared >= 0 else None
    while True:
        watched = [stdin] if signals is None else [stdin, signals.fileno()]
        ready, _, _ = select.select(watched, [], [], releaser.timeout())
        if stdin in ready:
            data = os.read(stdin, 4096)
            releaser.take(data)
            if not data:
                releaser.let_go()
                return
        if signals is not None and signals.fileno() in ready:
            waiting = b""
            with suppress(BlockingIOError):  # the main process has read them meanwhile
                waiting = signals.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            if any(number in numbers for number in waiting):
                releaser.stop()
                signals = None  # the main process reads it
            else:
                time.sleep(0.005)
        if releaser.timeout() == 0:
            releaser.take_over()


if __name__ == "__main__":
    main()
