"""Tells cheaply that settings were just written, and which of XFCE's were."""

import os
from collections.abc import Hashable, Mapping
from contextlib import suppress

from agent.desktop.evidence.kde import marks
from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError

_XFCONF = "org.xfce.Xfconf"
#: Seconds for connecting to the bus.
_PATIENCE = 0.5
#: Properties of XFCE that are remembered, and the longest name: they are a stranger's.
_MOST, _LONGEST = 5000, 300


class SettingsNews:
    """Listens while a run lasts. Not safe to be used by two threads at once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = places.config_home(environ)
        self._bus: Bus | None = None
        self._count = 0
        #: XFCE's settings that were set or reset, by channel and property.
        self.written: set[tuple[str, str]] = set()
        self.hears_all = False  # whether none is missing among them

    def begin(self) -> None:
        """Listen from now on; where there is no bus, there is nothing to be heard."""
        with suppress(BusError):
            bus = Bus(self._environ, _PATIENCE)
            try:
                bus.listen(_XFCONF, "/org/xfce/Xfconf", _XFCONF)
            except BusError:
                bus.close()
                raise
            self._bus, self.hears_all = bus, True

    def listen(self) -> None:
        """Take in what was said since."""
        if self._bus is None:
            return
        try:
            for message in self._bus.heard():
                self._count += 1
                self._note(*message.body[:2])
        except BusError:
            self.hears_all = False
            self.close()

    def _note(self, channel: object = None, name: object = None) -> None:
        if not isinstance(channel, str) or not isinstance(name, str):
            return
        if len(self.written) < _MOST and len(channel) + len(name) <= _LONGEST:
            self.written.add((channel, name))
        else:
            self.hears_all = False

    def mark(self) -> Hashable:
        """What is another as soon as a setting was written."""
        self.listen()
        return self._count, _mark(self._folder / "dconf" / "user"), tuple(marks(self._folder))

    def close(self) -> None:
        """Listen no more; safe to call twice."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()


def _mark(path: os.PathLike[str]) -> Hashable:
    try:
        status = os.stat(path)  # noqa: PTH116 -- of any path
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
