"""A plain Xvfb of a test's own, and what can be asked of it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any


class PlainDisplay:
    """An X server without anything on it; a context manager."""

    def __init__(self, size: str = "1280x800") -> None:
        reading, writing = os.pipe()
        try:
            self.process = subprocess.Popen(
                ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset"],
                pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(writing)
        with os.fdopen(reading) as told:
            self.name = f":{int(told.readline())}"
        self._programs: list[subprocess.Popen[bytes]] = []
        self._connection: Any = None

    def __enter__(self) -> "PlainDisplay":
        forget_pyautogui()
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.kill()
            program.wait()
        self.kill()

    def kill(self) -> None:
        """The server goes away; safe to call twice."""
        self.process.kill()
        self.process.wait()

    @property
    def environ(self) -> dict[str, str]:
        """This process's environment, with this display and no other."""
        others = ("WAYLAND_DISPLAY", "XAUTHORITY")
        kept = {name: value for name, value in os.environ.items() if name not in others}
        return {**kept, "DISPLAY": self.name, "XAUTHORITY": os.devnull}

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """A program on this display, ended with it."""
        program = subprocess.Popen(
            command, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._programs.append(program)
        return program

    def call(self, *command: str) -> str:
        """The output of a program on this display."""
        return subprocess.run(command, env=self.environ, check=True, capture_output=True, text=True, timeout=20).stdout

    def pressed(self) -> list[str]:
        """Keys and buttons that are down now."""
        return pressed(self._display())

    def pointer(self) -> tuple[int, int]:
        """Where the pointer is."""
        at = self._display().screen().root.query_pointer()
        return at.root_x, at.root_y

    def _display(self) -> Any:
        if self._connection is None:
            from Xlib.display import Display

            before = os.environ.get("XAUTHORITY")
            os.environ["XAUTHORITY"] = os.devnull  # python3-xlib reads it here, and fails without one
            try:
                self._connection = Display(self.name)
            finally:
                if before is None:
                    del os.environ["XAUTHORITY"]
                else:
                    os.environ["XAUTHORITY"] = before
        return self._connection


def pressed(display: Any) -> list[str]:
    """Keys and buttons that are down now on the display of a connection."""
    keys, mask = display.query_keymap(), display.screen().root.query_pointer().mask
    down = [f"key {code}" for code in range(256) if keys[code // 8] >> code % 8 & 1]
    return down + [f"button {number}" for number in range(1, 6) if mask >> (7 + number) & 1]


def forget_pyautogui() -> None:
    """pyautogui keeps the display it was imported with: on another display it must be imported anew."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("pyautogui", "pyscreeze", "pymsgbox")]:
        del sys.modules[name]


def wait_until(true: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Poll until something is true; fails the test, by name, long after it should have been."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)
