"""What is GNOME's own: terminals paste by another chord, a person ends the sharing, and a shell that goes away."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from stubs.benches import Bench, GnomeBench, bench_of
from stubs.display import wait_until
from stubs.fake_portal import FakePortal, session_bus_in
from stubs.gnome import PlainGnome

from agent.core.actions import Click, Move, PressKeys, TypeText
from agent.core.geometry import CapturePoint, DesktopPoint, Size
from agent.desktop.factory import asks_first, check_display, open_desktop
from agent.desktop.portal.consent import RestoreToken
from agent.desktop.portal.screen import GStreamerFrames
from agent.desktop.portal.session import open_mutter
from agent.desktop.portal.takeover import active_application
from agent.desktop.programs import MARK
from agent.desktop.protocol.desktop import Desktop
from agent.desktop.trees.switch import session_bus
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]

ENTRY = DesktopPoint(400, 30)
LONG = "Приветствие, 你好, and some more of it; " * 3
#: The shell's own button that ends what shares the screen, and in which colour it is drawn.
ORANGE = (205, 147, 9)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench_of("gnome", tmp_path_factory.mktemp("probe")) as found:
        yield found


def test_the_application_with_the_focus_tells_its_name(bench: Bench, desktop: Desktop) -> None:
    desktop.hand.perform(Click(ENTRY))
    address = session_bus(bench.server.environ)
    bench.wait(lambda: active_application(address) == "-c", "it is told")  # as Python was started
    assert active_application("") == ""


def test_long_text_reaches_a_terminal_to_the_letter(bench: Bench, desktop: Desktop) -> None:
    assert isinstance(bench.server, PlainGnome) and shutil.which("foot")
    file = Path(bench.server.folder, "typed")
    terminal = bench.server.start("foot", "sh", "-c", f"cat > {file}")
    windows = desktop.open_windows()
    assert windows is not None
    bench.wait(lambda: (active := windows.active()) is not None and active.app == "foot", "the terminal is there")
    desktop.hand.perform(TypeText(LONG + "\n"))
    desktop.hand.perform(PressKeys(("ctrl", "d")))
    bench.wait(lambda: file.exists() and file.read_text() == LONG + "\n", "all of it arrives")
    bench.wait(lambda: terminal.poll() is not None, "the terminal ends")


IMPORTS = """
import sys
from agent.core.actions import Click, TypeText
from agent.desktop.factory import open_desktop
from agent.core.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
desktop = open_desktop(StopSwitch())
desktop.screen.grab()
desktop.hand.perform(Click(DesktopPoint(400, 30)))
desktop.hand.perform(TypeText("Ω"))
print(sorted({"Xlib", "mss", "pyautogui"} & set(sys.modules)), flush=True)
desktop.close()
"""


def test_nothing_of_x11_is_imported(bench: Bench, desktop: Desktop) -> None:
    other = bench.other(IMPORTS)
    assert other.stdout is not None and other.stdout.readline() == "[]\n"
    other.communicate(timeout=20)


def test_both_ways_to_frames_show_the_same(bench: Bench, desktop: Desktop) -> None:
    session = open_mutter(bench.server.environ, None)
    connection = session.pipewire()
    frames = GStreamerFrames(connection, session.stream.node, session.stream.region.size)
    desktop.hand.perform(Click(DesktopPoint(500, 400)))

    def same() -> bool:
        mine, theirs = desktop.screen.grab().image, frames.latest()
        assert (theirs.mode, theirs.size) == (mine.mode, mine.size)
        return all(mine.getpixel(at) == theirs.getpixel(at) for at in ((1000, 600), (640, 20), (5, 795)))

    wait_until(same, "they show the same")
    desktop.hand.perform(Click(DesktopPoint(500, 400)))
    wait_until(same, "they show the same after a change")
    # A caret may blink in between, and a busy machine draws late.
    wait_until(lambda: frames.latest() is frames.latest(), "what did not change is not handed over again")
    frames.close()
    os.close(connection)
    session.close()


def test_a_desktop_that_opens_halfway_leaves_nothing_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(_: object) -> None:
        raise EnvironmentLacksError("no clipboard", "")

    def held() -> tuple[set[psutil.Process], int]:
        return set(psutil.Process().children()), psutil.Process().num_fds()

    before = held()
    monkeypatch.setattr("agent.desktop.portal.desktop.PortalClipboard", lacks)
    with pytest.raises(EnvironmentLacksError, match="no clipboard"):
        bench.open(StopSwitch())
    wait_until(lambda: held() == before, "what was opened is shut")


def test_a_session_that_a_person_sits_at_goes_by_the_portal_alone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))
    shown = {name: bench.server.environ[name] for name in ("WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")}
    person = shown | {"DBUS_SESSION_BUS_ADDRESS": bench.server.environ["DBUS_SESSION_BUS_ADDRESS"]}
    with pytest.raises(EnvironmentLacksError, match="xdg-desktop-portal is missing"):
        check_display(person)  # Mutter is there, and asks nobody
    assert asks_first(person) == ""
    with session_bus_in(tmp_path) as address:
        portal = FakePortal(address)
        person["DBUS_SESSION_BUS_ADDRESS"] = address
        check_display(person)
        check_display(person, "portal")
        assert "Look at your screen" in asks_first(person)
        RestoreToken().keep("known")
        assert asks_first(person) == ""
        with pytest.raises(EnvironmentLacksError, match="it lacks zwlr_screencopy_manager_v1"):
            check_display(person, "wlroots")
        assert portal.asked == []
        portal.close()


def test_on_a_scaled_monitor_a_click_goes_where_it_was_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WAYLAND_DISPLAY", MARK):
        monkeypatch.setenv(name, os.environ[name])  # the start of a sandbox changes them, too
    with PlainGnome(Size(1920, 1080)) as gnome:
        for name, value in gnome.variables.items():
            monkeypatch.setenv(name, value)
        scale = 2.0
        gnome.scale(scale)
        other = GnomeBench(gnome)
        found = other.open()
        view = found.screen.grab().viewport
        assert view.captured == Size(1920, 1080)
        for x, y in ((300, 400), (1801, 1001)):
            other.since_now()
            found.hand.perform(Click(view.capture_to_desktop(CapturePoint(x, y))))
            other.wait(lambda: other.events("release"), "the click arrives")
            press = other.events("press")[0]
            assert abs(press["x"] * scale - x) <= scale and abs(press["y"] * scale - y) <= scale
        found.hand.close()
        found.screen.close()
        found.close()
        other.person.leaves()


def test_who_ends_the_sharing_by_the_desktops_own_button_has_stopped_the_run(
    bench: Bench, desktop: Desktop, stop: StopSwitch
) -> None:
    desktop.hand.perform(PressKeys(("super",)))  # a window that fills the screen hides the panel; the overview shows it

    def button() -> tuple[int, int] | None:
        image = desktop.screen.grab().image
        row = [image.getpixel((x, 14)) for x in range(image.width)]
        found = [x for x, pixel in enumerate(row) if isinstance(pixel, tuple) and near(pixel, ORANGE)]
        return (found[len(found) // 2], 14) if found else None

    wait_until(button, "the button is there")
    place = button()
    assert place is not None
    with suppress(StoppedError):  # it may come before the button is up again
        desktop.hand.perform(Click(DesktopPoint(*place)))
    assert stop.wait(10)
    with pytest.raises(StoppedError, match="the desktop ended sharing its screen"):
        stop.check()
    with pytest.raises(EnvironmentLacksError, match="ended sharing"):
        desktop.screen.grab()
    with pytest.raises(StoppedError, match="ended sharing"):
        desktop.hand.perform(Move(ENTRY))


def near(pixel: tuple[int, ...], colour: tuple[int, int, int]) -> bool:
    return all(abs(one - other) < 12 for one, other in zip(pixel, colour, strict=False))


def can_be_seen(desktop: Desktop) -> bool:
    try:
        desktop.screen.grab()
    except EnvironmentLacksError as error:
        assert "captured" in error.what
        return False
    return True


def test_a_pipewire_that_goes_away_is_told_by_its_name_and_not_taken_for_the_persons_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WAYLAND_DISPLAY", MARK):
        monkeypatch.setenv(name, os.environ[name])  # the start of a sandbox changes them, too
    with PlainGnome() as gnome:
        for name, value in gnome.variables.items():
            monkeypatch.setenv(name, value)
        stop = StopSwitch()
        found = open_desktop(stop)
        gnome.kill("pipewire")
        with pytest.raises(EnvironmentLacksError, match=r"PipeWire went away|ended sharing"):  # whichever is told first
            found.screen.grab()
        assert stop.wait(10)
        with pytest.raises(EnvironmentLacksError, match="PipeWire, which hands the screen over, went away"):
            stop.check()
        found.screen.close()
        found.close()


def test_a_shell_that_goes_away_is_told_and_ends_the_run(bench: Bench, desktop: Desktop, stop: StopSwitch) -> None:
    desktop.watch("none", None)
    desktop.hand.perform(Move(ENTRY))
    bench.server.kill()
    assert stop.wait(10)
    with pytest.raises(EnvironmentLacksError, match="went away"):
        stop.check()
    wait_until(lambda: not can_be_seen(desktop), "an old frame is taken for no new one")
    with pytest.raises(EnvironmentLacksError, match="went away"):
        desktop.hand.perform(Move(ENTRY))
