"""Windows that GNOME's shell tells by our extension, and KWin by a script."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from jeepney import HeaderFields, Message, MessageType, new_error, new_method_call, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import DBusAddress
from stubs.benches import GnomeBench
from stubs.display import wait_until
from stubs.fake_portal import session_bus_in
from stubs.gnome import PlainGnome

from agent.core.geometry import Region
from agent.desktop.portal import takeover
from agent.desktop.portal.takeover import IdleWatch, tells_idle, terminal_has_focus
from agent.desktop.portal.windows import DescribedWindows, ShellStopKey, has_extension, open_described_windows
from agent.desktop.protocol.desktop import TakeoverWatch
from agent.desktop.protocol.hand import Rest
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

#: As KWin 6.3 told it, of two windows and a menu; shortened.
TOLD = {
    "windows": [
        {"id": "{b}", "order": 1, "title": "lower", "app": "kwrite", "pid": 12, "box": [0, 30, 640, 450],
         "outer": [0, 0, 640, 480], "surface": [-20, 10], "shown": True, "focused": False, "dialog": False,
         "helper": False, "passing": False, "owner": None, "backdrop": False, "kinds": []},
        {"id": "{a}", "order": 0, "title": "upper", "app": "kcalc", "pid": 11, "box": [320, 30, 640, 450],
         "outer": [320, 0, 640, 480], "surface": None, "shown": True, "focused": True, "dialog": True,
         "helper": False, "passing": False, "owner": None, "backdrop": False, "kinds": []},
        {"id": "{m}", "order": -1, "title": "", "app": "kcalc", "pid": 11, "box": [900, 400, 100, 200],
         "outer": [900, 400, 100, 200], "surface": None, "shown": True, "focused": False, "dialog": False,
         "helper": True, "passing": False, "owner": "{a}", "backdrop": False, "kinds": []},
        {"id": "{c}", "order": 2, "title": "put away", "app": "kwrite", "pid": 12, "box": [0, 0, 900, 900],
         "outer": [0, 0, 900, 900], "surface": None, "shown": False, "focused": False, "dialog": False,
         "helper": False, "passing": False, "owner": None, "backdrop": False, "kinds": []},
        {"id": "{d}", "order": 3, "title": "not there yet", "app": "kwrite", "pid": 12, "box": [0, 0, 0, 0],
         "outer": [0, 0, 0, 0], "surface": None, "shown": True, "focused": False, "dialog": False,
         "helper": False, "passing": False, "owner": None, "backdrop": False, "kinds": []},
    ],
    "pointer": [5, 7],
}  # fmt: skip


class FakeKwin:
    """Runs scripts as KWin does: loads them, calls back the name that they hold, and forgets them.

    Args:
        environ: names the bus.
        told: what it calls back with; None for no call.
    """

    def __init__(self, environ: dict[str, str], told: object) -> None:
        self.told = told
        self.loaded: dict[str, str] = {}
        self.texts: list[str] = []
        self._bus = open_dbus_connection(environ["DBUS_SESSION_BUS_ADDRESS"])
        self._bus.send_and_get_reply(message_bus.RequestName("org.kde.KWin"), timeout=60)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                message = self._bus.receive()
            except (OSError, ValueError):
                return
            if message.header.message_type is MessageType.method_call:
                self._answer(message)

    def _answer(self, message: Message) -> None:
        match message.header.fields[HeaderFields.member]:
            case "loadScript":
                path, name = message.body
                self.loaded[name] = Path(path).read_text(encoding="utf-8")
                self.texts.append(self.loaded[name])
                self._bus.send(new_method_return(message, "i", (7,)))
            case "run" if message.header.fields[HeaderFields.path] != "/Scripting/Script7":
                self._bus.send(new_error(message, "org.freedesktop.DBus.Error.UnknownObject"))
            case "run":
                self._bus.send(new_method_return(message))
                [text] = self.loaded.values()
                called = text.split("callDBus(")[1].split(",")[0].strip('"')
                if self.told is not None:
                    self._bus.send(told_to(called, self.told))
            case _:
                self.loaded.pop(message.body[0])
                self._bus.send(new_method_return(message, "b", (True,)))

    def close(self) -> None:
        self._bus.close()


def told_to(name: str, what: object) -> Message:
    interface = "org.mai_agent.Windows"
    return new_method_call(DBusAddress("/org/mai_agent/Windows", name, interface), "Told", "s", (json.dumps(what),))


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with session_bus_in(tmp_path_factory.mktemp("bus")) as address:
        yield {"DBUS_SESSION_BUS_ADDRESS": address, "PATH": os.environ["PATH"]}


def told_by_kwin(bus: dict[str, str], told: object) -> tuple[FakeKwin, DescribedWindows]:
    kwin = FakeKwin(bus, told)
    windows = open_described_windows(bus)
    assert windows is not None
    return kwin, windows


def test_kwin_tells_its_windows_by_a_script_that_is_taken_away_again(bus: dict[str, str]) -> None:
    kwin, windows = told_by_kwin(bus, TOLD)
    with closing(kwin):
        assert [one.title for one in windows.windows()] == ["upper", "lower", "put away"]
        assert [layer.window.title for layer in windows.layers()] == ["", "upper", "lower"]
        active = windows.active()
        assert active is not None and (active.id, active.app, active.pid) == ("{a}", "kcalc", 11)
        assert windows.region("{b}") == Region(0, 30, 640, 450)
        assert (windows.kind("{a}"), windows.kind("{b}")) == ("dialog", "")
        assert windows.is_ordinary("{b}") and not windows.is_ordinary("{c}")
        assert windows.visible(frozenset({"{b}"})) == [Region(0, 0, 320, 480)]
        under = windows.at(950, 450)
        assert under is not None and under.id == "{a}", "a menu counts as its window"
        assert windows.pointer() == (5, 7)
        assert kwin.loaded == {}


def test_a_window_is_brought_to_the_front_by_its_number_alone(bus: dict[str, str]) -> None:
    hostile = json.loads(json.dumps(TOLD).replace("{b}", "'); evil(); ('"))
    kwin, windows = told_by_kwin(bus, hostile)
    with closing(kwin):
        assert windows.activate("'); evil(); ('")
        assert "\"'); evil(); ('\"" in kwin.texts[-1], "what a stranger wrote stays a text in the script"
        assert not windows.activate("{no such window}")


def test_a_kwin_that_tells_nothing_is_one_sentence(bus: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.desktop.portal.windows._TIMEOUT", 0.3)
    kwin, windows = told_by_kwin(bus, None)
    with closing(kwin), pytest.raises(EnvironmentLacksError, match=r"reports its windows \(KWin told nothing"):
        windows.windows()


def test_nobody_but_kwin_is_believed(bus: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.desktop.portal.windows._TIMEOUT", 1.0)
    kwin, windows = told_by_kwin(bus, None)
    liar, ends = open_dbus_connection(bus["DBUS_SESSION_BUS_ADDRESS"]), threading.Event()

    def lie() -> None:
        while not ends.wait(0.01):
            for text in kwin.texts:
                called = text.split("callDBus(")[1].split(",")[0].strip('"')
                liar.send(told_to(called, TOLD))

    threading.Thread(target=lie, daemon=True).start()
    with closing(kwin), pytest.raises(EnvironmentLacksError):
        windows.windows()
    ends.set()


def test_only_the_shell_itself_can_press_the_stop_key(bus: dict[str, str]) -> None:
    shell, liar = (open_dbus_connection(bus["DBUS_SESSION_BUS_ADDRESS"]) for _ in range(2))
    stop, ends = StopSwitch(), threading.Event()
    shell.send_and_get_reply(message_bus.RequestName("org.gnome.Shell"))

    def grant() -> None:
        for _ in iter(ends.is_set, True):
            with suppress(TimeoutError):
                message = shell.receive(timeout=0.05)
                if message.header.fields.get(HeaderFields.member) == "Grab":
                    shell.send(new_method_return(message, "u", (5,)))

    granting = threading.Thread(target=grant)
    granting.start()
    key = ShellStopKey(bus, stop, "ctrl+f9")
    ends.set()
    granting.join()
    assert key.remark == ""

    pressed = new_signal(DBusAddress("/org/mai_agent/Windows", None, "org.mai_agent.Windows"), "Pressed", "u", (5,))
    liar.send(pressed)
    [names] = liar.send_and_get_reply(message_bus.ListNames(), timeout=60).body
    for name in (one for one in names if one.startswith(":")):  # the key's connection is one of them
        pressed.header.fields[HeaderFields.destination] = name
        liar.send(pressed)
    liar.send_and_get_reply(message_bus.NameHasOwner("org.gnome.Shell"), timeout=60)  # all of it has been handed on
    time.sleep(0.3)
    assert not stop.stopped
    pressed.header.fields.pop(HeaderFields.destination)
    shell.send(pressed)
    wait_until(lambda: stop.stopped, "the run is stopped")
    shell.close()


def test_without_a_shell_or_kwin_windows_are_not_known(bus: dict[str, str]) -> None:
    assert open_described_windows(bus) is None
    assert open_described_windows({}) is None
    assert not has_extension(bus) and not tells_idle(bus)


@pytest.fixture(scope="module")
def gnome(own_temporary_folder: None) -> Iterator[GnomeBench]:
    with PlainGnome() as shell:
        bench = GnomeBench(shell)
        yield bench
        bench.person.leaves()


def test_the_shell_of_a_sandbox_tells_its_windows(gnome: GnomeBench) -> None:
    windows = open_described_windows(gnome.server.environ)
    assert windows is not None
    [layer, *_] = windows.layers()
    assert (layer.window.title, layer.box) == ("probe", Region(0, 0, 1280, 800))
    gnome.person_moves(300, 400)
    wait_until(lambda: windows.pointer() == (300, 400), "the pointer is told")
    second = gnome.server.start("/usr/bin/python3", "-c", SMALL)
    wait_until(lambda: (one := windows.active()) is not None and one.title == "second", "a new window has the focus")
    first = next(one for one in windows.windows() if one.title == "probe")
    assert windows.activate(first.id)
    wait_until(lambda: windows.active() == first, "the first one has it again")
    second.signal(9)  # type: ignore[attr-defined]
    wait_until(lambda: len([one for one in windows.windows() if windows.is_ordinary(one.id)]) == 1, "it is gone")


SMALL = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window = Gtk.Window(title="second")
window.show_all()
Gtk.main()
"""


