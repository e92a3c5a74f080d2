"""The last resort, as a program of its own: lets go of what the hand still holds when the hand does not.

The hand's thread may hang in a call to a display that does not answer, a long call into C may hold the interpreter's
lock, and the whole process may be killed. The X server keeps a key down through all of that. So this small process has
its own connection, is told what goes down and up, and lets go when a stop is not followed within 30 ms, or when nobody
is left to tell it anything. The hand's own connection is then closed by force: a hand that wakes up seconds later would
go on in the middle of what it did.

Started by `releaser.py`; imports nothing of ours, to be up in a few milliseconds.

    python releaser_process.py SIGNAL_DESCRIPTOR SIGNAL_NUMBERS

Standard input says "client 1234" (a resource of the hand's connection), "busy", "idle", "+ key 38", "- button 1",
"stop", or ends.
"""

import os
import select
import socket
import sys
import time
from typing import Any

#: What the hand needs to let go by itself is a few milliseconds.
_PATIENCE = 0.03
#: Presses that were on their way when the end came can still arrive at a display that hung.
_AFTERCARE = 0.5
_TICK = 0.02


class Releaser:
    """Told what is down, in lines; lets go of it when it must."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._down: list[tuple[str, int]] = []
        self._client = 0
        self._busy = False
        self._rest = b""
        self.stopped: float | None = None

    def take(self, data: bytes) -> None:
        """Take in what the hand tells."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            sign, *words = line.decode("ascii").split()
            if sign == "stop":
                self.stop()
            elif sign == "client":
                self._client = int(words[0])
            elif sign in ("busy", "idle"):
                self._busy = sign == "busy"
            if sign not in ("+", "-"):
                continue
            held = (words[0], int(words[1]))
            if sign == "+":
                self._down.append(held)
            elif held in self._down:
                self._down.remove(held)

    def stop(self) -> None:
        """From now on, nothing may stay down for long."""
        if self.stopped is None:
            self.stopped = time.monotonic()

    def due(self) -> bool:
        """Whether the hand had its time."""
        return self._held() and self.stopped is not None and time.monotonic() - self.stopped >= _PATIENCE

    def _held(self) -> bool:
        return self._busy or bool(self._down)

    def timeout(self) -> float | None:
        """How long to wait for the next word."""
        if self.stopped is None or not self._held():
            return None
        return max(_TICK, self.stopped + _PATIENCE - time.monotonic()) if not self.due() else 0.0

    def let_go(self) -> bool:
        """Release what is down; whether anything was."""
        from Xlib import X
        from Xlib.ext import xtest

        held = [one for one in self._down if self._is_down(*one)]
        for kind, code in reversed(held):
            xtest.fake_input(self._display, X.KeyRelease if kind == "key" else X.ButtonRelease, code)
        self._display.sync()
        return bool(held)

    def care(self, seconds: float) -> None:
        """Let go, again and again for a while."""
        until = time.monotonic() + seconds
        while self._down:
            self.let_go()
            if time.monotonic() >= until:
                return
            time.sleep(_TICK)

    def cut_off(self) -> None:
        """Close the hand's connection, with whatever it has sent and was not carried out yet."""
        if self._client:
            self._display.create_resource_object("window", self._client).kill_client()
            self._display.sync()
            self._client = 0

    def forget(self) -> None:
        """All that could be done was done."""
        self._down.clear()
        self._busy = False

    def _is_down(self, kind: str, code: int) -> bool:
        if kind == "key":
            return bool(self._display.query_keymap()[code // 8] >> code % 8 & 1)
        if code > 5:  # the server tells of the first five only
            return True
        return bool(self._display.screen().root.query_pointer().mask >> (7 + code) & 1)


def main() -> None:
    """Serve until standard input ends."""
    shared, numbers = int(sys.argv[1]), bytes(int(number) for number in sys.argv[2].split(","))
    from Xlib.display import Display
    from Xlib.ext import xtest

    display = Display()
    xtest.grab_control(display, True)  # served even while another client has the whole server to itself
    display.sync()
    releaser, told = Releaser(display), sys.stdin.fileno()
    signals = socket.socket(fileno=shared) if shared >= 0 else None
    while True:
        watched = [told] if signals is None else [told, signals.fileno()]
        ready, _, _ = select.select(watched, [], [], releaser.timeout())
        if told in ready:
            data = os.read(told, 4096)
            releaser.take(data)
            if not data:
                releaser.care(_AFTERCARE)
                return
        if signals is not None and signals.fileno() in ready:
            waiting = signals.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT) if _readable(signals) else b""
            if any(number in numbers for number in waiting):
                releaser.stop()
                signals = None  # what matters was seen; its owner takes it out
            else:
                time.sleep(0.005)
        if releaser.due():
            releaser.cut_off()
            releaser.care(_AFTERCARE)
            releaser.forget()


def _readable(signals: socket.socket) -> bool:
    return bool(select.select([signals], [], [], 0)[0])


if __name__ == "__main__":
    main()
