"""A bus with made-up accessible applications on it: their trees are data, and some misbehave."""

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageType, new_error, new_method_call, new_method_return
from jeepney.bus import get_connectable_addresses
from jeepney.io.blocking import DBusConnection, prep_socket

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.protocol.windows import Layer, Window
from agent.desktop.trees.roles import ROLES

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd"><busconfig><listen>unix:dir={folder}</listen>
<auth>EXTERNAL</auth><policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>
<allow user="*"/></policy></busconfig>"""
ROOT = "/org/a11y/atspi/accessible/root"
SHOWN = 1 << 25 | 1 << 30 | 1 << 24 | 1 << 8


@dataclass
class Thing:
    """One made-up node."""

    role: str = "panel"
    name: str = ""
    box: tuple[int, int, int, int] = (0, 0, 100, 100)
    children: list["Thing"] = field(default_factory=list)
    states: int = SHOWN
    text: str = ""
    action: str = ""
    labelled_by: "Thing | None" = None
    value: tuple[float, float, float] | None = None
    count: int | None = None  # the number of children that it claims
    hit: "Thing | None" = None  # what it says is at any point of it
    cached: int | None = None  # its states as GTK 4's cache has them, where those are others


def window(*children: Thing, name: str = "Window", box: tuple[int, int, int, int] = (0, 0, 400, 300)) -> Thing:
    return Thing("frame", name, box, list(children))


class Application:
    """One application; `toolkit` "gtk" answers as ATK's bridge does, "GTK" as GTK 4, "Qt" tells each node by itself."""

    def __init__(self, address: str, *windows: Thing, name: str = "app", toolkit: str = "gtk") -> None:
        self.root = Thing("application", name, children=list(windows))
        self.toolkit = toolkit
        self.silent = False
        self.broken: dict[str, tuple[str, tuple[Any, ...]]] = {}  # of methods, what is answered in place of the truth
        self.asked: list[str] = []
        self.connection = DBusConnection(prep_socket(next(iter(get_connectable_addresses(address)))))
        self.bus_name = self.connection.unique_name
        self._paths: dict[int, str] = {}
        self._things: dict[str, Thing] = {}
        self._parents: dict[int, Thing] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def path(self, thing: Thing) -> str:
        path = self._paths.setdefault(id(thing), ROOT if thing is self.root else f"/thing/{len(self._paths)}")
        self._things[path] = thing
        return path

    def close(self) -> None:
        with suppress(OSError):
            self.connection.sock.shutdown(2)
        self._thread.join(5)
        self.connection.close()

    def _serve(self) -> None:
        self.path(self.root)
        while True:
            try:
                message = self.connection.receive()
                if message.header.message_type is not MessageType.method_call or self.silent:
                    continue
                fields = message.header.fields
                member = fields[HeaderFields.member]
                self.asked.append(member)
                answer = self.broken.get(member) or self._answer(
                    self._things.get(fields[HeaderFields.path]), fields[HeaderFields.interface], member, message.body
                )
                reply = (
                    new_error(message, "org.none")
                    if answer is None
                    else new_method_return(message, *(answer if answer[0] else ()))
                )
                self.connection.send(reply)
            except (OSError, ValueError):
                return

    def _ref(self, thing: Thing) -> tuple[str, str]:
        return self.bus_name, self.path(thing)

    def _below(self, thing: Thing) -> Iterator[Thing]:
        for child in thing.children:
            self._parents[id(child)] = thing
            yield child
            yield from self._below(child)

    def _answer(self, thing: Thing | None, interface: str, member: str, body: Any) -> Any:
        if thing is None and member != "GetItems":
            return None
        thing = thing or self.root
        match member:
            case "GetChildren":
                for child in thing.children:
                    self._parents[id(child)] = thing
                return "a(so)", ([self._ref(child) for child in thing.children],)
            case "GetRole":
                return "u", (ROLES.index(thing.role),)
            case "GetState":
                return "au", ([thing.states & 0xFFFFFFFF, thing.states >> 32],)
            case "GetExtents":
                return "(iiii)", (thing.box,)
            case "GetMatches" if self.toolkit not in ("Qt", "GTK"):
                wanted = body[0][0][0]
                roles = sum((word % (1 << 32)) << 32 * at for at, word in enumerate(body[0][4]))
                found = [one for one in self._below(thing) if one.states & wanted == wanted]
                found = [one for one in found if not roles or roles >> ROLES.index(one.role) & 1]
                return "a(so)", ([self._ref(one) for one in found],)
            case "GetItems" if self.toolkit == "GTK":
                return "a((so)(so)(so)iiassusau)", ([self._item(one) for one in self._below(self.root)],)
            case "GetAccessibleAtPoint":
                x, y, _ = body
                here = thing.hit or next(
                    (one for one in reversed(thing.children) if one.states >> 25 & 1 and _contains(one.box, x, y)), None
                )
                return "(so)", (self._ref(here) if here else (self.bus_name, "/org/a11y/atspi/null"),)
            case "GetText" if thing.text:
                return "s", (thing.text[: body[1]],)
            case "GetName" if thing.action:
                return "s", (thing.action,)
            case "GetRelationSet":
                labels = [(2, [self._ref(thing.labelled_by)])] if thing.labelled_by else []
                return "a(ua(so))", (labels,)
            case "Get" if body[1] == "ToolkitName":
                return "v", (("s", self.toolkit),)
            case "Get" if body[0].endswith("Value") and thing.value:
                names = ("CurrentValue", "MinimumValue", "MaximumValue")
                return "v", (("d", thing.value[names.index(body[1])]),)
            case "Get":
                told = self._properties(thing).get(body[1])
                return told and ("v", (told,))
            case "GetAll" if self.toolkit == "Qt":
                raise ConnectionAbortedError  # Qt 5.15 crashes
            case "GetAll" if body[0].endswith("Accessible"):
                return "a{sv}", (self._properties(thing),)
        return None

    def _item(self, thing: Thing) -> Any:
        states = thing.states if thing.cached is None else thing.cached
        parent = self._ref(self._parents[id(thing)])
        told = thing.name, ROLES.index(thing.role), "", [states & 0xFFFFFFFF, states >> 32]
        return self._ref(thing), self._ref(self.root), parent, 0, len(thing.children), [], *told

    def _properties(self, thing: Thing) -> dict[str, Any]:
        parent = self._parents.get(id(thing))
        count = len(thing.children) if thing.count is None else thing.count
        told: dict[str, Any] = {"Name": ("s", thing.name), "ChildCount": ("i", count)}
        return told if parent is None else told | {"Parent": ("(so)", self._ref(parent))}


