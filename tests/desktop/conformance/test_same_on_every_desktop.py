"""What a hand and an eye must do on every desktop, judged by a window that tells what reached it."""

import signal
import threading
import time

import pytest
from stubs.benches import Bench

from agent.core.actions import (
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    HoldKeys,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    PressKeys,
    Scroll,
    TypeText,
)
from agent.core.geometry import CapturePoint, DesktopPoint, Size
from agent.desktop.protocol.desktop import Desktop, TakeoverWatch
from agent.desktop.protocol.hand import ActionFailedError
from agent.safety.stop import StopSwitch
from foundation.errors import StoppedError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

BUTTONS = {"left": 1, "middle": 2, "right": 3}
ENTRY, AREA = DesktopPoint(400, 30), DesktopPoint(500, 400)
SCRIPTS = {
    "Latin": "Hello, Wörld! naïve €µ ß",
    "signs": "\\{}@~`^|<>\"'#$%&*()[];:?/",
    "Cyrillic": "Привет, мир",
    "Greek": "Γειά σου Κόσμε",
    "Chinese and Japanese": "你好 日本語 かな",
    "Arabic and Hebrew": "مرحبا שלום",
    "Devanagari": "नमस्ते",
    "emoji": "🙂🚀",
}


def clear(bench: Bench, desktop: Desktop) -> None:
    """Put the cursor into the entry, and take out what is in it."""
    desktop.hand.perform(Click(ENTRY))
    desktop.hand.perform(PressKeys(("ctrl", "a")))
    desktop.hand.perform(PressKeys(("delete",)))
    bench.wait(lambda: "Delete" in [one["name"] for one in bench.events("key up")], "the keys arrived")
    assert bench.text() == ""
    bench.since_now()


@pytest.mark.parametrize("at", [(2, 62), (640, 400), (1277, 797), (333, 777), (1001, 99)])
def test_the_pointer_arrives_where_it_is_sent(bench: Bench, desktop: Desktop, at: tuple[int, int]) -> None:
    desktop.hand.perform(Move(DesktopPoint(600, 300)))
    desktop.hand.perform(Move(DesktopPoint(*at)))

    def arrived() -> bool:
        moves = bench.events("motion")
        return bool(moves) and (int(moves[-1]["x"]), int(moves[-1]["y"])) == at

    bench.wait(arrived, "the pointer arrives")


@pytest.mark.parametrize("button", ["left", "middle", "right"])
def test_each_button_is_pressed_and_released_at_its_place(bench: Bench, desktop: Desktop, button: str) -> None:
    desktop.hand.perform(Click(AREA, button))
    bench.wait(lambda: bench.events("release"), "the button is released")
    [press], [release] = bench.events("press"), bench.events("release")
    assert (press["button"], release["button"]) == (BUTTONS[button], BUTTONS[button])
    assert (int(press["x"]), int(press["y"])) == (500, 400)


@pytest.mark.parametrize("count", [2, 3])
def test_several_clicks_are_one_gesture(bench: Bench, desktop: Desktop, count: int) -> None:
    time.sleep(0.5)  # no click before counts
    desktop.hand.perform(Click(AREA, "left", count))
    bench.wait(lambda: len(bench.events("release")) == count, "all clicks arrive")
    assert max(press["count"] for press in bench.events("press")) == count


@pytest.mark.parametrize(
    ("turn", "ways"),
    [((0, 3), ["down"] * 3), ((0, -2), ["up"] * 2), ((2, 0), ["right"] * 2), ((-1, 0), ["left"])],
)
def test_the_wheel_turns_by_single_steps_both_ways(
    bench: Bench, desktop: Desktop, turn: tuple[int, int], ways: list[str]
) -> None:
    # GTK 3 asks for the wheel's position when the pointer comes: on a busy machine only after it has turned.
    for place in (DesktopPoint(AREA.x - 9, AREA.y), AREA):
        bench.since_now()
        desktop.hand.perform(Move(place))
        bench.wait(lambda: bench.events("motion"), "the pointer is there")
    desktop.hand.perform(Scroll(AREA, *turn))
    bench.wait(lambda: len(bench.events("scroll")) >= len(ways), "the wheel turns")
    assert [one["way"] for one in bench.events("scroll")] == ways


def test_a_drag_moves_with_the_button_down_and_ends_where_it_should(bench: Bench, desktop: Desktop) -> None:
    desktop.hand.perform(Drag(DesktopPoint(300, 300), DesktopPoint(500, 400)))
    bench.wait(lambda: bench.events("release"), "the drag ends")
    [press], [release] = bench.events("press"), bench.events("release")
    assert (release["x"] - press["x"], release["y"] - press["y"]) == (200, 100)
    assert len([one for one in bench.events("motion") if one["state"] & 1 << 8]) > 5


def test_a_button_stays_down_over_several_actions(bench: Bench, desktop: Desktop) -> None:
    for action in (ButtonDown(AREA), Move(DesktopPoint(560, 420)), Move(DesktopPoint(600, 440))):
        desktop.hand.perform(action)
    assert bench.events("release") == []
    desktop.hand.perform(ButtonUp(None))
    bench.wait(lambda: bench.events("release"), "the button comes up")
    assert int(bench.events("release")[0]["x"]) == 600