def test_a_stop_key_that_gnome_uses_itself_is_another_one_which_is_said(gnome: GnomeBench) -> None:
    stop = StopSwitch()
    key = ShellStopKey(gnome.server.environ, stop, "ctrl+alt+shift+escape")
    assert key.remark == "The stop key ctrl+alt+shift+escape cannot be used here: it is ctrl+shift+escape."
    gnome.person_presses("ctrl", "shift", "escape")
    wait_until(lambda: stop.stopped, "the run is stopped")
    taken = ShellStopKey(gnome.server.environ, StopSwitch(), "alt+f4")
    assert "choose another" in taken.remark


def test_a_stop_key_is_given_back(gnome: GnomeBench) -> None:
    chord = ("ctrl", "alt", "shift", "f9")
    for _ in range(2):
        stop = StopSwitch()
        key = ShellStopKey(gnome.server.environ, stop, "+".join(chord))
        assert key.remark == ""
        key.close()
        gnome.since_now()

        def arrives() -> bool:
            gnome.person_presses(*chord)
            time.sleep(0.1)
            return "F9" in [one["name"] for one in gnome.events("key")]

        wait_until(arrives, "the window gets the key again")
        assert not stop.stopped


class Steering:
    """Notes what the person did."""

    def __init__(self) -> None:
        self.paused, self.done = "", list[Any]()

    def user_acted(self, what: str) -> None:
        self.done.append(what)