def _contains(box: tuple[int, int, int, int], x: int, y: int) -> bool:
    return box[0] <= x < box[0] + box[2] and box[1] <= y < box[1] + box[3]


class Status(Application):
    """The session's service with the switch of accessibility."""

    def __init__(self, address: str, *, on: bool) -> None:
        self.on = on
        super().__init__(address, name="status")
        _own(self.connection, "org.a11y.Bus")

    def _answer(self, thing: Thing | None, interface: str, member: str, body: Any) -> Any:
        match member, body:
            case "Get", (_, "IsEnabled"):
                return "v", (("b", self.on),)
            case "Set", (_, "IsEnabled", (_, on)):
                self.on = on
                return "", ()
            case "GetAddress", _:
                return "s", ("unix:path=/nowhere",)
        return None


def _own(connection: DBusConnection, name: str) -> None:
    bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    connection.send(new_method_call(bus, "RequestName", "su", (name, 4)))


class AccessibilityBus:
    """A bus of its own, with the list of applications."""

    def __init__(self, folder: Path) -> None:
        config = folder / "bus.conf"
        config.write_text(CONFIG.format(folder=folder))
        command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile", "--print-address=1"]
        self._daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._daemon.stdout is not None
        self.address = self._daemon.stdout.readline().strip()
        self._registry = Application(self.address, name="registry")
        _own(self._registry.connection, "org.a11y.atspi.Registry")
        self.applications: list[Application] = []

    def add(self, *windows: Thing, name: str = "app", toolkit: str = "gtk") -> Application:
        made = Application(self.address, *windows, name=name, toolkit=toolkit)
        self.applications.append(made)
        listed = [(one.bus_name, ROOT) for one in self.applications]
        self._registry.broken["GetChildren"] = ("a(so)", (listed,))
        return made

    def close(self) -> None:
        for one in (self._registry, *self.applications):
            one.close()
        self._daemon.kill()
        self._daemon.wait()


@contextmanager
def accessibility_bus() -> Iterator[AccessibilityBus]:
    with tempfile.TemporaryDirectory() as folder:
        bus = AccessibilityBus(Path(folder))
        try:
            yield bus
        finally:
            bus.close()


def layer(number: int, box: tuple[int, int, int, int], title: str = "Window", pid: int | None = None) -> Layer:
    region = Region(*box)
    return Layer(Window(number, title, "App", os.getpid() if pid is None else pid), region, region)


class FakeWindows:
    """Windows as a list, the top-most first; what is not used here is not there."""

    def __init__(self, *layers: Layer) -> None:
        self.shown = list(layers)

    def layers(self):
        return self.shown

    def layers_at(self, points):
        return [
            next((one.window.id for one in self.shown if one.outer.contains(DesktopPoint(*point))), None)
            for point in points
        ]

    def is_ordinary(self, _identifier):
        return True

    def kind(self, _identifier):
        return ""

    def active(self):
        return self.shown[0].window if self.shown else None

    def close(self):
        pass
