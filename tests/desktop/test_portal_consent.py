"""What the person is asked on GNOME and KDE, and what comes of each answer."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jeepney import DBusAddress, HeaderFields, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection
from stubs.fake_portal import FakePortal, allowed, session_bus_in

from agent.core.geometry import Region
from agent.desktop.linux.bus import Bus
from agent.desktop.portal.consent import PortalSession, RestoreToken, missing_on, open_portal
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, ExitStatus, StoppedError, UsageError

pytestmark = pytest.mark.slow

REFUSED, ENDED = (1, {}), (2, {})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with session_bus_in(tmp_path_factory.mktemp("bus")) as found:
        yield found


@pytest.fixture
def portal(address: str) -> Iterator[FakePortal]:
    found = FakePortal(address)
    yield found
    found.close()


@pytest.fixture
def token(tmp_path: Path) -> RestoreToken:
    return RestoreToken(tmp_path / "state" / "portal.json")


@pytest.fixture
def environ(address: str) -> dict[str, str]:
    return {"DBUS_SESSION_BUS_ADDRESS": address, "XDG_CURRENT_DESKTOP": "GNOME"}


def test_all_is_asked_in_one_session_in_the_order_of_the_portal(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    portal.starts = [allowed()]
    session = open_portal(environ, None, StopSwitch(), token)
    assert portal.members() == ["CreateSession", "SelectDevices", "SelectSources", "RequestClipboard", "Start"]
    handles = {body[0] for name, body in portal.asked if name != "CreateSession"}
    assert len(handles) == 1
    assert portal.options("SelectDevices") | {"handle_token": ""} == {"handle_token": "", "types": 3, "persist_mode": 2}
    assert "persist_mode" not in portal.options("SelectSources")
    assert (session.stream.node, session.stream.region, session.has_clipboard) == (42, Region(0, 0, 1280, 800), True)
    session.close()


def test_the_token_is_for_this_user_alone_and_renewed_with_every_start(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken, tmp_path: Path
) -> None:
    portal.starts = [allowed(restore_token=("s", "one")), allowed(restore_token=("s", "two"))]
    open_portal(environ, None, StopSwitch(), token).close()
    file = tmp_path / "state" / "portal.json"
    assert (file.stat().st_mode & 0o777, json.loads(file.read_text())) == (0o600, {"restore_token": "one"})
    open_portal(environ, None, StopSwitch(), token).close()
    assert portal.options("SelectDevices")["restore_token"] == "one"
    assert token.read() == "two"


@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"restore_token": 7}'])
def test_a_token_that_cannot_be_read_costs_a_question(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken, tmp_path: Path, content: str
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "portal.json").write_text(content)
    portal.starts = [allowed()]
    open_portal(environ, None, StopSwitch(), token).close()
    assert "restore_token" not in portal.options("SelectDevices")


def test_a_folder_in_the_place_of_the_token_costs_a_question_each_time(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken, tmp_path: Path
) -> None:
    (tmp_path / "state" / "portal.json").mkdir(parents=True)
    portal.starts = [allowed()]
    open_portal(environ, None, StopSwitch(), token).close()
    assert "restore_token" not in portal.options("SelectDevices")
    assert [one.name for one in (tmp_path / "state").iterdir()] == ["portal.json"]


def test_a_token_that_the_desktop_does_not_take_is_forgotten_and_the_person_asked(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    token.keep("old")
    portal.starts = [ENDED, allowed()]
    ended: list[int] = []
    session = open_portal(environ, None, StopSwitch(), token)
    session.on_closed(lambda: ended.append(1))
    assert [name for name in portal.members() if name == "Start"] == ["Start", "Start"]
    assert "restore_token" not in portal.options("SelectDevices")
    assert (token.read(), ended) == ("fresh", [])
    session.close()


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (REFUSED, "refused in the desktop's dialog"),
        (ENDED, "ended its question"),
        (allowed(devices=("u", 0)), "Allow Remote Interaction"),
        (allowed(devices=None), "Allow Remote Interaction"),
        (allowed(devices=("u", 2)), "Allow Remote Interaction"),
        (allowed(streams=("a(ua{sv})", [])), "shares no monitor"),
    ],
)
def test_what_is_not_allowed_is_one_sentence_with_what_to_do_and_is_not_kept(
    portal: FakePortal,
    environ: dict[str, str],
    token: RestoreToken,
    start: tuple[int, dict[str, object]],
    sentence: str,
) -> None:
    portal.starts = [start]
    with pytest.raises(EnvironmentLacksError, match=sentence) as told:
        open_portal(environ, None, StopSwitch(), token)
    assert told.value.remedy and told.value.exit_status is ExitStatus.ENVIRONMENT
    assert token.read() == ""


@pytest.mark.parametrize(
    "more",
    [
        {"devices": ("s", "all")},
        {"streams": ("as", ["none"])},
        {"streams": ("a(ua{sv})", [(42, {"size": ("s", "large")})])},
    ],
)
def test_an_answer_of_another_shape_is_told_in_a_sentence(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken, more: dict[str, Any]
) -> None:
    portal.starts = [allowed(**more)]
    with pytest.raises(EnvironmentLacksError, match="cannot be read"):
        open_portal(environ, None, StopSwitch(), token)


def test_a_refusal_keeps_nobody_from_being_asked_again(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    token.keep("old")
    portal.starts = [REFUSED]
    with pytest.raises(EnvironmentLacksError, match="refused"):
        open_portal(environ, None, StopSwitch(), token)
    assert portal.members().count("Start") == 1


def test_who_does_not_answer_is_told_to_look_at_the_screen(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    portal.starts = [None]
    with pytest.raises(EnvironmentLacksError, match="look at your screen"):
        open_portal(environ, None, StopSwitch(), token, seconds=0.3)
    assert portal.members()[-1] == "Close"


def test_a_stop_ends_the_wait_for_an_answer(portal: FakePortal, environ: dict[str, str], token: RestoreToken) -> None:
    portal.starts = [None]
    stop = StopSwitch()
    threading.Timer(0.2, lambda: stop.stop("enough")).start()
    with pytest.raises(StoppedError, match="enough"):
        open_portal(environ, None, stop, token)


def test_a_monitor_is_one_of_those_that_were_allowed(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    second = (43, {"position": ("(ii)", (-1000, 0)), "size": ("(ii)", (1000, 600))})
    streams = ("a(ua{sv})", [(42, {"position": ("(ii)", (0, 0)), "size": ("(ii)", (1280, 800))}), second])
    portal.starts = [allowed(streams=streams), allowed(streams=streams)]
    session = open_portal(environ, 2, StopSwitch(), token)
    assert portal.options("SelectSources")["multiple"] is True
    assert (session.stream.node, session.stream.region) == (43, Region(-1000, 0, 1000, 600))
    session.close()
    with pytest.raises(UsageError, match="no monitor 3"):
        open_portal(environ, 3, StopSwitch(), token)


def ended(session: PortalSession) -> list[int]:
    told: list[int] = []
    session.on_closed(lambda: told.append(1))
    return told


def wait(told: list[int]) -> None:
    deadline = time.monotonic() + 10
    while not told:
        assert time.monotonic() < deadline, "nothing was told"
        time.sleep(0.01)


def test_that_the_desktop_ends_the_session_is_told_once(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    portal.starts = [allowed()]
    session = open_portal(environ, None, StopSwitch(), token)
    told = ended(session)
    portal.end_session()
    portal.end_session()
    wait(told)
    session.close()
    assert (told, session.is_lost) == ([1], False)
    assert ended(session) == [1]


def test_what_another_program_says_in_the_portals_words_is_not_heard(address: str, portal: FakePortal) -> None:
    bus = Bus({"DBUS_SESSION_BUS_ADDRESS": address})
    told: list[tuple[object, ...]] = []
    where = DBusAddress("/a/session", interface="org.freedesktop.portal.Session")
    bus.listen("org.freedesktop.portal.Desktop", where, "Closed", told.append)
    signal = new_signal(where, "Closed")
    signal.header.fields[HeaderFields.destination] = bus.name  # what is sent to us alone goes by no rule of the bus
    with open_dbus_connection(address) as stranger:
        stranger.send(signal)
        stranger.send_and_get_reply(message_bus.NameHasOwner(bus.name), timeout=10)  # it was handed over
    assert bus.owned(bus.name)  # and taken in
    assert told == []
    bus.close()


def test_a_session_that_is_over_leaves_no_file_open(
    portal: FakePortal, environ: dict[str, str], token: RestoreToken
) -> None:
    portal.starts = [allowed(), allowed(), allowed()]
    open_portal(environ, None, StopSwitch(), token).close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(2):
        open_portal(environ, None, StopSwitch(), token).close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_that_the_portal_goes_away_is_told(address: str, environ: dict[str, str], token: RestoreToken) -> None:
    portal = FakePortal(address)
    portal.starts = [allowed()]
    session = open_portal(environ, None, StopSwitch(), token)
    told = ended(session)
    portal.close()
    wait(told)
    assert session.is_lost  # and nobody's wish
    session.close()


def test_our_own_end_of_a_session_is_no_news(portal: FakePortal, environ: dict[str, str], token: RestoreToken) -> None:
    portal.starts = [allowed()]
    session = open_portal(environ, None, StopSwitch(), token)
    told = ended(session)
    session.close()
    session.close()
    assert (portal.members()[-1], told) == ("Close", [])


def test_without_a_clipboard_there_is_a_session_still(
    address: str, environ: dict[str, str], token: RestoreToken
) -> None:
    portal = FakePortal(address, ("RemoteDesktop", "ScreenCast"))
    portal.starts = [allowed(clipboard_enabled=None)]
    session = open_portal(environ, None, StopSwitch(), token)
    assert not session.has_clipboard
    session.close()
    portal.close()


def test_what_is_missing_is_called_by_its_package(address: str, environ: dict[str, str]) -> None:
    assert "xdg-desktop-portal is missing" in missing_on(environ)
    portal = FakePortal(address, ("ScreenCast",))
    assert "xdg-desktop-portal-gnome is missing" in missing_on(environ)
    assert "xdg-desktop-portal-kde is missing" in missing_on(environ | {"XDG_CURRENT_DESKTOP": "KDE"})
    assert "for this desktop (Hyprland)" in missing_on(environ | {"XDG_CURRENT_DESKTOP": "Hyprland"})
    portal.close()
    with pytest.raises(EnvironmentLacksError, match="no session bus"):
        missing_on({})
