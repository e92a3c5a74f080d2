"""GNOME's shell of a test's own, as a sandbox has it, and a person who uses it."""

from contextlib import closing, suppress
from typing import Any

import psutil
from jeepney import DBusAddress

from agent.core.geometry import Size
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.programs import MARK, Inside, marked
from agent.desktop.wlroots.input import Keymap
from agent.sandbox.desktop import SandboxSpec, start_sandbox

_REMOTE = "org.gnome.Mutter.RemoteDesktop"
_FAR = 10_000.0
#: Seconds that a person stays.
_LONG = 600.0


class PlainGnome:
    """A compositor with nothing on it; a context manager."""

    def __init__(self, size: Size = Size(1280, 800)) -> None:  # noqa: B008 -- frozen
        self._sandbox = start_sandbox(SandboxSpec(size, session="gnome-shell"))
        self.environ, self.size = self._sandbox.environ, size
        self.folder = self._sandbox.folder / "home"  # programs on it can write there

    def __enter__(self) -> "PlainGnome":
        return self

    def __exit__(self, *_: object) -> None:
        self._sandbox.close()

    @property
    def variables(self) -> dict[str, str]:
        """What names it."""
        names = ("WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", MARK)
        return {name: self.environ[name] for name in names}

    def start(self, *command: str) -> Inside:
        """A program on it, ended with it."""
        return self._sandbox.start(*command, GDK_BACKEND="wayland")

    def run(self, *command: str) -> str:
        """What a program on it prints."""
        return self._sandbox.run(*command).stdout

    def scale(self, by: float) -> None:
        """Make all on its monitor larger."""
        config = "org.gnome.Mutter.DisplayConfig"
        address = DBusAddress("/org/gnome/Mutter/DisplayConfig", config, config)
        with Bus(self.environ, 20.0) as bus:
            serial, [monitor], *_ = bus.call(address, "GetCurrentState")
            mode = next(one for one in monitor[1] if "is-current" in one[6])
            shown = (0, 0, by, 0, True, [(monitor[0][0], mode[0], {})])
            bus.call(address, "ApplyMonitorsConfig", "uua(iiduba(ssa{sv}))a{sv}", serial, 1, [shown], {})

    def kill(self, program: str = "gnome-shell") -> None:
        """The compositor, or another program of it, goes away; safe to call twice."""
        for process in marked(self._sandbox.name):
            with suppress(psutil.NoSuchProcess):  # others end with it
                if process.name() == program:
                    process.kill()
                    process.wait(10)


class MutterPerson:
    """Somebody at mouse and keyboard, by a session of their own with Mutter.

    Args:
        environ: of the programs of the desktop.
        size: of its monitor.
    """

    def __init__(self, environ: dict[str, str], size: Size) -> None:
        self._last = size.width - 1, size.height - 1
        self._bus = Bus(environ, _LONG)
        whole = DBusAddress(f"/{_REMOTE.replace('.', '/')}", _REMOTE, _REMOTE)
        [path] = self._bus.call(whole, "CreateSession")
        self._session = DBusAddress(path, _REMOTE, f"{_REMOTE}.Session")
        self._do("Start")

        self.presses("shift")  # where there is no keyboard, the first key makes one: windows know it a moment later

    def leaves(self) -> None:
        """Mouse and keyboard are gone."""
        with closing(self._bus), suppress(BusError):  # the desktop may be gone, too
            self._do("Stop")

    def presses(self, *keys: str) -> None:
        """A chord."""
        keymap = Keymap()
        codes = [stroke.code for key in keys if (stroke := keymap.of_key(key))]
        for code in codes:
            self._do("NotifyKeyboardKeycode", "ub", code, True)
        for code in codes[::-1]:
            self._do("NotifyKeyboardKeycode", "ub", code, False)

    def moves(self, x: int, y: int) -> None:
        """The pointer, to a place; by way of the last corner: a mouse knows no places, and the first corner is hot."""
        self._do("NotifyPointerMotionRelative", "dd", _FAR, _FAR)
        self._do("NotifyPointerMotionRelative", "dd", float(x - self._last[0]), float(y - self._last[1]))

    def clicks(self) -> None:
        """The left button, where the pointer is."""
        for down in (True, False):
            self._do("NotifyPointerButton", "ib", 0x110, down)

    def _do(self, method: str, signature: str | None = None, *body: Any) -> None:
        self._bus.call(self._session, method, signature, *body)
