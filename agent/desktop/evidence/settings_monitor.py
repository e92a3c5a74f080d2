"""Tells cheaply that settings were just written, and which of XFCE's were."""

import os
from collections.abc import Hashable, Mapping
from contextlib import suppress

from jeepney import DBusAddress

from agent.desktop.evidence.kde import marks
from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError

XFCONF = DBusAddress("/org/xfce/Xfconf", "org.xfce.Xfconf", "org.xfce.Xfconf")
#: Seconds for connecting to the bus, and for each call.
_PATIENCE = 0.5
#: Properties of XFCE that are remembered, and the longest name: other programs write them.
_MOST, _LONGEST = 5000, 300


class SettingsMonitor:
    """Listens while a run lasts."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = places.config_home(environ)
        self._bus: Bus | None = None
        self._count = 0
        self._written: set[tuple[str, str]] = set()
        self.hears_all = False  # whether none is missing in `written`

    @property
    def written(self) -> frozenset[tuple[str, str]]:
        """XFCE's settings that were set or reset, by channel and property."""
        return frozenset(self._written)

    def begin(self) -> None:
        """Listen from now on; without a bus, nothing is heard."""
        with suppress(BusError):
            bus = Bus(self._environ, seconds=_PATIENCE)
            try:
                for member in ("PropertyChanged", "PropertyRemoved"):
                    bus.listen(str(XFCONF.bus_name), XFCONF, member, self._note, broadcast=True)
                bus.on_lost("", self._lose)
            except BusError:
                bus.close()
                raise
            self._bus, self.hears_all = bus, True

    def sync(self) -> None:
        """Take in what was told before now."""
        if self._bus is not None:
            try:
                self._bus.sync()
            except BusError:
                self._lose()

    def mark(self) -> Hashable:
        """A value that changes as soon as a setting was written."""
        return self._count, _mark(self._folder / "dconf" / "user"), tuple(marks(self._folder))

    def close(self) -> None:
        """Listen no more; safe to call twice."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()

    def _lose(self) -> None:
        self.hears_all = False

    def _note(self, body: tuple[object, ...]) -> None:
        self._count += 1
        channel, name = (*body[:2], None, None)[:2]
        if not isinstance(channel, str) or not isinstance(name, str):
            return
        if len(self._written) < _MOST and len(channel) + len(name) <= _LONGEST:
            self._written.add((channel, name))
        else:
            self.hears_all = False


def _mark(path: os.PathLike[str]) -> Hashable:
    try:
        status = os.stat(path)  # noqa: PTH116 -- of any path
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