def test_a_long_press_lasts(bench: Bench, desktop: Desktop) -> None:
    began = time.monotonic()
    desktop.hand.perform(LongPress(AREA, 0.5))
    bench.wait(lambda: bench.events("release"), "it ends")
    assert time.monotonic() - began >= 0.5


def test_a_click_with_a_modifier_tells_the_modifier(bench: Bench, desktop: Desktop) -> None:
    desktop.hand.perform(Click(AREA, held=("ctrl",)))
    bench.wait(lambda: bench.events("release"), "the click arrives")
    assert bench.events("press")[0]["state"] & 4
    desktop.hand.perform(Click(AREA))
    bench.wait(lambda: len(bench.events("release")) == 2, "the second click arrives")
    assert not bench.events("press")[-1]["state"] & 4


def test_a_key_is_held_until_it_is_let_go(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    desktop.hand.perform(KeyDown(("f7",)))
    bench.wait(lambda: bench.events("key"), "the key goes down")
    assert bench.events("key up") == []
    desktop.hand.perform(KeyUp(("f7",)))
    bench.wait(lambda: bench.events("key up"), "the key comes up")


def test_keys_are_held_for_some_time(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    desktop.hand.perform(HoldKeys(("shift",), 0.2))
    bench.wait(lambda: bench.events("key up"), "the key comes up")
    assert [one["name"] for one in bench.events("key")] == ["Shift_L"]


@pytest.mark.parametrize(
    ("keys", "name", "state"),
    [
        (("ctrl", "k"), "k", 4),
        (("ctrl", "shift", "t"), "T", 5),
        (("alt", "k"), "k", 8),
        (("f5",), "F5", 0),
        (("page_down",), "Page_Down", 0),
        (("escape",), "Escape", 0),
        (("shift", "tab"), "ISO_Left_Tab", 1),
    ],
)
def test_chords_arrive_with_their_modifiers(
    bench: Bench, desktop: Desktop, keys: tuple[str, ...], name: str, state: int
) -> None:
    clear(bench, desktop)
    desktop.hand.perform(PressKeys(keys))
    bench.wait(lambda: [one for one in bench.events("key") if one["name"] == name], f"{name} arrives")
    [key] = [one for one in bench.events("key") if one["name"] == name]
    assert key["state"] & 0x4D == state
    bench.wait(lambda: len(bench.events("key up")) >= len(keys), "nothing stays down")


def test_keys_lie_where_they_lie_on_a_keyboard(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    desktop.hand.perform(PressKeys(("a",)))
    bench.wait(lambda: bench.events("key"), "the key arrives")
    assert bench.events("key")[0]["code"] == 30  # KEY_A


@pytest.mark.parametrize("script", SCRIPTS)
def test_text_of_any_script_is_entered_to_the_letter(bench: Bench, desktop: Desktop, script: str) -> None:
    clear(bench, desktop)
    desktop.hand.perform(TypeText(SCRIPTS[script]))
    bench.wait(lambda: bench.text() == SCRIPTS[script], "the text is there")


def test_a_long_text_is_entered_to_the_letter(bench: Bench, desktop: Desktop) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(150)) + " abc ABC " * 10
    clear(bench, desktop)
    desktop.hand.perform(TypeText(text))
    bench.wait(lambda: bench.text() == text, "the text is there")


def test_what_is_selected_is_replaced(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    desktop.hand.perform(TypeText("the old text"))
    desktop.hand.perform(PressKeys(("ctrl", "a")))
    desktop.hand.perform(TypeText("новый"))
    bench.wait(lambda: bench.text() == "новый", "the text is replaced")


def test_a_line_end_at_the_end_is_enter(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    desktop.hand.perform(TypeText("done\n"))
    bench.wait(lambda: bench.events("enter"), "Enter is pressed")
    assert bench.text() == "done"


def test_the_clipboard_holds_afterwards_what_it_held(bench: Bench, desktop: Desktop) -> None:
    if "clipboard" in bench.lacks:
        pytest.skip("this desktop tells no program what the clipboard holds")
    clear(bench, desktop)
    with bench.person_copied("über Кли́п 漢") as told:
        desktop.hand.perform(TypeText("日本語 " * 20))
        bench.wait(lambda: bench.text() == "日本語 " * 20, "the text is there")
        bench.wait(lambda: told() == "über Кли́п 漢", "the clipboard is as it was")


def test_a_key_that_there_is_not_is_refused_and_nothing_pressed(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    with pytest.raises(ActionFailedError, match="no key"):
        desktop.hand.perform(PressKeys(("ctrl", "no such key")))
    desktop.hand.perform(PressKeys(("f8",)))
    bench.wait(lambda: bench.events("key up"), "the next key arrives")
    assert [one["name"] for one in bench.events("key")] == ["F8"]


def test_a_capture_is_of_the_whole_monitor(desktop: Desktop) -> None:
    frame = desktop.screen.grab()
    assert (frame.image.mode, frame.viewport.captured) == ("RGB", Size(1280, 800))
    assert frame.viewport.region == desktop.monitors[0]


def test_a_capture_shows_what_changed(bench: Bench, desktop: Desktop) -> None:
    before = desktop.screen.grab().image.getpixel((1000, 600))
    desktop.hand.perform(Click(AREA))

    def turned() -> bool:
        now = desktop.screen.grab().image.getpixel((1000, 600))
        return isinstance(now, tuple) and isinstance(before, tuple) and abs(now[0] - before[0]) > 100

    bench.wait(turned, "the colour is seen to turn")


def test_a_point_of_the_capture_is_clicked_where_it_was_seen(bench: Bench, desktop: Desktop) -> None:
    point = desktop.screen.grab().viewport.capture_to_desktop(CapturePoint(777.0, 444.0))
    desktop.hand.perform(Click(point))
    bench.wait(lambda: bench.events("press"), "the click arrives")
    assert (int(bench.events("press")[0]["x"]), int(bench.events("press")[0]["y"])) == (777, 444)


def test_the_window_is_told_by_its_name_and_place(bench: Bench, desktop: Desktop) -> None:
    bench.needs(desktop, "windows")
    windows = desktop.open_windows()
    assert windows is not None
    desktop.hand.perform(Click(AREA))
    active, under = windows.active(), windows.at(500, 400)
    assert active is not None and under is not None
    assert (active.title, under.id) == ("probe", active.id)
    region = windows.region(active.id)
    assert region is not None and region.size == Size(1280, 800)
    assert active.pid is not None and windows.is_ordinary(active.id)
    assert next(layer.window.id for layer in windows.layers()) == active.id
    windows.close()


def test_the_window_with_the_focus_is_told_at_least_by_its_name(bench: Bench, desktop: Desktop) -> None:
    if "names" in bench.lacks:
        assert desktop.open_windows() is None
        pytest.skip("this desktop tells nothing of its windows")
    windows = desktop.open_windows()
    assert windows is not None
    desktop.hand.perform(Click(AREA))
    active = windows.active()
    assert active is not None and active.title == "probe"
    assert active.id in [one.id for one in windows.windows()]
    windows.close()


def test_a_stop_ends_a_held_key_at_once_and_nothing_stays_down(
    bench: Bench, desktop: Desktop, stop: StopSwitch
) -> None:
    clear(bench, desktop)
    stopped: list[float] = []
    bench_ends = threading.Timer(0.3, lambda: (stopped.append(time.monotonic()), stop.stop("enough")))
    bench_ends.start()
    with pytest.raises(StoppedError):
        desktop.hand.perform(HoldKeys(("shift",), 20.0))
    assert time.monotonic() - stopped[0] < 10  # of 20 s; scripts/bench/stop.py measures how quick it is
    bench.wait(lambda: bench.events("key up"), "the key comes up")


HELD = """
from agent.core.actions import ButtonDown, KeyDown
from agent.desktop.factory import open_desktop
from agent.core.geometry import DesktopPoint
from agent.safety.stop import StopSwitch
hand = open_desktop(StopSwitch()).hand
hand.perform(ButtonDown(DesktopPoint(500, 400)))
hand.perform(KeyDown(("f9",)))
print("held", flush=True)
input()
"""


def test_what_a_killed_hand_held_is_released(bench: Bench, desktop: Desktop) -> None:
    clear(bench, desktop)
    other = bench.other(HELD)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    bench.wait(lambda: bench.events("press") and bench.events("key"), "button and key are down")
    assert bench.events("release", "key up") == []
    other.send_signal(signal.SIGKILL)
    other.wait()
    bench.wait(lambda: bench.events("key up"), "the key comes up")
    bench.wait(lambda: bench.events("release"), "the button comes up")


def test_the_stop_key_stops(bench: Bench, desktop: Desktop, stop: StopSwitch) -> None:
    bench.needs(desktop, "stop_key")
    assert desktop.watch("+".join(bench.chord), None) == ""
    assert not stop.stopped
    bench.person_presses(*bench.chord)
    bench.wait(lambda: stop.stopped, "the run is stopped")


class Steering:
    """Notes what the person did."""

    def __init__(self) -> None:
        self.paused, self.done = "", list[str]()

    def user_acted(self, what: str) -> None:
        self.done.append(what)


def test_a_person_who_takes_over_is_seen_and_our_own_hand_is_not(bench: Bench, desktop: Desktop) -> None:
    bench.needs(desktop, "takeover")
    steering = Steering()
    desktop.watch("none", TakeoverWatch(steering, desktop.hand.rest, lambda _: False))
    for x in (300, 500, 700):
        desktop.hand.perform(Click(DesktopPoint(x, 300)))
        time.sleep(0.5)
    assert steering.done == []
    bench.person_moves(200, 700)
    bench.wait(lambda: steering.done, "the person is seen")


def test_another_program_of_the_desktop_is_known_to_show_there(bench: Bench, desktop: Desktop) -> None:
    assert desktop.shows(bench.server.environ)
    assert not desktop.shows({})
