"""Tracks XFCE's settings over D-Bus, because its files lag some seconds behind."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from jeepney import DBusAddress

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import Setting, differences, entry
from agent.desktop.linux.bus import Bus, BusError
from agent.desktop.trees.switch import session_bus

#: Timeouts in seconds for reading all channels, which takes some 8 ms: at the beginning, when the daemon may have to
#: start; later; and after a timeout.
_STARTING, _TIMEOUT, _SHORT_TIMEOUT = 1.2, 0.5, 0.1
#: Seconds for reading or setting one property.
_UNDOING = 2.0

#: Most written properties to remember, and their longest name: other programs choose them.
_MOST, _LONGEST = 5000, 300
_XFCONF = DBusAddress("/org/xfce/Xfconf", "org.xfce.Xfconf", "org.xfce.Xfconf")

_Key = tuple[str, str]  # channel and property


class XfconfStore:
    """A `Store` of XFCE's settings, in an environment. Without a bus, no writes are noticed.

    It also listens for written settings, because the daemon lists a channel only after writing the channel's file.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._listening: Bus | None = None
        self._writes = 0
        self._written: set[_Key] = set()
        self._before: dict[_Key, Setting] | None = None  # None while unknown
        self._last: list[Change] = []
        self._patience = _STARTING
        self.remark = ""

    def begin(self) -> None:
        with suppress(BusError), ExitStack() as opened:
            bus = opened.enter_context(Bus(self._environ, seconds=_TIMEOUT))
            for member in ("PropertyChanged", "PropertyRemoved"):
                bus.listen(str(_XFCONF.bus_name), _XFCONF, member, self._note, broadcast=True)
            self._listening = bus
            opened.pop_all()
        self.changes()

    def mark(self) -> int:
        return self._writes

    def close(self) -> None:
        """Stop listening."""
        bus, self._listening = self._listening, None
        if bus is not None:
            bus.close()

    def _note(self, body: tuple[object, ...]) -> None:
        self._writes += 1
        match body:
            case (str(channel), str(name), *_) if len(channel) + len(name) <= _LONGEST and len(self._written) < _MOST:
                self._written.add((channel, name))

    def changes(self) -> list[Change]:
        """Return the changes, the last known ones if the daemon does not answer."""
        try:
            now = self._ask()
        except BusError:
            self.remark = "XFCE's settings daemon (xfconfd) does not answer: its changes are not known."
            self._patience = _TIMEOUT if self._before is None else _SHORT_TIMEOUT
            return self._last
        if self._before is None:  # at the beginning, or as soon as the daemon answers
            self._before = now
        self.remark, self._patience = "", _TIMEOUT
        self._last = list(differences("xfconf", self._before, now, name=" ".join, place=list))
        return self._last

    def _ask(self) -> dict[_Key, Setting]:
        """Return all settings; none without XFCE. Raises BusError: the daemon does not answer.

        Starts the daemon. If the daemon started later, it would add its defaults, which would look like changes.
        """
        found: dict[_Key, Setting] = {}
        if not session_bus(self._environ):
            return found
        with Bus(self._environ, self._patience) as bus:
            if not bus.owned(str(_XFCONF.bus_name), start=True):
                if self._before:
                    raise BusError("XFCE's daemon ended")
                return found
            (channels,) = bus.call(_XFCONF, "ListChannels")
            if self._listening is not None:
                with suppress(BusError):
                    self._listening.sync()  # after a reply, so the signals for earlier writes are there
            written = [channel for channel, _ in list(self._written)]
            for channel in dict.fromkeys([*channels, *entry("settings", "xfconf_channels"), *written]):
                (properties,) = bus.call(_XFCONF, "GetAllProperties", "ss", channel, "/")
                for name, (signature, value) in properties.items():
                    found[channel, name] = Setting(as_text(signature, value), as_json(signature, value))
        return found


def set_again(environ: Mapping[str, str], channel: str, name: str, data: Any) -> None:
    """Set a property to an earlier value, or reset it if `data` is None. Raises BusError."""
    with Bus(environ, _UNDOING) as bus:
        if data is None:
            bus.call(_XFCONF, "ResetProperty", "ssb", channel, name, False, start=True)
        else:
            bus.call(_XFCONF, "SetProperty", "ssv", channel, name, _from_json(data), start=True)


def current(environ: Mapping[str, str], channel: str, name: str) -> Any:
    """Return a property's value as plain JSON, or None if it is not set. Raises BusError."""
    with Bus(environ, _UNDOING) as bus:
        if not bus.call(_XFCONF, "PropertyExists", "ss", channel, name)[0]:
            return None
        return as_json(*bus.call(_XFCONF, "GetProperty", "ss", channel, name)[0])


def as_text(signature: str, value: Any) -> str:
    """Format a value as `xfconf-query` does, and an array as a list of such values."""
    if signature == "b":
        return "true" if value else "false"
    if signature == "d":
        return f"{value:f}"
    if signature == "av":
        return f"[{', '.join(as_text(*item) for item in value)}]"
    return str(value)


def as_json(signature: str, value: Any) -> dict[str, Any]:
    """Return a D-Bus value as plain JSON."""
    inner = [as_json(*item) for item in value] if signature == "av" else value
    return {"signature": signature, "value": inner}


def _from_json(data: Any) -> tuple[str, Any]:
    signature, value = data["signature"], data["value"]
    return signature, [_from_json(item) for item in value] if signature == "av" else value
