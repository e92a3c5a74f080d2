"""The releaser lets go of what a hand that hangs, or is gone, still holds."""

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from stubs.display import PlainDisplay, wait_until
from Xlib import X
from Xlib.ext import xtest

from agent.core.actions import Move, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.apps.launcher import Launcher
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.desktop import TextEntry
from agent.desktop.x11.connection import open_display
from agent.desktop.x11.input import Releaser, X11Input
from agent.desktop.x11.windows import open_windows
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

pytestmark = pytest.mark.e2e

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


HOLDER = """
import os, subprocess, sys, time
from agent.desktop.protocol.hand import Press
from agent.desktop.x11.input import X11Input
from agent.safety.stop import StopSwitch
hand = X11Input(StopSwitch())
hand.press(Press("key", "shift"))
hand.press(Press("button", "left"))
print("down", flush=True)
time.sleep(60)
"""


def test_what_a_killed_hand_held_is_let_go_by_its_helper(display: PlainDisplay) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "down\n"
    assert display.pressed() == ["key 50", "button 1"]
    holder.kill()
    holder.communicate()
    wait_until(lambda: display.pressed() == [], "the helper let go")
