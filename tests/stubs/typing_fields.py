"""Windows of several toolkits with fields to type into, which tell themselves what stands in them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stubs.http_stub import Handler, HttpStub

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.windows import Window
from agent.desktop.x11.windows import X11Windows

HERE = Path(__file__).parent / "fields"
sys.path.insert(0, str(HERE))
from state import BEGIN, HEIGHTS, LEFT, TOPS  # noqa: E402

#: The system's Python has GTK and Qt, ours has Tk.
COMMANDS = {
    "GTK 3": ["/usr/bin/python3", "gtk_fields.py", "STATE", "3"],
    "GTK 4": ["/usr/bin/python3", "gtk_fields.py", "STATE", "4"],
    "Qt 5": ["/usr/bin/python3", "qt_fields.py", "STATE", "5"],
    "Qt 6": ["/usr/bin/python3", "qt_fields.py", "STATE", "6"],
    "Tk": [sys.executable, "tk_fields.py", "STATE"],
    "Swing": ["java", "Fields.java", "STATE"],
}
CHROMIUM = "Chromium"


class Fields:
    """A running window of fields; a context manager.

    Args:
        toolkit: one of COMMANDS, or CHROMIUM.
        environ: of its desktop, which this process sees too.
        folder: for its files.
    """

    def __init__(self, toolkit: str, environ: Mapping[str, str], folder: Path) -> None:
        self.toolkit = toolkit
        self._state = folder / f"{toolkit.replace(' ', '')}.json"
        self._number = self._points = 0
        self._server: _Server | None = None
        windows = X11Windows()
        try:
            self._program = self._start(dict(environ), folder)
            wait_for(lambda: self._state.exists() and self._titled(windows), 90)
            [self.window] = self._titled(windows)
            wait_for(lambda: self._stands_still(windows), 20)
        finally:
            windows.close()

    def _start(self, environ: dict[str, str], folder: Path) -> "subprocess.Popen[str]":
        if self.toolkit == CHROMIUM:
            self._server = _Server(self._state)
            command = [
                "chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", f"--user-data-dir={folder}/chromium",
                "--password-store=basic", "--window-size=520,420", f"--app={self._server.address}",
            ]  # fmt: skip
        else:
            command = [str(self._state) if part == "STATE" else part for part in COMMANDS[self.toolkit]]
        with (folder / "errors").open("a") as errors:
            return subprocess.Popen(
                command, env=environ, cwd=HERE, stdin=subprocess.PIPE, stdout=errors, stderr=errors, text=True
            )

    def _titled(self, windows: X11Windows) -> list[Window]:
        return [one for one in windows.windows() if one.title == self.toolkit]

    def _stands_still(self, windows: X11Windows) -> bool:
        """Whether the window manager has put the window where it is to be."""
        before = windows.region(self.window.id)
        time.sleep(0.3)
        under = windows.at(*self.point("entry").rounded())
        return under is not None and under.id == self.window.id and windows.region(self.window.id) == before

    def __enter__(self) -> "Fields":
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()
        if self._program.stdin is not None:
            self._program.stdin.close()
        if self._server is not None:
            self._server.close()

    def reset(self) -> None:
        """Let every field hold what it began with."""
        self._number += 1
        if self._server is not None:
            self._server.wanted = self._number
        else:
            assert self._program.stdin is not None
            self._program.stdin.write(f"{self._number}\n")
            self._program.stdin.flush()
        wait_for(lambda: self.values()["answered"] == self._number)

    def stop_for(self, seconds: float) -> None:
        """Let it hang for so long."""
        os.kill(self._program.pid, signal.SIGSTOP)
        threading.Timer(seconds, os.kill, [self._program.pid, signal.SIGCONT]).start()

    def values(self) -> dict[str, Any]:
        """What stands in the fields."""
        told: dict[str, Any] = json.loads(self._state.read_text(encoding="utf-8"))
        return told

    def ends_as(self, field: str, text: str, seconds: float = 3.0) -> str:
        """What stands in a field once that is `text`, or after so long; a moment more, for what arrives twice."""
        deadline = time.monotonic() + seconds
        while self.values()[field] != text and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.15)
        return str(self.values()[field])

    def point(self, field: str) -> DesktopPoint:
        """A place on the first word in a field, each time another one, so that a click never counts with the last."""
        self._points += 1
        right = 16 if self._points % 2 else 30
        windows = X11Windows()
        try:
            region = windows.region(self.window.id)
        finally:
            windows.close()
        assert region is not None
        left, top = self._contents(region)
        down = 14 if field == "text" else HEIGHTS[field] // 2
        return DesktopPoint(float(left + LEFT + right), float(top + TOPS[field] + down))

    def _contents(self, region: Region) -> tuple[int, int]:
        if self._server is None:
            return region.left, region.top
        width, height = self._server.inner
        border = (region.width - width) // 2
        return region.left + border, region.top + region.height - height - border


class _Server:
    """Serves the page with the fields, and writes down what it tells."""

    def __init__(self, state: Path) -> None:
        self.wanted = 0
        self.inner = (0, 0)
        page = (HERE / "page.html").read_text().replace("BEGIN", json.dumps(BEGIN), 1)

        def get(handler: Handler) -> None:
            if handler.path == "/command":
                handler.respond(str(self.wanted).encode())
            else:
                handler.respond(page.encode(), "text/html")

        def post(handler: Handler) -> None:
            told = json.loads(handler.body())
            self.inner = tuple(told.pop("inner"))
            new = state.with_suffix(".new")
            new.write_text(json.dumps(told), encoding="utf-8")
            new.replace(state)
            handler.respond(b"")

        self._server = HttpStub(get, post)
        self.address = f"{self._server.url}/"

    def close(self) -> None:
        """End it."""
        self._server.close()


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found
