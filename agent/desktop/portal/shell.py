"""Asks GNOME's shell for its windows and for a stop key: our extension has both (configs/gnome-extension)."""

import json
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

from jeepney import DBusAddress, HeaderFields, Message

from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.protocol.desktop import DEFAULT_CHORD, parse_chord
from agent.desktop.protocol.windows import WindowId
from agent.desktop.wayland.keysyms import keysym_of
from agent.safety.stop import StopSwitch

_SHELL = "org.gnome.Shell"
_WINDOWS = DBusAddress("/org/mai_agent/Windows", _SHELL, "org.mai_agent.Windows")
#: Seconds for one look; it takes 2 ms.
_PATIENCE = 3.0
_PRESSED = "Pressed"
_POLL = 0.03
_REASON = "the stop key was pressed"
#: GNOME goes through its panels with the usual chord.
_INSTEAD = "ctrl+shift+escape"
_MODIFIERS = {"ctrl": "<Control>", "alt": "<Alt>", "shift": "<Shift>", "super": "<Super>"}


class Shell:
    """See `Teller`. Every method raises BusError."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def is_there(self) -> bool:
        """Whether there is a shell that tells."""
        return has_extension(self._environ)

    def tell(self) -> Any:
        """See `Teller.tell`."""
        return json.loads(self._ask("Tell"))

    def activate(self, identifier: WindowId) -> bool:
        """See `Teller.activate`."""
        return bool(self._ask("Activate", "u", int(str(identifier))))

    def _ask(self, method: str, signature: str | None = None, *body: Any) -> Any:
        with closing(Bus(self._environ, _PATIENCE)) as bus:
            [told] = bus.ask(_WINDOWS, method, signature, *body)
        return told


def has_extension(environ: Mapping[str, str]) -> bool:
    """Whether the shell of a session has our extension."""
    with suppress(BusError), closing(Bus(environ, _PATIENCE)) as bus:
        return bus.owned(_SHELL) and bool(bus.ask(_WINDOWS, "Tell"))
    return False


class ShellStopKey:
    """Sets the stop switch when the chord is pressed, until it is closed; for the chord "none", does nothing.

    Raises:
        UsageError: that is no chord.
    """

    def __init__(self, environ: Mapping[str, str], stop: StopSwitch, chord: str) -> None:
        self.remark = ""
        self._stop = stop
        self._closed = threading.Event()
        if not parse_chord(chord)[1]:
            return
        chords = [chord, _INSTEAD] if chord == DEFAULT_CHORD else [chord]
        try:
            bus = Bus(environ, _PATIENCE)
        except BusError as error:
            self.remark = _unwatched(chord, error)
            return
        try:
            bus.listen(_SHELL, _WINDOWS.object_path, _WINDOWS.interface, _PRESSED)
            got = next((one for one in chords if self._grab(bus, one)), "")
        except BusError as error:
            bus.close()
            self.remark = _unwatched(chord, error)
            return
        if got != chord:
            self.remark = f"The stop key {chord} is not to be had here: " + (
                f"it is {got}." if got else "choose another with the setting stop_key."
            )
        if not got:
            bus.close()
            return
        threading.Thread(target=self._watch, args=(bus,), name="stop key", daemon=True).start()

    def _grab(self, bus: Bus, chord: str) -> bool:
        """Whether the chord is ours now. Raises BusError."""
        modifiers, key = parse_chord(chord)
        name = "".join(_MODIFIERS[one] for one in modifiers) + keysym_of(key)
        [self._number] = bus.ask(_WINDOWS, "Grab", "s", name)
        return bool(self._number)

    def close(self) -> None:
        """Give the chord back; does not wait."""
        self._closed.set()

    def _watch(self, bus: Bus) -> None:
        """The shell gives the chord back when this connection is closed."""
        with closing(bus), suppress(BusError):  # a lost desktop is told by the watch on it
            while not self._closed.wait(_POLL) and not self._stop.stopped:
                if any(self._is_ours(one) for one in bus.heard()):
                    self._stop.stop(_REASON)

    def _is_ours(self, message: Message) -> bool:
        return (message.header.fields.get(HeaderFields.member), message.body) == (_PRESSED, (self._number,))


def _unwatched(chord: str, error: BusError) -> str:
    return f"The stop key {chord} cannot be watched ({error})."
