"""Starts the program that shows the test window, and reads the events that it reports."""

import json
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.desktop.programs import bare_environ
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

#: The system's, which has GTK: packages of distributions are not in our environment.
_PYTHON = "/usr/bin/python3"
_PROGRAM = Path(__file__).with_name("window_program.py")
#: Seconds for the window to appear, even on a busy machine.
_APPEARS = 45.0
#: Seconds for any other event of the window.
TIMEOUT = 4.0
_POLL = 0.01


class SelfTestWindow:
    """A window that shows a pattern and reports the events that reach it, until it is closed.

    `colours` are the pattern's, red, green and blue of 255. Raises EnvironmentLacksError: no window appears.
    StoppedError: the stop switch was set.
    """

    def __init__(self, environ: Mapping[str, str], colours: Sequence[Sequence[int]], stop: StopSwitch) -> None:
        self._stop = stop
        self._events: list[dict[str, Any]] = []
        self._since = 0
        try:
            self._process = subprocess.Popen(
                [_PYTHON, "-I", str(_PROGRAM), *("rgb({},{},{})".format(*one) for one in colours)],
                start_new_session=True, env=bare_environ(environ),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as error:
            raise EnvironmentLacksError(f"{_PYTHON}, which shows the window, cannot be started.", "") from error
        self._hearing = threading.Thread(target=self._hear, name="self-test window", daemon=True)
        self._hearing.start()
        try:
            event = self.wait("there", "failed", seconds=_APPEARS)
            if event is None or event["kind"] == "failed":
                raise EnvironmentLacksError(
                    f"No window of our own appears on this desktop{': ' + event['why'] if event else ''}.",
                    "Is the session locked, or a window shown in full screen? Leave that, and try again.",
                )
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in the window's units."""
        last = [one for one in self._events if "width" in one][-1]
        return int(last["width"]), int(last["height"])

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds since the last `forget`."""
        return [one for one in self._events[self._since :] if one["kind"] in kinds]

    def forget(self) -> None:
        self._since = len(self._events)

    def last(self, *kinds: str) -> dict[str, Any] | None:
        """Return the last event of these kinds, even from before `forget`."""
        return next((one for one in reversed(self._events) if one["kind"] in kinds), None)

    def held(self) -> list[str]:
        """Return the keys and buttons that went down in the window and did not come up."""
        down = Counter[str]()
        change = {"press": 1, "key": 1, "release": -1, "key up": -1}
        for one in self._events:
            # A key has another name if shift was released before it.
            name = one.get("button") or one.get("name", "").lower()
            down[name] += change.get(one["kind"], 0)
        return sorted(name for name, times in down.items() if times > 0)

    def wait(self, *kinds: str, seconds: float | None = None) -> dict[str, Any] | None:
        """Wait for an event of these kinds since the last `forget`; None after a timeout. Raises StoppedError."""
        self.wait_for(lambda: bool(self.events(*kinds)), seconds)
        return next(iter(self.events(*kinds)), None)

    def wait_for(self, true: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until a condition is true; False after a timeout. Raises EnvironmentLacksError if the window is gone."""
        deadline = time.monotonic() + (TIMEOUT if seconds is None else seconds)
        while not true():
            if not self._hearing.is_alive() and not true():
                raise EnvironmentLacksError("Our own window went away.", "Is the session still running?")
            if time.monotonic() >= deadline:
                return False
            self._stop.sleep(_POLL)
        return True

    def ask(self, word: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            os.write(self._process.stdin.fileno(), f"{word}\n".encode())

    def close(self) -> None:
        self.ask("end")
        self._hearing.join(TIMEOUT)
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        if self._hearing.is_alive():  # the program hangs, so a normal end would hang too
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError):
                self._events.append(json.loads(line))
