"""Desktops to try a `Desktop` on, each with a window that tells what reaches it and a person who uses it too."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from stubs.display import PlainDisplay, wait_until
from stubs.sway import PlainSway

from agent.desktop.base import Desktop
from agent.desktop.factory import open_desktop
from agent.desktop.input import Press
from agent.desktop.wlroots.clipboard import WlrootsClipboard
from agent.desktop.wlroots.input import Pointer, WlrootsInput
from agent.desktop.wlroots.wire import socket_of
from agent.safety.stop import StopSwitch

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "tests/stubs/probe_window.py"


class Server(Protocol):
    """What shows things."""

    @property
    def environ(self) -> dict[str, str]:
        """Of its programs."""

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """A program on it."""

    def kill(self) -> None:
        """It goes away."""


class Bench:
    """A server with the window on it, which this process's environment names."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._log = folder / f"probe-{id(self)}.jsonl"
        self._since = 0
        server.start("/usr/bin/python3", str(PROBE), str(self._log))
        wait_until(lambda: self.events("there"), "the window is there")
        self.since_now()

    def all_events(self) -> list[dict[str, Any]]:
        """All that the window told."""
        lines = self._log.read_text().splitlines(keepends=True) if self._log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What it told lately, of these kinds."""
        return [one for one in self.all_events()[self._since :] if one["kind"] in kinds]

    def since_now(self) -> None:
        """Forget what it told so far."""
        self._since = len(self.all_events())

    def wait(self, true: Callable[[], object], what: str) -> None:
        """Wait until the window tells something."""
        try:
            wait_until(true, what, 10)
        except AssertionError as error:
            raise AssertionError(f"{error}; it told {self.all_events()[self._since :][-12:]}") from None

    def text(self) -> str:
        """What is in the entry."""
        told = [one["text"] for one in self.all_events() if one["kind"] == "text"]
        return str(told[-1]) if told else ""

    def open(self, stop: StopSwitch | None = None, monitor: int | None = None) -> Desktop:
        """The desktop."""
        return open_desktop(stop or StopSwitch(), monitor)

    def other(self, code: str) -> "subprocess.Popen[str]":
        """Another process with our code, which opens the desktop itself."""
        return subprocess.Popen(
            [sys.executable, "-c", code], env=self.server.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def person_presses(self, *keys: str) -> None:
        """The person presses a chord."""
        raise NotImplementedError

    def person_moves(self, x: int, y: int) -> None:
        """The person moves the pointer."""
        raise NotImplementedError

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        """The person copied something; what is in the clipboard is told until the end."""
        raise NotImplementedError


class X11Bench(Bench):
    """On Xvfb."""

    def person_presses(self, *keys: str) -> None:
        """See `Bench`."""
        names = {"escape": "Escape"}
        self._call("xdotool", "key", "+".join(names.get(one, one) for one in keys))

    def person_moves(self, x: int, y: int) -> None:
        """See `Bench`."""
        self._call("xdotool", "mousemove", str(x), str(y))

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        """See `Bench`."""
        command = ["xclip", "-selection", "clipboard"]
        subprocess.run(command, env=self.server.environ, input=text, text=True, check=True, timeout=20)
        yield lambda: self._call(*command, "-o")

    def _call(self, *command: str) -> str:
        assert isinstance(self.server, PlainDisplay)
        return self.server.call(*command)


class SwayBench(Bench):
    """On a sway without screens."""

    def _input(self) -> WlrootsInput:
        return WlrootsInput(socket_of(self.server.environ), Pointer((0, 0)))

    def person_presses(self, *keys: str) -> None:
        """See `Bench`."""
        hand = self._input()
        presses = [Press("key", one) for one in keys]
        for press in presses:
            hand.press(press)
        hand.release(presses[::-1])
        hand.close()

    def person_moves(self, x: int, y: int) -> None:
        """See `Bench`."""
        hand = self._input()
        hand.move(x, y)
        hand.close()

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        """See `Bench`."""
        theirs, reading = (WlrootsClipboard(socket_of(self.server.environ)) for _ in range(2))
        theirs.give({"text/plain;charset=utf-8": text.encode()})

        def read() -> str:
            # Whoever asks us has to be served by us, in the same thread: what is still ours was not replaced.
            return text if theirs.serve(0.05) else (reading.read("text/plain;charset=utf-8") or b"").decode()

        yield read
        theirs.close()
        reading.close()


@contextmanager
def bench_of(kind: str, folder: Path) -> Iterator[Bench]:
    """A desktop of a kind, named by this process's environment meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "SWAYSOCK"):
            patch.delenv(name, raising=False)
        if kind == "x11":
            with PlainDisplay() as display:
                patch.setenv("DISPLAY", display.name)
                patch.setenv("XAUTHORITY", os.devnull)
                display.start("xfwm4", "--compositor=off")
                yield X11Bench(display, folder)
            return
        with PlainSway() as sway:
            for name, value in sway.variables.items():
                patch.setenv(name, value)
            yield SwayBench(sway, folder)
