"""Tracks XFCE's settings over D-Bus, because its files lag some seconds behind; without the daemon, from the files."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from agent.core.changes import Change
from agent.desktop.changes.bookkeeping import xfconf_channels
from agent.desktop.changes.settings import Setting, differences, read_bounded
from agent.desktop.changes.settings_monitor import XFCONF, SettingsMonitor
from agent.desktop.linux import places
from agent.desktop.linux.bus import Bus, BusError

_FILES = "xfce4/xfconf/xfce-perchannel-xml"
#: Timeout in seconds for all channels, measured at some 8 ms. After a timeout, later queries wait only for the shorter
#: time.
_PATIENCE, _IMPATIENCE = 0.5, 0.1
_PARTLY = "XFCE's settings were not all known when the run began: one that was never set before may be missing here."
#: Files larger than this are not read. The file of keyboard shortcuts has 10 KB.
_LARGEST = 2_000_000
#: Types in the files, and their D-Bus signatures.
_SIGNATURES = {"string": "s", "int": "i", "uint": "u", "bool": "b", "double": "d", "float": "d", "uchar": "y",
               "char": "n", "uint16": "q", "int16": "n", "uint64": "t", "int64": "x", "array": "av"}  # fmt: skip

_Key = tuple[str, str]  # channel and property


class XfconfStore:
    """A `Source` of XFCE's settings.

    Args:
        environ: environment of the run's applications.
        monitor: notices which settings are written. It is needed because the daemon lists a channel only after writing
            the channel's file.
    """

    def __init__(self, environ: Mapping[str, str], monitor: SettingsMonitor) -> None:
        self._environ = environ
        self._monitor = monitor
        self._without_daemon = False  # whether the initial state comes from the files alone
        self._was_hung = False  # whether that is because the daemon did not answer in time
        self._before: dict[_Key, Setting] = {}
        self._last: list[Change] = []
        self._patience = _PATIENCE
        self.remark = ""

    def begin(self) -> None:
        try:
            self._before = self._ask()
        except BusError:
            self._hung()
            self._before, self._without_daemon, self._was_hung = self._read(), True, True

    def changes(self) -> list[Change]:
        """Returns the last known changes if the daemon does not answer."""
        try:
            now = self._ask()
        except BusError:
            self._hung()
            return self._last
        self.remark, self._patience = "", _PATIENCE
        if self._without_daemon and (self._monitor.hears_all or self._was_hung):
            # Values that the daemon has although no write was noticed are system defaults from its own folders.
            known = {
                key: one for key, one in now.items() if key not in self._before and key not in self._monitor.written
            }
            self._before |= known
            self.remark = "" if self._monitor.hears_all else _PARTLY
        self._last = list(differences("xfconf", self._before, now, name=" ".join, place=list))
        return self._last

    def _hung(self) -> None:
        self.remark = "XFCE's settings (xfconfd) do not answer: it is not known which of them change."
        self._patience = _IMPATIENCE

    def _ask(self) -> dict[_Key, Setting]:
        """Return all settings. Raises BusError: the daemon is running but does not answer."""
        try:
            bus = Bus(self._environ, self._patience)
        except BusError:  # without a bus there is no daemon
            return self._read()
        with bus:
            if not bus.owned(str(XFCONF.bus_name)):
                self._without_daemon = True
                return self._read()
            (channels,) = bus.call(XFCONF, "ListChannels")
            found: dict[_Key, Setting] = {}
            self._monitor.sync()  # after a reply, so the signals for earlier writes are there
            for channel in dict.fromkeys([*channels, *xfconf_channels(), *(one for one, _ in self._monitor.written)]):
                (properties,) = bus.call(XFCONF, "GetAllProperties", "ss", channel, "/")
                for name, (signature, value) in properties.items():
                    found[channel, name] = Setting(as_text(signature, value), as_json(signature, value))
            return found

    def _read(self) -> dict[_Key, Setting]:
        """Return all settings from the files. The user's files take precedence over the system's."""
        found: dict[_Key, Setting] = {}
        for folder in [*reversed(places.config_dirs(self._environ)), places.config_home(self._environ)]:
            for file in sorted((folder / _FILES).glob("*.xml")):
                try:
                    root = ElementTree.fromstring(read_bounded(file, _LARGEST))  # noqa: S314 -- expat limits expansion
                    _gather(root, root.get("name", ""), "", found)
                except (ElementTree.ParseError, ValueError):
                    continue  # only partly written
        return found


def set_again(environ: Mapping[str, str], key: _Key, data: Any, seconds: float = 2.0) -> None:
    """Set a property to an earlier value, or reset it if `data` is None. Raises BusError."""
    with Bus(environ, seconds) as bus:
        if data is None:
            bus.call(XFCONF, "ResetProperty", "ssb", *key, False, start=True)
        else:
            bus.call(XFCONF, "SetProperty", "ssv", *key, _from_json(data), start=True)


def current(environ: Mapping[str, str], key: _Key, seconds: float = 2.0) -> Any:
    """Return a property's value as plain JSON, or None if it is not set. Raises BusError."""
    with Bus(environ, seconds) as bus:
        if not bus.call(XFCONF, "PropertyExists", "ss", *key)[0]:
            return None
        (variant,) = bus.call(XFCONF, "GetProperty", "ss", *key)
        return as_json(*variant)


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


def _gather(element: ElementTree.Element, channel: str, path: str, found: dict[_Key, Setting]) -> None:
    for child in element.findall("property"):
        name = f"{path}/{child.get('name', '')}"
        value = _variant(child)
        if value is not None:
            found[channel, name] = Setting(as_text(*value), as_json(*value))
        _gather(child, channel, name, found)


def _variant(element: ElementTree.Element) -> tuple[str, Any] | None:
    """Return the value of a file's XML element, or None if the element only contains others. Raises ValueError."""
    signature = _SIGNATURES.get(element.get("type", ""))
    text = element.get("value", "")
    match signature:
        case None:
            return None
        case "av":
            return "av", [value for item in element.findall("value") if (value := _variant(item))]
        case "s":
            return "s", text
        case "b":
            return "b", text == "true"
        case "d":
            return "d", float(text)
    return signature, int(text)
