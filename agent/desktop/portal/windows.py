"""Gets windows and a stop key, which Wayland lacks, from GNOME and KDE.

GNOME needs our extension for both, KDE a KWin script for the windows. Both return the same JSON: {"windows": [...],
"pointer": [x, y]}, the lowest window first, in desktop units. Without the extension, the portal's global shortcuts give
a stop key.
"""

import json
import os
import queue
import sys
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any

from jeepney import DBusAddress
from typing_extensions import override

from agent.core.geometry import Region
from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.linux.xkb import keysym_of
from agent.desktop.portal.consent import PORTAL, ask_portal, portal_address
from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.desktop.protocol.windows import Layer, Window, WindowId, WindowKind
from agent.desktop.wayland.stacked import StackedWindow, StackedWindows
from agent.safety.stop import StopSwitch
from foundation.configs import configs_dir
from foundation.errors import EnvironmentLacksError
from foundation.files import write_atomically

SHELL = "org.gnome.Shell"
#: Our GNOME Shell extension (configs/gnome-extension).
EXTENSION = DBusAddress("/org/mai_agent/Windows", SHELL, "org.mai_agent.Windows")
_KWIN = "org.kde.KWin"
_SCRIPTING = DBusAddress("/Scripting", _KWIN, "org.kde.kwin.Scripting")
#: Timeout in seconds for one query; GNOME takes 2 ms, KWin 6 ms.
_TIMEOUT = 3.0
_numbers = count(1)


def has_extension(environ: Mapping[str, str]) -> bool:
    """Whether the session's GNOME Shell has our extension."""
    with suppress(BusError), Bus(environ, _TIMEOUT) as bus:
        return bus.owned(SHELL) and bool(bus.call(EXTENSION, "Tell"))
    return False


class DescribedWindows(StackedWindows):
    """The windows as the desktop describes them. Each query uses its own connection to the session bus."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @abstractmethod
    def ask(self, window: WindowId | None) -> Any:
        """Describe the present windows and pointer, or bring a window to the front and return whether that worked.

        The module's docstring has the format. Raises BusError.
        """

    @override
    def read(self) -> list[StackedWindow]:
        # A window without a size is not placed yet.
        found = [_window(one) for one in self._asked()["windows"] if min(*one["box"][2:], *one["outer"][2:]) >= 1]
        return sorted(found, key=lambda one: one.visible)

    @override
    def pointer(self) -> tuple[int, int]:
        x, y = self._asked()["pointer"]
        return int(x), int(y)

    @override
    def bring(self, identifier: WindowId) -> bool:
        return bool(self._asked(identifier))

    @override
    def close(self) -> None: ...

    def _asked(self, window: WindowId | None = None) -> Any:
        try:
            return self.ask(window)
        except BusError as error:
            raise EnvironmentLacksError(
                f"The desktop no longer reports its windows ({error}).", "Is the session still running?"
            ) from error


class _GnomeWindows(DescribedWindows):
    """The windows that GNOME Shell reports through our extension."""

    @override
    def ask(self, window: WindowId | None) -> Any:
        with Bus(self._environ, _TIMEOUT) as bus:
            if window is not None:
                return bus.call(EXTENSION, "Activate", "u", int(str(window)))[0]
            return json.loads(bus.call(EXTENSION, "Tell")[0])


class _KwinWindows(DescribedWindows):
    """The windows that KWin reports: KWin runs a short script that calls us back. This needs no permission."""

    @override
    def ask(self, window: WindowId | None) -> Any:
        """Run one of our scripts and return the JSON of its callback. Only calls from KWin itself count."""
        script = "windows" if window is None else "activate"
        name = f"mai-agent-{os.getpid()}-{next(_numbers)}"
        replies: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        with Bus(self._environ, _TIMEOUT) as bus, tempfile.NamedTemporaryFile(suffix=".js") as file:
            text = (configs_dir() / f"kwin/{script}.js").read_text(encoding="utf-8")
            text = text.replace("'TO'", json.dumps(bus.name)).replace("'WINDOW'", json.dumps(str(window)))
            file.write(text.encode())
            file.flush()
            bus.serve(_KWIN, EXTENSION, "Told", replies.put)
            [number] = bus.call(_SCRIPTING, "loadScript", "ss", file.name, name)
            try:
                bus.call(DBusAddress(f"/Scripting/Script{number}", _KWIN, "org.kde.kwin.Script"), "run")
                body = replies.get(timeout=_TIMEOUT)
            except queue.Empty as error:
                raise BusError("KWin told nothing") from error
            finally:
                with suppress(BusError):
                    bus.call(_SCRIPTING, "unloadScript", "s", name)
        return json.loads(body[0])


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
    if has_extension(environ):
        return _GnomeWindows(environ)
    with suppress(BusError), Bus(environ, _TIMEOUT) as bus:
        return _KwinWindows(environ) if bus.owned(_KWIN) else None
    return None


_REASON = "the stop key was pressed"
#: Alternative on GNOME, which uses the default chord to cycle through its panels.
_INSTEAD = "ctrl+shift+escape"
_GNOME_MODIFIERS = {"ctrl": "<Control>", "alt": "<Alt>", "shift": "<Shift>", "super": "<Super>"}
#: Names of modifiers in the XDG shortcuts specification.
_PORTAL_MODIFIERS = {"ctrl": "CTRL", "alt": "ALT", "shift": "SHIFT", "super": "LOGO"}
_SHORTCUTS = "GlobalShortcuts"
#: Our application ID. The portal stores the user's answer under it, and only for installed applications.
_APPLICATION = "org.mai_agent.Agent"
#: Its desktop entry. The portal ignores an entry whose program does not exist.
_ENTRY = '[Desktop Entry]\nType=Application\nName=mai-agent\nExec="{python}" -m agent\nNoDisplay=true\n'
#: Seconds in which the user can answer the dialog.
_PERSON = 60.0


class _StopKey(ABC):
    """Sets the stop switch when the chord is pressed, until closed. The desktop releases the chord with the connection.

    `remark` is "" if the chord was granted, otherwise a sentence for the user.
    """

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str) -> None:
        self._stop = stop
        self._opened = ExitStack()
        self.close = self._opened.close
        try:
            self.remark = self._ask(self._opened.enter_context(Bus(environ)), environ, chord)
        except BusError as error:
            self.remark = f"The stop key {chord} is not available ({error})."

    @abstractmethod
    def _ask(self, bus: Bus, environ: Mapping[str, str], chord: str) -> str:
        """Ask for the chord and return the remark. Raises BusError."""


class ShellStopKey(_StopKey):
    """The stop key that our extension grabs."""

    @override
    def _ask(self, bus: Bus, environ: Mapping[str, str], chord: str) -> str:
        bus.listen(SHELL, EXTENSION, "Pressed", self._pressed)
        chords = [chord, _INSTEAD] if chord == DEFAULT_CHORD else [chord]
        got = next((one for one in chords if self._grab(bus, one)), "")
        instead = f"it is {got}." if got else "choose another with the setting stop_key."
        return "" if got == chord else f"The stop key {chord} cannot be used here: {instead}"

    def _grab(self, bus: Bus, chord: str) -> bool:
        """Grab the chord and return whether that worked. Raises BusError."""
        modifiers, key = parse_chord(chord)
        name = "".join(_GNOME_MODIFIERS[one] for one in modifiers) + keysym_of(key)
        [self._number] = bus.call(EXTENSION, "Grab", "s", name)
        return bool(self._number)

    def _pressed(self, body: tuple[Any, ...]) -> None:
        if body == (self._number,):
            self._stop.stop(_REASON)


def has_shortcuts(environ: Mapping[str, str]) -> bool:
    """Whether the session's portal supports global shortcuts."""
    with suppress(BusError), Bus(environ) as bus:
        return bool(bus.property(portal_address(_SHORTCUTS), "version", start=True))
    return False


