"""Detects cheaply that settings were just written, and which XFCE settings were."""

import os
from collections.abc import Hashable, Mapping
from contextlib import suppress

from jeepney import DBusAddress

from agent.desktop.changes.kde import marks
from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError

XFCONF = DBusAddress("/org/xfce/Xfconf", "org.xfce.Xfconf", "org.xfce.Xfconf")
#: Seconds for connecting to the bus, and for each call.
_PATIENCE = 0.5
#: Most XFCE properties to remember, and their longest name: other programs choose them.
_MOST, _LONGEST = 5000, 300


class SettingsMonitor:
    """Listens for written settings during a run."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = places.config_home(environ)
        self._bus: Bus | None = None
        self._count = 0
        self._written: set[tuple[str, str]] = set()

    @property
    def written(self) -> frozenset[tuple[str, str]]:
        """XFCE settings that were set or reset, as channel and property."""
        return frozenset(self._written)

    def begin(self) -> None:
        """Start listening. Without a bus, no writes are noticed."""
        with suppress(BusError):
            bus = Bus(self._environ, seconds=_PATIENCE)
            try:
                for member in ("PropertyChanged", "PropertyRemoved"):
                    bus.listen(str(XFCONF.bus_name), XFCONF, member, self._note, broadcast=True)
                self._bus = bus
            except BusError:
                bus.close()
                raise

    def sync(self) -> None:
        """Process all signals sent before this call."""
        if self._bus is not None:
            with suppress(BusError):  # slow: a lost connection is reported by `on_lost`
                self._bus.sync()

    def mark(self) -> Hashable:
        """Return a value that changes whenever a setting is written."""
        return self._count, _mark(self._folder / "dconf" / "user"), tuple(marks(self._folder))

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()

    def _note(self, body: tuple[object, ...]) -> None:
        self._count += 1
        channel, name = (*body[:2], None, None)[:2]
        if not isinstance(channel, str) or not isinstance(name, str):
            return
        if len(self._written) < _MOST and len(channel) + len(name) <= _LONGEST:
            self._written.add((channel, name))


def _mark(path: os.PathLike[str]) -> Hashable:
    try:
        status = os.stat(path)  # noqa: PTH116 -- takes any path
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