def test_on_gnome_a_person_is_noticed_once_and_not_while_the_hand_works(gnome: GnomeBench) -> None:
    steering, rest = Steering(), Rest()
    watch = IdleWatch(gnome.server.environ, TakeoverWatch(steering, rest, lambda _: False))
    for x in (300, 340, 380):
        rest.busy = True
        gnome.person_moves(x, 500)
        rest.since, rest.busy = time.monotonic(), False
        time.sleep(0.4)
    assert steering.done == []
    gnome.person_moves(100, 600)
    wait_until(lambda: steering.done, "the person is noticed")
    time.sleep(0.4)
    assert len(steering.done) == 1
    watch.close()


def test_on_gnome_what_is_done_in_our_own_terminal_or_while_the_run_is_paused_is_no_takeover(gnome: GnomeBench) -> None:
    steering, rest, ours = Steering(), Rest(), [True]
    rest.since = time.monotonic() - 10
    watch = IdleWatch(gnome.server.environ, TakeoverWatch(steering, rest, lambda _: ours[0]))
    time.sleep(0.5)
    gnome.person_presses("shift")
    time.sleep(0.4)
    assert steering.done == []
    ours[0], steering.paused = False, "by the person"
    gnome.person_presses("shift")
    time.sleep(0.4)
    steering.paused = ""
    time.sleep(0.4)
    assert steering.done == []
    watch.close()


def test_the_terminal_that_runs_us_is_known_by_its_process_also_without_windows(
    gnome: GnomeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows, session = open_described_windows(gnome.server.environ), gnome.server.environ["DBUS_SESSION_BUS_ADDRESS"]
    assert windows is not None
    wait_until(lambda: (one := windows.active()) is not None and one.title == "probe", "the probe has the focus")
    focused = windows.active()
    assert focused is not None and focused.pid is not None
    above = {"processes": frozenset({focused.pid, 999_999})}
    monkeypatch.setattr(takeover, "processes_above", lambda: above["processes"])
    wait_until(lambda: terminal_has_focus(session), "it is ours")
    above["processes"] = frozenset({999_999})
    assert not terminal_has_focus(session), "another one's"
    assert terminal_has_focus(""), "nobody tells: it may be ours"
    above["processes"] = frozenset()
    assert not terminal_has_focus(""), "we are in no terminal"
