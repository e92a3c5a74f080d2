"""Windows on desktops that describe them outside Wayland: GNOME with our extension, and KDE through a KWin script.

Both return the same JSON: {"windows": [...], "pointer": [x, y]}, the lowest window first, in desktop units.
"""

import json
import os
import queue
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from jeepney import DBusAddress
from typing_extensions import override

from agent.core.geometry import Region
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind
from agent.desktop.wayland.stacked import StackedWindow, StackedWindows
from foundation.configs import configs_dir
from foundation.errors import EnvironmentLacksError

SHELL = "org.gnome.Shell"
#: Our GNOME Shell extension (configs/gnome-extension).
EXTENSION = DBusAddress("/org/mai_agent/Windows", SHELL, "org.mai_agent.Windows")
_KWIN = "org.kde.KWin"
_SCRIPTING = DBusAddress("/Scripting", _KWIN, "org.kde.kwin.Scripting")
#: Timeout in seconds for one query; GNOME takes 2 ms, KWin 6 ms.
_PATIENCE = 3.0
_numbers = count(1)


def has_extension(environ: Mapping[str, str]) -> bool:
    """Whether the session's GNOME Shell has our extension."""
    with suppress(BusError), Bus(environ, _PATIENCE) as bus:
        return bus.owned(SHELL) and bool(bus.call(EXTENSION, "Tell"))
    return False


class DescribedWindows(StackedWindows):
    """The windows as the desktop describes them. Each query uses its own connection to the session bus."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @abstractmethod
    def is_there(self) -> bool:
        """Whether this session runs the desktop that the class is for. Raises BusError."""

    @abstractmethod
    def describe(self) -> Any:
        """Return the present windows and pointer; see the module's docstring for the format. Raises BusError."""

    @override
    def read(self) -> list[StackedWindow]:
        with _telling_loss():
            described = self.describe()["windows"]
        # A window without a size is not placed yet.
        found = [_window(one) for one in described if min(*one["box"][2:], *one["outer"][2:]) >= 1]
        return sorted(found, key=lambda one: one.visible)

    @override
    def pointer(self) -> tuple[int, int]:
        with _telling_loss():
            x, y = self.describe()["pointer"]
        return int(x), int(y)

    @override
    def close(self) -> None: ...


class _GnomeWindows(DescribedWindows):
    """The windows that GNOME Shell reports through our extension."""

    @override
    def is_there(self) -> bool:
        return has_extension(self._environ)

    @override
    def describe(self) -> Any:
        return json.loads(self._call("Tell"))

    @override
    def bring(self, identifier: WindowId) -> bool:
        with _telling_loss():
            return bool(self._call("Activate", "u", int(str(identifier))))

    def _call(self, method: str, signature: str | None = None, *body: Any) -> Any:
        with Bus(self._environ, _PATIENCE) as bus:
            return bus.call(EXTENSION, method, signature, *body)[0]


class _KwinWindows(DescribedWindows):
    """The windows that KWin reports: KWin runs a short script that calls us back. This needs no permission."""

    @override
    def is_there(self) -> bool:
        with Bus(self._environ, _PATIENCE) as bus:
            return bus.owned(_KWIN)

    @override
    def describe(self) -> Any:
        return self._run("windows")

    @override
    def bring(self, identifier: WindowId) -> bool:
        with _telling_loss():
            return bool(self._run("activate", WINDOW=str(identifier)))

    def _run(self, script: str, **words: str) -> Any:
        """Run one of our scripts and return the JSON of its callback. Only calls from KWin itself count."""
        name = f"mai-agent-{os.getpid()}-{next(_numbers)}"
        replies: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        with Bus(self._environ, _PATIENCE) as bus, tempfile.NamedTemporaryFile(suffix=".js") as file:
            text = (configs_dir() / f"kwin/{script}.js").read_text(encoding="utf-8")
            for word, value in {"TO": bus.name, **words}.items():
                text = text.replace(f"'{word}'", json.dumps(value))
            file.write(text.encode())
            file.flush()
            bus.serve(_KWIN, EXTENSION, "Told", replies.put)
            [number] = bus.call(_SCRIPTING, "loadScript", "ss", file.name, name)
            try:
                bus.call(DBusAddress(f"/Scripting/Script{number}", _KWIN, "org.kde.kwin.Script"), "run")
                body = replies.get(timeout=_PATIENCE)
            except queue.Empty as error:
                raise BusError("KWin told nothing") from error
            finally:
                with suppress(BusError):
                    bus.call(_SCRIPTING, "unloadScript", "s", name)
        return json.loads(body[0])


@contextmanager
def _telling_loss() -> Iterator[None]:
    try:
        yield
    except BusError as error:
        raise EnvironmentLacksError(
            f"The desktop tells no more of its windows ({error}).", "Is the session still running?"
        ) from error


def _window(one: Mapping[str, Any]) -> StackedWindow:
    box, outer = (Region(*map(int, one[name])) for name in ("box", "outer"))
    window = Window(one["id"], one["title"], one["app"], one["pid"] or None)
    surface = None if one["surface"] is None else (int(one["surface"][0]), int(one["surface"][1]))
    layer = Layer(
        window, box, outer, one["helper"], one["backdrop"], one["passing"], window.pid, frozenset(one["kinds"]), surface
    )
    kind: WindowKind = "dialog" if one["dialog"] else ""
    return StackedWindow(layer, one["shown"], one["focused"], kind, int(one["order"]), one["owner"])


def open_described_windows(environ: Mapping[str, str]) -> DescribedWindows | None:
    """Return the windows of a session, or None if the desktop does not describe them. For the calling thread only."""
    for windows in (_GnomeWindows(environ), _KwinWindows(environ)):
        with suppress(BusError):
            if windows.is_there():
                return windows
    return None
