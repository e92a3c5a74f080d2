"""A desktop behind `MachineServer`: seen by its screenshots, touched by events that are sent one action at a time."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from agent.core.geometry import Region, Size, Viewport
from agent.desktop.portable.desktop import PortableDesktop
from agent.desktop.portable.input import own_name
from agent.desktop.protocol.desktop import Abilities, Opens
from agent.desktop.protocol.hand import ActionFailedError, Press
from agent.desktop.remote.server import MachineServer
from agent.safety.situation import Fact
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from foundation.errors import EnvironmentLacksError, UsageError

#: Characters of a text that are sent at once: a command there is limited to 128 KiB, and to 120 seconds.
_LONGEST = 10_000
_NO_NAMES = "nothing can be opened by name on another machine: use its own icons and menus"


class RemoteScreen:
    """The screen of the machine. Raises EnvironmentLacksError if it cannot be captured."""

    def __init__(self, url: str) -> None:
        self._server = MachineServer(url)

    def grab(self) -> Frame:
        """Capture the screen. One pixel of the image is one desktop unit."""
        image = self._server.screenshot()
        size = Size(*image.size)
        return Frame(image, Viewport(Region(0, 0, size.width, size.height), size), time.monotonic())

    def close(self) -> None:
        self._server.close()


class RemoteInput:
    """Mouse, keyboard and text of the machine.

    Each command there takes 0.1 to 0.6 seconds, so the events of an action are collected and sent together, with the
    pauses between them. An action that is stopped before it is sent does nothing.
    """

    def __init__(self, url: str, stop: StopSwitch) -> None:
        self._server = MachineServer(url)
        self._stop = stop
        self._events: list[tuple[Any, ...]] = []
        self._last = 0.0  # when the last event was collected
        self._at: tuple[int, int] | None = None  # where the pointer was moved to
        self._busy = False

    def position(self) -> tuple[int, int]:
        self._at = self._at or self._server.position()
        return self._at

    def move(self, x: int, y: int) -> None:
        self._at = (x, y)
        self._add("moveTo", x, y)

    def held(self) -> list[str]:
        return []

    def has_key(self, name: str) -> bool:
        return len(name) > 1 or name.isascii()

    def press(self, press: Press) -> None:
        self._add(*_named(press, "Down"))

    def release(self, presses: Sequence[Press]) -> None:
        for press in presses:
            self._add(*_named(press, "Up"))

    def scroll(self, dx: int, dy: int) -> None:
        if dy:
            self._add("vscroll", -dy)
        if dx:
            self._add("hscroll", dx)

    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        check_stop()
        body = text.rstrip("\n")
        for begin in range(0, len(body), _LONGEST):
            piece = body[begin : begin + _LONGEST]
            if begin:
                self._send()
            self._add("write" if piece.isascii() else "paste", piece)
        for _ in text[len(body) :]:
            press(("enter",))

    def set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._last = time.monotonic()
        if not busy:
            self._send()

    def lost(self, error: Exception) -> EnvironmentLacksError:
        return EnvironmentLacksError(f"The other machine takes no more input ({error!r}).", "Does it still run?")

    def close(self) -> None:
        self._server.close()

    def _add(self, name: str, *args: Any) -> None:
        now = time.monotonic()
        self._events.append((round(now - self._last, 3) if self._events else 0.0, name, *args))
        self._last = now
        if not self._busy:
            self._send()

    def _send(self) -> None:
        events, self._events = self._events, []
        if self._stop.stopped:  # drop the unsent events, but release what was pressed before
            pressed = {(name.removesuffix("Down"), *args) for _, name, *args in events if name.endswith("Down")}
            events = [
                (0.0, name, *args) for _, name, *args in events
                if name.endswith("Up") and (name.removesuffix("Up"), *args) not in pressed
            ]  # fmt: skip
        if events:
            self._server.run_events(events)


class _NoApplications:
    """Knows none of the other machine's applications, and opens none."""

    def names(self) -> list[str]:
        return []

    def identify(self, name: str, application: str = "") -> Opens | None:  # noqa: ARG002 -- the protocol's
        return None

    def starting(self, names: Sequence[str], folder: str | None, *, opened: bool) -> frozenset[Fact]:  # noqa: ARG002
        return frozenset()

    def browser(self) -> Opens | None:
        return None

    def visit(self, url: str, stop: StopSwitch) -> str:  # noqa: ARG002 -- the protocol's
        raise ActionFailedError(_NO_NAMES)

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:  # noqa: ARG002 -- the protocol's
        raise ActionFailedError(_NO_NAMES)


class RemoteDesktop(PortableDesktop):
    """Another machine's desktop. `OpenDesktop` describes arguments and errors."""

    def __init__(self, url: str, stop: StopSwitch, monitor: int | None = None, _environ: object = None) -> None:
        if monitor not in (None, 1):
            raise UsageError(f"There is no monitor {monitor}: another machine shows one picture.", "Leave it out.")
        self.name = url
        self.abilities = Abilities(windows=False, takeover=False, stop_key=False, machine=url)
        self._stop = stop
        self.screen = RemoteScreen(url)
        try:
            region = self.screen.grab().viewport.region
        except EnvironmentLacksError:
            self.screen.close()
            raise
        self.monitors, self.home = [region], region.middle
        self.applications = _NoApplications()

    @cached_property
    def text_entry(self) -> RemoteInput:
        return RemoteInput(self.name, self._stop)

    def _input(self) -> RemoteInput:
        return self.text_entry

    def shows(self, environ: Mapping[str, str]) -> bool:  # noqa: ARG002 -- the protocol's
        return False


def _named(press: Press, way: str) -> tuple[str, str]:
    return (f"key{way}", own_name(press.name)) if press.kind == "key" else (f"mouse{way}", press.name)