class PortalStopKey(_StopKey):
    """The stop key of the portal's global shortcuts.

    The desktop asks the user for permission; GNOME and KDE ask only once. The constructor waits for the answer, for at
    most `seconds` or until the stop switch is set.
    """

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str, seconds: float = _PERSON) -> None:
        self._deadline = time.monotonic() + seconds
        super().__init__(environ, stop, chord)

    @override
    def _ask(self, bus: Bus, environ: Mapping[str, str], chord: str) -> str:
        """Ask for the chord; the user may choose another one in its place."""
        _introduce(bus, environ)
        refused = f"The desktop did not give the stop key {chord}, or another one in its place."
        session = self._request(bus, "CreateSession", "", session_handle_token=("s", f"mai{uuid.uuid4().hex}"))
        handle = session.get("session_handle")
        if not handle:
            return refused

        def activated(body: tuple[Any, ...]) -> None:
            if body[:2] == (handle, "stop"):
                self._stop.stop(_REASON)

        bus.listen(PORTAL, portal_address(_SHORTCUTS), "Activated", activated)
        modifiers, key = parse_chord(chord)
        trigger = "+".join([*(_PORTAL_MODIFIERS[one] for one in modifiers), keysym_of(key)])
        wanted = [("stop", {"description": ("s", "Stop mai-agent"), "preferred_trigger": ("s", trigger)})]
        bound = self._request(bus, "BindShortcuts", "oa(sa{sv})s", handle, wanted, "")
        return "" if bound.get("shortcuts") else refused

    def _request(self, bus: Bus, member: str, signature: str, *body: Any, **options: Any) -> dict[str, Any]:
        left = max(0.0, self._deadline - time.monotonic())
        answer = ask_portal(bus, _SHORTCUTS, member, signature, body, options, self._stop, left)
        return {} if answer is None else answer[1]  # GNOME 48 reports an error although it grants the chord


def _introduce(bus: Bus, environ: Mapping[str, str]) -> None:
    """Register our application ID: since 1.20, the portal grants shortcuts only to known applications."""
    entry = places.data_home(environ) / "applications" / f"{_APPLICATION}.desktop"
    with suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(entry, _ENTRY.format(python=sys.executable))
    registry = DBusAddress(portal_address(_SHORTCUTS).object_path, PORTAL, "org.freedesktop.host.portal.Registry")
    with suppress(BusError):
        bus.call(registry, "Register", "sa{sv}", _APPLICATION, {}, start=True)
