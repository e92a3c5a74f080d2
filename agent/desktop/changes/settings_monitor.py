"""Detects cheaply that settings were just written, and which XFCE settings were."""

from collections.abc import Hashable, Mapping
from contextlib import ExitStack, suppress

from jeepney import DBusAddress

from agent.desktop.changes.entries import entry_at
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
        with suppress(BusError), ExitStack() as opened:
            bus = opened.enter_context(Bus(self._environ, seconds=_PATIENCE))
            for member in ("PropertyChanged", "PropertyRemoved"):
                bus.listen(str(XFCONF.bus_name), XFCONF, member, self._note, broadcast=True)
            self._bus = bus
            opened.pop_all()

    def sync(self) -> None:
        """Process all signals sent before this call."""
        if self._bus is not None:
            with suppress(BusError):  # slow: a lost connection is reported by `on_lost`
                self._bus.sync()

    def mark(self) -> Hashable:
        """Return a value that changes whenever a setting is written."""
        dconf = entry_at(str(self._folder / "dconf" / "user"))
        return self._count, dconf, tuple(marks(self._folder))

    def close(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()

    def _note(self, body: tuple[object, ...]) -> None:
        self._count += 1
        match body:
            case (str(channel), str(name), *_) if len(channel) + len(name) <= _LONGEST and len(self._written) < _MOST:
                self._written.add((channel, name))
