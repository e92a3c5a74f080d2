"""One sandbox for many tests: starting a desktop takes seconds, closing what a test opened in it a tenth of one."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from agent.desktop.programs import marked
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.windows import X11Windows
from agent.sandbox.desktop import Sandbox, SandboxSpec, start_sandbox

#: Beginnings of the names of the programs that make the desktop; every other one was opened by a test.
DESKTOP = (
    *("Xvfb", "dbus-", "xfsettingsd", "xfwm4", "xfce4-panel", "panel-", "wrapper-", "xfdesktop", "xfconfd", "Thunar"),
    *("gvfs", "dconf", "at-spi", "xfce4-notifyd", "bwrap"),
)
#: How `agent.sandbox.isolation.python_inside` starts the first program of a sandbox: without it, all of it ends.
_LAUNCHER = ["-I", "-S"]
_DISPLAY = ("DISPLAY", "XAUTHORITY")


class SharedSandbox:
    """Lends one sandbox to test after test, each time as empty as it was when it was new.

    A sandbox that a test has ended, or that cannot be emptied, is replaced by a new one.
    """

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._empty: frozenset[int] = frozenset()

    def lend(self) -> Sandbox:
        """An empty desktop. The environment of this process is left as it is."""
        if self._sandbox is not None and not self._emptied(self._sandbox):
            self.close()
        if self._sandbox is None:
            before = {name: os.environ.get(name) for name in _DISPLAY}
            self._sandbox = start_sandbox(SandboxSpec())
            try:
                self._empty = _windows(self._sandbox)
            finally:
                _set(before)
        return self._sandbox

    def close(self) -> None:
        """End the sandbox; `lend` starts another."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _emptied(self, sandbox: Sandbox) -> bool:
        """Close what was opened, drop the clipboard, let go of keys and buttons, and put the pointer in the middle."""
        before = {name: os.environ.get(name) for name in _DISPLAY}
        try:
            sandbox.applied()
            for process in marked(sandbox.name):
                with suppress(psutil.Error):
                    if not process.name().startswith(DESKTOP) and process.cmdline()[1:3] != _LAUNCHER:
                        process.kill()
            deadline = time.monotonic() + 5
            while _windows(sandbox) != self._empty:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.02)
            # Killed with unsaved text, Mousepad asks at its next start whether to restore what it saves every 30 s.
            shutil.rmtree(Path(sandbox.environ["HOME"]) / ".local/share/Mousepad", ignore_errors=True)
            _let_go(sandbox)
        except Exception:  # a display that is gone shows as any of a dozen exceptions
            return False
        finally:
            _set(before)
        return True


def _windows(sandbox: Sandbox) -> frozenset[int]:
    sandbox.applied()
    windows = X11Windows()
    try:
        return frozenset(window.id for window in windows.windows())
    finally:
        windows.close()


def _let_go(sandbox: Sandbox) -> None:
    from Xlib import X
    from Xlib.ext import xtest

    display: Any = open_display()
    try:
        root = display.screen().root
        owner = root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
        for selection in ("CLIPBOARD", "PRIMARY"):  # owned by nobody once this connection is closed
            owner.set_selection_owner(display.intern_atom(selection), X.CurrentTime)
        for byte, value in enumerate(display.query_keymap()):
            for bit in range(8):
                if value >> bit & 1:
                    xtest.fake_input(display, X.KeyRelease, byte * 8 + bit)
        for button in (1, 2, 3):
            xtest.fake_input(display, X.ButtonRelease, button)
        root.warp_pointer(sandbox.spec.size.width // 2, sandbox.spec.size.height // 2)
        display.sync()
    finally:
        display.close()


def _set(environ: dict[str, str | None]) -> None:
    for name, value in environ.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
