"""A stop key by the portal's global shortcuts."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stubs.display import wait_until
from stubs.fake_portal import FakePortal, session_bus_in

from agent.desktop.portal.windows import PortalStopKey, has_shortcuts
from agent.safety.stop import StopSwitch

pytestmark = pytest.mark.slow

BOUND = {"shortcuts": ("a(sa{sv})", [("stop", {"trigger_description": ("s", "Press <Control>k")})])}


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with session_bus_in(tmp_path) as address:
        yield {"DBUS_SESSION_BUS_ADDRESS": address, "HOME": str(tmp_path)}


@pytest.fixture
def portal(environ: dict[str, str]) -> Iterator[FakePortal]:
    found = FakePortal(environ["DBUS_SESSION_BUS_ADDRESS"], ("GlobalShortcuts",))
    yield found
    found.close()


def test_the_chord_is_asked_for_in_the_portals_words_and_stops_the_run(
    environ: dict[str, str], portal: FakePortal, tmp_path: Path
) -> None:
    portal.starts = [(2, BOUND)]  # as GNOME 48 answers
    stop = StopSwitch()
    key = PortalStopKey(environ, stop, "ctrl+super+page_down")
    assert key.remark == ""
    [(_, shortcuts, _, _)] = [body for name, body in portal.asked if name == "BindShortcuts"]
    assert shortcuts[0][1]["preferred_trigger"] == ("s", "CTRL+LOGO+Next")
    entry = (tmp_path / ".local/share/applications/org.mai_agent.Agent.desktop").read_text()
    assert "NoDisplay=true" in entry
    portal.press_shortcut("another")
    portal.press_shortcut("stop")
    wait_until(lambda: stop.stopped, "the run is stopped")
    assert stop.reason == "the stop key was pressed"
    key.close()


@pytest.mark.parametrize("answer", [(1, {}), (0, {"shortcuts": ("a(sa{sv})", [])})])
def test_a_person_who_gives_none_is_told_that_there_is_none(
    environ: dict[str, str], portal: FakePortal, answer: tuple[int, dict[str, object]]
) -> None:
    portal.starts = [answer]
    assert "did not give the stop key ctrl+k" in PortalStopKey(environ, StopSwitch(), "ctrl+k").remark


def test_a_question_that_nobody_answers_holds_the_run_up_for_a_limited_time(
    environ: dict[str, str], portal: FakePortal
) -> None:
    portal.starts = [None, None]
    assert PortalStopKey(environ, StopSwitch(), "ctrl+k", 0.2).remark
    stop = StopSwitch()
    threading.Timer(0.2, stop.stop, ["enough"]).start()
    began = time.monotonic()
    assert PortalStopKey(environ, stop, "ctrl+k").remark
    assert time.monotonic() - began < 30, "the stop switch ends it"


def test_without_a_portal_there_is_no_stop_key(environ: dict[str, str]) -> None:
    assert not has_shortcuts(environ) and not has_shortcuts({})
    assert "is not available" in PortalStopKey(environ, StopSwitch(), "ctrl+k").remark


def test_a_portal_with_shortcuts_is_known(environ: dict[str, str], portal: FakePortal) -> None:
    assert portal.interfaces
    assert has_shortcuts(environ)
