"""Desktops to try a `Desktop` on, each with a window that tells what reaches it and a person who uses it too."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest
from stubs.display import PlainDisplay, wait_until
from stubs.gnome import MutterPerson, PlainGnome
from stubs.sway import PlainSway

from agent.core.geometry import Size
from agent.desktop.factory import open_desktop
from agent.desktop.portal.session import open_mutter
from agent.desktop.portal.text import PortalClipboard
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.protocol.hand import Press
from agent.desktop.wayland.desktop import Pointer
from agent.desktop.wayland.selection import MANAGERS, WlrootsClipboard, write_all
from agent.desktop.wayland.wire import Arguments, Connection, socket_of
from agent.desktop.wlroots.input import WlrootsInput
from agent.desktop.wlroots.windows import RUN_COMMAND, Sway
from agent.safety.stop import StopSwitch

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "tests/stubs/probe_window.py"


class Server(Protocol):
    """What shows things."""

    @property
    def environ(self) -> dict[str, str]:
        """Of its programs."""

    def start(self, *command: str) -> object:
        """A program on it."""

    def kill(self) -> None:
        """It goes away."""


class Bench:
    """A server with the window on it, which this process's environment names."""

    #: A stop key that is free there.
    chord: tuple[str, ...] = ("ctrl", "alt", "shift", "escape")
    #: Abilities that this desktop does not have, and what else it does not offer.
    lacks: frozenset[str] = frozenset()

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._log = folder / f"probe-{id(self)}.jsonl"
        self._since = 0
        server.start("/usr/bin/python3", "-c", PROBE.read_text(), str(self._log))
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
            wait_until(true, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; it told {self.all_events()[self._since :][-12:]}") from None

    def text(self) -> str:
        """What is in the entry."""
        told = [one["text"] for one in self.all_events() if one["kind"] == "text"]
        return str(told[-1]) if told else ""

    def open(self, stop: StopSwitch | None = None, monitor: int | None = None) -> Desktop:
        """The desktop."""
        return open_desktop(stop or StopSwitch(), monitor)

    def needs(self, desktop: Desktop, ability: str) -> None:
        """Skip the test where this desktop is known to lack an ability, and says so itself."""
        assert getattr(desktop.abilities, ability) == (ability not in self.lacks)
        if ability in self.lacks:
            pytest.skip(f"this desktop lacks it: {ability}")

    def other(self, code: str) -> "subprocess.Popen[str]":
        """Another process with our code, which opens the desktop itself."""
        return subprocess.Popen(
            [sys.executable, "-c", code], env=self.server.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def makes_room(self) -> None:
        """Other windows can be seen beside ours from now on, or above it."""

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
        names = {"escape": "Escape"}
        self._call("xdotool", "key", "+".join(names.get(one, one) for one in keys))

    def person_moves(self, x: int, y: int) -> None:
        self._call("xdotool", "mousemove", str(x), str(y))

    def comes_to_front(self) -> bool:
        """Return whether its window is the active one. If not, ask the window manager to activate it."""
        probe = self._call("xdotool", "search", "--name", "^probe$").split()[-1]
        if self._call("xprop", "-root", "32x", "\t$0", "_NET_ACTIVE_WINDOW").endswith(f"\t{int(probe):#x}"):
            return True
        with suppress(subprocess.CalledProcessError):
            self._call("xdotool", "windowactivate", probe)
        return False

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        command = ["xclip", "-selection", "clipboard"]
        subprocess.run(command, env=self.server.environ, input=text, text=True, check=True, timeout=20)
        yield lambda: self._call(*command, "-o")

    def _call(self, *command: str) -> str:
        assert isinstance(self.server, PlainDisplay)
        return self.server.call(*command)


class WlrootsBench(Bench):
    """On a sway without screens, or another compositor with its protocols."""

    def makes_room(self) -> None:
        """See `Bench`: sway shows nothing above a window that fills its monitor."""
        if path := self.server.environ.get("SWAYSOCK"):
            with closing(Sway(path)) as sway:
                sway.ask(RUN_COMMAND, "fullscreen disable")

    def _input(self) -> WlrootsInput:
        return WlrootsInput(socket_of(self.server.environ), Pointer((0, 0)))

    def person_presses(self, *keys: str) -> None:
        hand = self._input()
        presses = [Press("key", one) for one in keys]
        for press in presses:
            hand.press(press)
        hand.release(presses[::-1])
        hand.close()

    def person_moves(self, x: int, y: int) -> None:
        hand = self._input()
        hand.move(x, y)
        hand.close()

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        """See `Bench`; where no program can, nobody did."""
        if "clipboard" in self.lacks:
            yield lambda: text
            return
        path = socket_of(self.server.environ)
        with closing(Copied(path, text)) as copied, closing(WlrootsClipboard(path)) as reading:
            # Whoever asks us has to be served by us, in the same thread: what is still ours was not replaced.
            yield lambda: text if copied.serve(0.05) else (reading.read(KIND) or b"").decode()


KIND = "text/plain;charset=utf-8"


class Copied:
    """A text on the clipboard, owned through data control."""

    def __init__(self, path: str, text: str) -> None:
        self._text, self._ours = text, True
        self._connection = connection = Connection(path)
        manager = connection.bind(next(one for one in MANAGERS if connection.has(one)), 1)
        seat, device, source = connection.bind("wl_seat", 1), connection.new(), connection.new(self._heard)
        connection.request(manager, 1, "no", device, seat)
        connection.request(manager, 0, "n", source)
        connection.request(source, 0, "s", KIND)
        connection.request(device, 0, "o", source)
        connection.roundtrip()

    def _heard(self, opcode: int, arguments: Arguments) -> None:
        if opcode == 0:  # send
            arguments.text()
            write_all(arguments.file(), self._text.encode())
        self._ours = opcode == 0

    def serve(self, seconds: float) -> bool:
        """Hand it over for some seconds; whether it is still on the clipboard."""
        deadline = time.monotonic() + seconds
        while self._ours and (left := deadline - time.monotonic()) > 0:
            self._connection.pump(left)
        return self._ours

    def close(self) -> None:
        """Give the clipboard up."""
        self._connection.close()


class ThisSession:
    """The session that this process was started in."""

    def __init__(self, folder: Path) -> None:
        self.environ = dict(os.environ)
        self.folder = folder
        width, height = os.environ["SIZE"].split("x")
        self.size = Size(int(width), int(height))

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """A program in it; the session's end is its own."""
        environ = self.environ | {"GDK_BACKEND": "wayland"}
        return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """Nothing here may end it."""
        raise NotImplementedError


class GnomeBench(Bench):
    """On GNOME's shell without screens."""

    chord = ("ctrl", "alt", "shift", "f9")

    def __init__(self, server: "PlainGnome | ThisSession") -> None:
        super().__init__(server, server.folder)
        self.person = MutterPerson(server.environ, server.size)
        wait_until(self._feels_the_mouse, "the mouse is there")
        self.since_now()

    def _feels_the_mouse(self) -> bool:
        for x in (300, 200):
            self.person.moves(x, 700)
            time.sleep(0.1)  # a flood of them would hold up a busy shell
        return bool(self.events("motion"))

    def person_presses(self, *keys: str) -> None:
        self.person.presses(*keys)

    def person_moves(self, x: int, y: int) -> None:
        self.person.moves(x, y)

    @contextmanager
    def person_copied(self, text: str) -> Iterator[Callable[[], str]]:
        session = open_mutter(self.server.environ, None)
        clipboard = PortalClipboard(session)
        with clipboard.lent():
            clipboard.offer(text)

            def read() -> str:
                return (clipboard.read("text/plain;charset=utf-8") or b"").decode()

            yield read
        clipboard.close()
        session.close()


@contextmanager
def bench_of(kind: str, folder: Path) -> Iterator[Bench]:
    """A desktop of a kind, named by this process's environment meanwhile; "session" is the one that we are in."""
    if kind == "session":
        session = ThisSession(folder)
        if os.environ.get("XDG_CURRENT_DESKTOP") == "GNOME":
            here = GnomeBench(session)
            yield here
            here.person.leaves()
            return
        other = WlrootsBench(session, folder)
        other.lacks = frozenset(os.environ.get("MAI_TEST_LACKS", "").split())
        yield other
        return
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "SWAYSOCK"):
            patch.delenv(name, raising=False)
        if kind == "x11":
            with PlainDisplay() as display:
                patch.setenv("DISPLAY", display.name)
                patch.setenv("XAUTHORITY", os.devnull)
                display.start("xfwm4", "--compositor=off")
                managed = ("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
                # One that comes late takes the windows that are there in the midst of a test, and gives none the focus.
                wait_until(lambda: "window id" in display.call(*managed), "the window manager is there")
                bench = X11Bench(display, folder)
                # Its sign comes a moment before it manages windows.
                bench.wait(bench.comes_to_front, "the bench's window is in front")
                yield bench
            return
        if kind == "gnome":
            with PlainGnome() as gnome:
                for name, value in gnome.variables.items():
                    patch.setenv(name, value)
                bench = GnomeBench(gnome)
                yield bench
                bench.person.leaves()
            return
        with PlainSway() as sway:
            for name, value in sway.variables.items():
                patch.setenv(name, value)
            yield WlrootsBench(sway, folder)
