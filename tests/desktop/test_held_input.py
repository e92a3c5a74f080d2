"""Keys and buttons that stay down over several actions, in a real GTK window."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.core.actions import (
    Action,
    ButtonDown,
    Click,
    KeyDown,
    KeyUp,
    Move,
    PressKeys,
    TypeText,
    VisitPage,
)
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.input import X11Input
from agent.desktop.x11.windows import open_windows
from agent.safety.held_input import Held
from agent.safety.stop import StopSwitch

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
NOTHING_INSTALLED = {"HOME": "/nowhere", "XDG_DATA_DIRS": "/nowhere", "XDG_CONFIG_DIRS": "/nowhere"}
PROGRAM = Path(__file__).resolve().parents[1] / "stubs/gtk_held.py"


class Typist:
    """Notes what is down while a text is entered."""

    def __init__(self, display: PlainDisplay) -> None:
        self.display, self.down = display, [["nothing was typed"]]

    def enter(self, _text: str, _press: Any, _check: Any) -> None:
        self.down.append(self.display.pressed())


class Desk:
    """A hand on a display, used as a run uses it: every action names the keys that are down."""

    def __init__(self, display: PlainDisplay, log: Path) -> None:
        self.display, self.log, self.stop = display, log, StopSwitch()
        self.text = Typist(display)
        self.hand = InputHand(self.stop, X11Input(self.stop), self.text, Launcher(NOTHING_INSTALLED, open_windows))
        self.held = Held()

    def do(self, *actions: Action[DesktopPoint]) -> str:
        said = ""
        for action in actions:
            effective = self.held.effective(action)
            said = self.hand.perform(effective)
            self.held.did(effective)
        return said

    @property
    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def point(self, name: str, number: int | None = None) -> DesktopPoint:
        wait_until(lambda: self.told, "the window is there")
        place = self.told[0][name]
        return DesktopPoint(*map(float, place if number is None else place[number]))


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Desk]:
    with PlainDisplay() as display:
        monkeypatch.setenv("DISPLAY", display.name)
        monkeypatch.setenv("XAUTHORITY", os.devnull)
        log = tmp_path / "log"
        display.start("/usr/bin/python3", str(PROGRAM), str(log))
        found = Desk(display, log)
        yield found
        found.hand.close()


def test_clicks_with_a_key_that_is_down_select_several_rows(desk: Desk) -> None:
    first, second, fourth = (desk.point("rows", number) for number in (0, 1, 3))
    desk.do(Click(first), KeyDown(("ctrl",)), Click(fourth))
    wait_until(lambda: desk.told[-1]["rows"] == [0, 3], "two rows are selected")
    assert desk.display.pressed() == ["key 37"]
    desk.do(KeyUp(("ctrl",)))
    assert desk.display.pressed() == []
    desk.do(Click(second), KeyDown(("shift",)), Click(fourth), KeyUp(("shift",)))
    wait_until(lambda: desk.told[-1]["rows"] == [1, 2, 3], "a range is selected")
    desk.do(Click(first, held=("ctrl",)))
    wait_until(lambda: desk.told[-1]["rows"] == [0, 1, 2, 3], "a row more is selected")
    assert desk.display.pressed() == []


def test_a_modifier_that_was_lifted_is_pressed_again_for_the_next_action(desk: Desk) -> None:
    first, third = desk.point("rows", 0), desk.point("rows", 2)
    desk.do(Click(first), KeyDown(("ctrl",)), Click(desk.point("rows", 1)))
    desk.hand.lift()
    assert desk.held.lift() == ()
    assert desk.display.pressed() == []
    desk.do(Click(third))
    wait_until(lambda: desk.told[-1]["rows"] == [0, 1, 2], "three rows are selected")
    assert desk.display.pressed() == ["key 37"]
    assert "not down" not in desk.do(KeyUp(("ctrl",)))
    assert desk.display.pressed() == []


def test_text_is_entered_without_the_keys_that_are_down(desk: Desk) -> None:
    desk.do(KeyDown(("ctrl",)), PressKeys(("right",)), TypeText("w"))
    assert desk.text.down[-1] == []


def test_a_key_that_is_no_modifier_is_down_at_once_and_not_pressed_again_once_lifted(desk: Desk) -> None:
    desk.do(KeyDown(("a",)))
    assert desk.display.pressed() == ["key 38"]
    desk.hand.lift()
    assert desk.held.lift() == ("a",)
    desk.do(Move(DesktopPoint(30, 30)))
    assert desk.display.pressed() == []
    assert "a is not down" in desk.do(KeyUp(("a",)))


def test_what_is_down_is_not_taken_for_the_persons(desk: Desk) -> None:
    desk.do(ButtonDown(desk.point("slider")), KeyDown(("shift", "a")), Move(DesktopPoint(300, 300)))
    desk.hand.release_all()
    assert desk.display.pressed() == []
    desk.display.call("xdotool", "keydown", "ctrl")
    with pytest.raises(ActionFailedError, match="the person holds down ctrl"):
        desk.hand.perform(Move(DesktopPoint(30, 30)))
    desk.display.call("xdotool", "keyup", "ctrl")


def test_an_action_that_fails_leaves_nothing_down(desk: Desk) -> None:
    desk.do(ButtonDown(desk.point("slider")))
    with pytest.raises(ActionFailedError, match="the left button is still held down"):
        desk.hand.perform(Click(DesktopPoint(300, 300)))
    assert desk.display.pressed() == []


def test_a_modifier_that_nothing_used_is_tapped_when_it_comes_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[str] = []
    source = desk.hand._input
    press = source.press
    monkeypatch.setattr(source, "press", lambda one: (pressed.append(one.name), press(one)))
    desk.do(KeyDown(("super",)))
    assert (pressed, desk.display.pressed()) == ([], [])
    desk.do(KeyUp(("super",)))
    assert (pressed, desk.display.pressed()) == (["super"], [])
    desk.do(KeyDown(("super",)), Move(DesktopPoint(300, 300)), KeyUp(("super",)))
    assert (pressed, desk.display.pressed()) == (["super", "super"], [])


def test_no_page_is_visited_without_a_browser_or_by_what_is_no_address(desk: Desk) -> None:
    with pytest.raises(ActionFailedError, match="no address of a web page"):
        desk.do(VisitPage("file:///etc/passwd"))
    with pytest.raises(ActionFailedError, match="no address of a web page"):
        desk.do(VisitPage("javascript:alert(1)"))
    with pytest.raises(ActionFailedError, match="no web browser is installed"):
        desk.do(VisitPage("https://example.org/"))
