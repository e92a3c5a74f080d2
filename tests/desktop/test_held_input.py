"""Keys and buttons that stay down over several actions; the releaser lets go of them if the hand cannot."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stubs.display import PlainDisplay, wait_until
from Xlib import X
from Xlib.ext import xtest

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
from agent.desktop.protocol.desktop import TextEntry
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.desktop import Releaser, X11Input
from agent.desktop.x11.windows import open_windows
from agent.safety.held_input import Held
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

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


KEY = 38  # the key a on every keyboard of X11


def press(releaser: Releaser) -> None:
    connection = open_display()
    releaser.tell(f"+ key {KEY}")
    releaser.tell("+ button 1")
    xtest.fake_input(connection, X.KeyPress, KEY)
    xtest.fake_input(connection, X.ButtonPress, 1)
    connection.sync()
    connection.close()


def test_what_a_hand_that_hangs_holds_is_let_go_after_a_stop(display: PlainDisplay) -> None:
    stop = StopSwitch()
    releaser = Releaser(stop)
    press(releaser)
    assert display.pressed() == [f"key {KEY}", "button 1"]
    stop.stop("now")
    wait_until(lambda: display.pressed() == [], "all is let go")
    releaser.close()


def test_what_a_hand_that_is_gone_held_is_let_go(display: PlainDisplay) -> None:
    releaser = Releaser(StopSwitch())
    press(releaser)
    releaser.close()
    assert display.pressed() == []


def test_while_nothing_is_stopped_it_lets_nothing_go(display: PlainDisplay) -> None:
    releaser = Releaser(StopSwitch())
    press(releaser)
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: display.pressed() == [], "all is let go", 0.5)
    releaser.close()


def test_what_the_hand_let_go_itself_is_none_of_its_business(display: PlainDisplay) -> None:
    releaser = Releaser(StopSwitch())
    press(releaser)
    releaser.tell(f"- key {KEY}")  # now it is the person who holds it
    releaser.close()
    assert display.pressed() == [f"key {KEY}"]


def test_a_display_that_is_gone_holds_nobody_up(display: PlainDisplay) -> None:
    releaser = Releaser(StopSwitch())
    press(releaser)
    display.kill()
    releaser.tell(f"+ key {KEY}")
    releaser.close()


def test_a_hand_that_was_cut_off_does_nothing_more_and_the_next_one_works(display: PlainDisplay) -> None:
    stop = StopSwitch()
    hand = made_hand(stop)
    release = threading.Event()

    class Hanging(TextEntry):
        def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
            with hand._keys_held(("a",)):
                release.wait(30)  # as in a call that hangs: no look at the stop switch
                hand._input.move(700, 700)

    hand._text = Hanging()
    failed: list[BaseException] = []

    def perform() -> None:
        try:
            hand.perform(TypeText("x"))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=perform)
    thread.start()
    wait_until(display.pressed, "the key is down")
    display.call("xdotool", "mousemove", "50", "60")
    stop.stop("now")
    wait_until(lambda: display.pressed() == [], "the key is let go")
    release.set()
    thread.join(30)
    assert [type(error) for error in failed] == [StoppedError]
    assert display.pointer() == (50, 60)
    hand.close()
    second = made_hand(StopSwitch())
    second.perform(Move(DesktopPoint(300, 200)))
    assert display.pointer() == (300, 200)
    second.close()


def made_hand(stop: StopSwitch) -> InputHand:
    return InputHand(stop, X11Input(stop), Unused(), Launcher(None, open_windows))


class Unused(TextEntry):
    def enter(self, text: str, press: Callable[[tuple[str, ...]], None], check_stop: Callable[[], None]) -> None:
        raise AssertionError
