"""The HTTP server in OSWorld's virtual machines: it captures the screen and runs commands.

Source of the routes: desktop_env/server/main.py of OSWorld (Apache-2.0), and of the forks that keep its routes. The
server asks for no password, so it must be reachable from here only.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from agent.screen.pixels import open_foreign
from foundation.errors import EnvironmentLacksError, UsageError

if TYPE_CHECKING:
    import httpx2
    from PIL.Image import Image

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


class _Told(BaseModel):
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

    def screenshot(self) -> "Image":
        """Return a capture of the screen, as RGB. Raises EnvironmentLacksError."""
        body = self._asked("GET", "/screenshot", timeout=_LOOK).content
        try:
            return open_foreign(body, ("PNG", "JPEG"))
        except OSError as error:
            raise EnvironmentLacksError(
                f"{self.url} sent no picture of its screen.", "Is this the server of an OSWorld machine?"
            ) from error

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
            result = _Told.model_validate_json(reply.content)
        except ValueError:
            result = _Told(error="its answer is in no form that is known")
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
