"""Which desktop is chosen, and that what serves macOS and Windows works where it can be run."""

import sys

import pytest
from stubs.display import PlainDisplay

from agent.core.actions import Click, Drag, HoldKeys, Move, PressKeys
from agent.core.geometry import DesktopPoint
from agent.desktop.factory import check_display, open_desktop
from agent.desktop.portable import PortableDesktop
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.desktop import X11Desktop
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, UsageError


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [({}, "DISPLAY is not set"), ({"WAYLAND_DISPLAY": "wayland-0"}, "cannot be reached")],
)
def test_where_the_environment_shows_that_nothing_can_be_used_it_is_said(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(EnvironmentLacksError, match=sentence):
        check_display(environ)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentLacksError, match=sentence):
        open_desktop(StopSwitch())


@pytest.mark.e2e
def test_with_a_display_its_own_desktop_is_chosen_and_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, display: PlainDisplay
) -> None:
    desktop = open_desktop(StopSwitch())
    assert isinstance(desktop, X11Desktop)
    assert (desktop.name, desktop.abilities.lacks()) == (display.name, [])
    assert desktop.shows({"DISPLAY": f"unix{display.name}.0"})
    assert not desktop.shows({"DISPLAY": ":99"}) and not desktop.shows({})
    desktop.screen.close()
    with pytest.raises(UsageError, match="only monitor 1"):
        open_desktop(StopSwitch(), 2)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    with pytest.raises(EnvironmentLacksError, match="cannot be reached"):
        open_desktop(StopSwitch())
    beside = open_desktop(StopSwitch(), kind="x11")
    assert ["Wayland session" in sentence for sentence in beside.abilities.lacks()] == [True]
    beside.screen.close()


@pytest.mark.e2e
def test_elsewhere_the_desktop_is_seen_and_touched_and_says_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, display: PlainDisplay
) -> None:
    with monkeypatch.context() as elsewhere:  # pyautogui is to find the system that there is
        elsewhere.setattr(sys, "platform", "darwin")
        desktop = open_desktop(StopSwitch())
    assert type(desktop) is PortableDesktop
    assert len(desktop.abilities.lacks()) == 5
    assert desktop.screen.grab().viewport.region == desktop.monitors[0]
    hand = desktop.hand
    for action in (Click(DesktopPoint(30, 40)), Drag(None, DesktopPoint(90, 80)), Move(DesktopPoint(200, 100))):
        hand.perform(action)
    assert display.pointer() == (200, 100)
    hand.perform(PressKeys(("ctrl", "a")))
    hand.perform(HoldKeys(("shift",), 0.05))
    assert display.pressed() == []
    with pytest.raises(ActionFailedError, match="no key"):
        hand.perform(PressKeys(("no such key",)))
    with pytest.raises(UsageError, match="stop key"):
        desktop.watch("escape", None)
    hand.close()
    desktop.screen.close()
