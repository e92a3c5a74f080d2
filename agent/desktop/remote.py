"""Another machine's desktop, through the HTTP server of OSWorld's virtual machines.

The server captures the screen and runs commands. All events of an action are sent in one command.

Source of the routes: desktop_env/server/main.py of OSWorld (Apache-2.0), and of the forks that keep its routes. The
server asks for no password, so it must be reachable from here only.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from agent.core.geometry import Region, Size, Viewport
from agent.desktop.portable import PortableDesktop, own_name
from agent.desktop.protocol.desktop import Abilities, Applications
from agent.desktop.protocol.hand import ActionFailedError, Input, Press
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from agent.screen.encode import open_foreign
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    import httpx2

#: Seconds for a screenshot, and for a command; the server ends a command after 120.
_LOOK, _ACT = 10.0, 90.0
_NO_INPUT = "Is somebody logged in there? To paste text, it needs xclip."
#: Runs in the machine, with events as JSON: no text of a model ever becomes code. pyautogui types "<" as ">" on its
#: usual layout, and cannot type what the layout lacks; such text is pasted. The clipboard keeps the pasted text,
#: because nothing reports when an application has fetched it.
_PROGRAM = """
import json, os, sys, time
import pyautogui as gui
gui.PAUSE, gui.FAILSAFE = 0, False
for pause, name, *given in json.loads(sys.argv[1]):
    time.sleep(pause)
    if name == "write":
        for char in given[0]:
            gui.hotkey("shift", ",") if char == "<" else gui.write(char)
    elif name == "paste":
        import pyperclip
        kept = os.dup(1), os.dup(2)
        for number in (1, 2):  # the program that keeps the clipboard would hold the server's pipes open
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        try:
            pyperclip.copy(given[0])
        finally:
            for number, own in zip((1, 2), kept):
                os.dup2(own, number)
        gui.hotkey("ctrl", "v")
    elif name in ("mouseDown", "mouseUp"):
        getattr(gui, name)(button=given[0])
    else:
        getattr(gui, name)(*given)
"""


class _CommandResult(BaseModel):
    """How a command ended."""

    status: str = ""
    output: str = ""
    error: str = ""
    message: str = ""
    returncode: int = 1


class MachineServer:
    """One machine's server. Not for use by several threads at once.

    Raises UsageError if `url` is not a valid address.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
            is_address = is_address and not (parts.query or parts.fragment)
        except ValueError:
            is_address = False
        if not is_address:  # do not repeat the address: it may contain a password
            raise UsageError(
                "--remote takes the address of a machine, without a password.", "Such as http://localhost:5000."
            )
        self.url = url.rstrip("/")

    def position(self) -> tuple[int, int]:
        """Return where the pointer is. The server's own route for it returns no valid answer.

        Raises EnvironmentLacksError.
        """
        words = self._run("import pyautogui; print(*pyautogui.position())").split()
        if len(words) != 2 or not all(word.lstrip("-").isdigit() for word in words):
            raise EnvironmentLacksError(f"The machine at {self.url} does not tell where its pointer is.")
        return int(words[0]), int(words[1])

    def run_events(self, events: Sequence[Sequence[Any]]) -> None:
        """Carry out events: each a pause in seconds, a function of pyautogui (or write, paste), and its arguments.

        Raises EnvironmentLacksError.
        """
        self._run(_PROGRAM, json.dumps(list(map(list, events)), ensure_ascii=False))

    def _run(self, program: str, *arguments: str) -> str:
        """Return what a Python program prints there."""
        command = ["python", "-c", program, *arguments]
        reply = self._asked("POST", "/execute", json={"command": command, "shell": False}, timeout=_ACT)
        try:
            result = _CommandResult.model_validate_json(reply.content)
        except ValueError:
            result = _CommandResult(error="its answer has an unknown format")
        if result.status != "success" or result.returncode != 0:
            last = (result.error or result.message).strip().splitlines()[-1:]
            raise EnvironmentLacksError(
                f"The machine at {self.url} takes no input ({' '.join(last)[:200]}).",
                _NO_INPUT,
            )
        return result.output

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @cached_property
    def _client(self) -> "httpx2.Client":
        import httpx2

        return httpx2.Client(trust_env=False)

    def _asked(self, method: str, route: str, **more: Any) -> "httpx2.Response":
        import httpx2

        try:
            return self._client.request(method, self.url + route, **more).raise_for_status()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise EnvironmentLacksError(
                f"The machine at {self.url} does not answer ({' '.join(str(error).split())[:200] or repr(error)}).",
                "Does it run, with its server, and is the address right?",
            ) from error


#: Characters of a text that are sent at once: a command there is limited to 128 KiB, and to 120 seconds.
_LONGEST = 10_000
_NO_NAMES = "nothing can be opened by name on another machine: use its own icons and menus"


class RemoteScreen(MachineServer):
    """The screen of the machine. Raises EnvironmentLacksError if it cannot be captured."""

    def grab(self) -> Frame:
        """Capture the screen. One pixel of the image is one desktop unit."""
        body = self._asked("GET", "/screenshot", timeout=_LOOK).content
        try:
            image = open_foreign(body, ("PNG", "JPEG"))
        except OSError as error:
            raise EnvironmentLacksError(
                f"{self.url} sent no picture of its screen.", "Is this the server of an OSWorld machine?"
            ) from error
        size = Size(*image.size)
        return Frame(image, Viewport(Region(0, 0, size.width, size.height), size), time.monotonic())


class RemoteInput(Input):
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


class _NoApplications(Applications):
    """Knows none of the other machine's applications, and opens none."""

    def visit(self, url: str, stop: StopSwitch) -> str:  # noqa: ARG002 -- the protocol's
        raise ActionFailedError(_NO_NAMES)

    def open(self, name: str, stop: StopSwitch, application: str = "") -> str:  # noqa: ARG002 -- the protocol's
        raise ActionFailedError(_NO_NAMES)


class RemoteDesktop(PortableDesktop):
    """Another machine's desktop. `OpenDesktop` describes arguments and errors."""

    def __init__(self, url: str, stop: StopSwitch, monitor: int | None = None) -> None:
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
