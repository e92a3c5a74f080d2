"""Asks KWin for its windows: a script that is run in it for a moment calls us back. It needs nobody's permission."""

import json
import os
import tempfile
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from itertools import count
from typing import Any

from jeepney import DBusAddress, MatchRule, Message

from agent.desktop.linux.bus import DBUS, Bus, BusError
from agent.desktop.protocol.windows import WindowId
from foundation.configs import configs_dir

_KWIN = "org.kde.KWin"
_SCRIPTING = DBusAddress("/Scripting", _KWIN, "org.kde.kwin.Scripting")
#: Seconds for one look; it takes 6 ms.
_PATIENCE = 3.0
_numbers = count(1)


class Kwin:
    """See `Teller`. Every method raises BusError."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def is_there(self) -> bool:
        """Whether there is a KWin that runs scripts."""
        with closing(Bus(self._environ, _PATIENCE)) as bus:
            return bus.owned(_KWIN)

    def tell(self) -> Any:
        """See `Teller.tell`."""
        return self._run("windows")

    def activate(self, identifier: WindowId) -> bool:
        """See `Teller.activate`."""
        return bool(self._run("activate", WINDOW=str(identifier)))

    def _run(self, script: str, **words: str) -> Any:
        """What a script of ours tells. Only KWin itself is listened to."""
        with closing(Bus(self._environ, _PATIENCE)) as bus:
            told: deque[Message] = deque()
            text = (configs_dir() / f"kwin/{script}.js").read_text(encoding="utf-8")
            for name, value in {"TO": bus.unique_name, **words}.items():
                text = text.replace(f"'{name}'", json.dumps(value))
            name = f"mai-agent-{os.getpid()}-{next(_numbers)}"
            [owner] = bus.ask(DBUS, "GetNameOwner", "s", _KWIN)
            rule = MatchRule(type="method_call", interface="org.mai_agent.Windows", member="Told", sender=owner)
            with tempfile.NamedTemporaryFile("w", suffix=".js", encoding="utf-8") as file, bus.filter(rule, queue=told):
                file.write(text)
                file.flush()
                [number] = bus.ask(_SCRIPTING, "loadScript", "ss", file.name, name)
                try:
                    _start(bus, number)
                    message = bus.recv_until_filtered(told, timeout=_PATIENCE)
                except TimeoutError as error:
                    raise BusError("KWin told nothing") from error
                finally:
                    with suppress(BusError):
                        bus.ask(_SCRIPTING, "unloadScript", "s", name)
        return json.loads(message.body[0])


def _start(bus: Bus, number: int) -> None:
    """Start a loaded script, at the path that KWin 5.27 and 6 have it, or older ones. Raises BusError."""
    try:
        bus.ask(DBusAddress(f"/Scripting/Script{number}", _KWIN, "org.kde.kwin.Script"), "run")
    except BusError:
        bus.ask(DBusAddress(f"/{number}", _KWIN, "org.kde.kwin.Script"), "run")
