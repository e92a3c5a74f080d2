"""The stop key on sway, which binds keys at run time and tells when they are pressed; Wayland itself has none."""

import json
import os
import threading

from agent.desktop.protocol.desktop import parse_chord
from agent.desktop.wayland.keysyms import keysym_of
from agent.desktop.wlroots.sway import RUN_COMMAND, SUBSCRIBE, open_sway
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

_REASON = "the stop key was pressed"
_POLL = 0.2
#: Names of modifiers in sway's words.
_MODIFIERS = {"ctrl": "Ctrl", "alt": "Mod1", "shift": "Shift", "super": "Mod4"}


class SwayStopKey:
    """Sets the stop switch when the chord is pressed, until it is closed; for the chord "none", does nothing.

    Raises:
        UsageError: that is no chord.
    """

    def __init__(self, stop: StopSwitch, chord: str) -> None:
        self.remark = ""
        self._stop = stop
        self._closed = threading.Event()
        modifiers, key = parse_chord(chord)
        if not key:
            return
        self._keys = "+".join([*(_MODIFIERS[one] for one in modifiers), keysym_of(key)])
        self._command = f"nop mai-agent stop {os.getpid()}"  # does nothing: what counts is that sway tells it
        self._sway, self._events = open_sway(), open_sway()
        try:
            if self._sway is None or self._events is None:
                raise EnvironmentLacksError("sway went away.")
            self._events.ask(SUBSCRIBE, json.dumps(["binding"]))
            done = self._sway.ask(RUN_COMMAND, f"bindsym --no-warn {self._keys} {self._command}")
            if not (done and done[0].get("success")):
                self.remark = f"The stop key {chord} is not to be had here: choose another with the setting stop_key."
                return
        except EnvironmentLacksError as error:
            self.remark = f"The stop key {chord} cannot be watched ({error})."
            return
        threading.Thread(target=self._watch, name="stop key", daemon=True).start()

    def close(self) -> None:
        """Give the chord back; does not wait."""
        self._closed.set()

    def _watch(self) -> None:
        assert self._sway is not None and self._events is not None
        try:
            while not self._closed.is_set() and not self._stop.stopped:
                told = self._events.event(_POLL)
                if told is not None and told.get("binding", {}).get("command") == self._command:
                    self._stop.stop(_REASON)
            self._sway.ask(RUN_COMMAND, f"unbindsym {self._keys}")
        except EnvironmentLacksError:
            return  # told by the watch on the compositor
        finally:
            self._sway.close()
            self._events.close()
