"""The watches on X11: pointer and display, the stop key, and what counts as the person taking over."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.core.geometry import Region
from agent.desktop.protocol.desktop import DEFAULT_CHORD, TakeoverWatch, parse_chord
from agent.desktop.protocol.hand import Rest
from agent.desktop.protocol.windows import Layer, Window
from agent.desktop.x11 import watches as watch
from agent.desktop.x11.connection import describe, open_display
from agent.desktop.x11.watches import DisplayWatch, Look, StopKey, Takeover, TakeoverJudge
from agent.desktop.x11.windows import VisibleParts
from agent.run.control import Steering
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError, UsageError


class FakeDisplay:
    """A screen of 100 by 50 with a pointer; broken after `fail`."""

    def __init__(self, pointer: tuple[int, int] = (50, 25)) -> None:
        self.pointer = pointer
        self.broken = False
        self.looks = 0
        self.closed = False

    def screen(self) -> Any:
        return SimpleNamespace(root=self)

    def get_geometry(self) -> Any:
        self.looks += 1
        if self.broken:
            raise TypeError("'OSError' object is not subscriptable")  # what python3-xlib raises
        return SimpleNamespace(width=100, height=50)

    def query_pointer(self) -> Any:
        return SimpleNamespace(root_x=self.pointer[0], root_y=self.pointer[1])

    def close(self) -> None:
        self.closed = True


def watching(monkeypatch: pytest.MonkeyPatch, *displays: FakeDisplay | None) -> tuple[StopSwitch, DisplayWatch]:
    """A watch that gets these displays, one for each time it connects."""
    left = list(displays)
    monkeypatch.setattr(watch, "_connect", lambda: left.pop(0))
    stop = StopSwitch()
    return stop, DisplayWatch(stop)


@pytest.mark.parametrize("corner", [(0, 0), (99, 0), (0, 49), (99, 49)])
def test_a_pointer_that_moves_into_any_corner_is_a_stop(
    monkeypatch: pytest.MonkeyPatch, corner: tuple[int, int]
) -> None:
    display = FakeDisplay()
    stop, _ = watching(monkeypatch, display)
    display.pointer = corner
    assert stop.wait(30)
    with pytest.raises(StoppedError, match="corner"):
        stop.check()
    wait_until(lambda: display.closed, "the connection is closed")


@pytest.mark.parametrize("pointer", [(1, 1), (98, 48), (0, 25), (50, 49)])
def test_edges_and_the_pixels_beside_a_corner_are_none(
    monkeypatch: pytest.MonkeyPatch, pointer: tuple[int, int]
) -> None:
    display = FakeDisplay()
    stop, watcher = watching(monkeypatch, display)
    display.pointer = pointer
    looks = display.looks
    wait_until(lambda: display.looks > looks + 2, "it looks again")
    assert not stop.stopped
    watcher.close()


def test_a_pointer_that_is_in_a_corner_from_the_start_was_not_slammed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    display = FakeDisplay((0, 0))
    stop, _ = watching(monkeypatch, display)
    wait_until(lambda: display.looks > 3, "it looks again")
    assert not stop.stopped
    display.pointer = (50, 25)
    looks = display.looks
    wait_until(lambda: display.looks > looks + 2, "it looks again")
    display.pointer = (0, 0)
    assert stop.wait(30)


def test_a_display_that_went_away_ends_the_run_as_a_lack_and_not_as_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    display = FakeDisplay()
    stop, _ = watching(monkeypatch, display, None)
    display.broken = True
    assert stop.wait(30)
    with pytest.raises(EnvironmentLacksError, match="went away"):
        stop.check()
    with pytest.raises(EnvironmentLacksError):
        stop.sleep(30)


def test_a_lost_connection_to_a_living_display_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = FakeDisplay(), FakeDisplay()
    stop, _ = watching(monkeypatch, first, second)
    first.broken = True
    wait_until(lambda: second.looks > 1, "it looks through the second connection")
    assert not stop.stopped
    second.pointer = (0, 0)
    assert stop.wait(30)


def test_a_watch_that_is_closed_looks_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    display = FakeDisplay()
    stop, watcher = watching(monkeypatch, display)
    watcher.close()
    wait_until(lambda: display.closed, "the connection is closed")
    assert not stop.stopped


def test_without_a_display_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    stop, _ = watching(monkeypatch, None)
    assert threading.active_count() == before
    assert not stop.stopped


def test_a_look_that_failed_halfway_is_not_remembered_as_nothing_visible() -> None:
    display: Any = SimpleNamespace(
        sync=lambda: None,
        pending_events=lambda: 0,
        screen=lambda: SimpleNamespace(root=SimpleNamespace(change_attributes=lambda **_: None)),
    )
    box = Region(0, 0, 10, 10)
    whole = [Layer(Window(1, "Terminal", "Terminal", None), box, box)]
    looks = iter([EnvironmentLacksError("The display failed.", "Try again."), whole])

    def look() -> list[Layer]:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    parts = VisibleParts(display, frozenset({1}), look)
    with pytest.raises(EnvironmentLacksError):
        parts.visible()
    assert parts.visible() == [box]


def test_chords_are_modifiers_and_one_key() -> None:
    assert parse_chord(DEFAULT_CHORD) == (["ctrl", "alt", "shift"], "escape")
    assert parse_chord(" Super + F12 ") == (["super"], "f12")
    assert parse_chord("none") == ([], "")


@pytest.mark.parametrize("chord", ["escape", "ctrl", "ctrl+shift", "hyper+x", "ctrl+", "+"])
def test_what_would_be_pressed_by_accident_or_is_no_chord_is_refused(chord: str) -> None:
    with pytest.raises(UsageError, match="stop key"):
        parse_chord(chord)


@pytest.mark.e2e
@pytest.mark.parametrize("held", ["", "Caps_Lock", "Num_Lock", "super", "a"])
def test_the_chord_stops_whatever_else_is_down_or_locked(display: PlainDisplay, held: str) -> None:
    stop = StopSwitch()
    key = StopKey(stop)
    assert key.remark == ""
    if held.endswith("Lock"):
        display.call("xdotool", "key", held)
    elif held:
        display.call("xdotool", "keydown", held)
    display.call("xdotool", "key", "Escape", "key", "ctrl+alt+Escape")
    assert not stop.stopped
    display.call("xdotool", "key", "ctrl+alt+shift+Escape")
    assert stop.wait(30)
    assert stop.reason == "the stop key was pressed"


@pytest.mark.e2e
def test_a_chord_that_another_program_has_is_a_remark_and_stops_all_the_same(display: PlainDisplay) -> None:
    first, second = StopKey(StopSwitch()), StopKey(stop := StopSwitch())
    assert "Another program uses" in second.remark
    down = [word for key in ("ctrl", "alt", "shift", "Escape") for word in ("keydown", key)]
    display.call("xdotool", *down, "sleep", "0.3")
    assert stop.wait(30)
    first.close()


@pytest.mark.e2e
def test_a_key_that_is_closed_stops_nothing_and_gives_the_chord_back(display: PlainDisplay) -> None:
    stop = StopSwitch()
    StopKey(stop).close()
    wait_until(lambda: StopKey(StopSwitch()).remark == "", "the chord is free")
    display.call("xdotool", "key", "ctrl+alt+shift+Escape")
    assert not stop.wait(0.2)


HERE, THERE = (100, 100), (300, 200)


class Story:
    """Looks at a made-up clock."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.judge = TakeoverJudge(self.told.append)
        self.now = 0.0

    def see(self, look: Look, seconds: float = 0.025, ours: bool = False) -> "Story":
        for _ in range(max(1, round(seconds / 0.025))):
            self.now += 0.025
            self.judge.look(look, self.now, ours=ours)
        return self


def test_a_pointer_that_comes_to_rest_elsewhere_was_moved_by_the_person() -> None:
    story = Story().see(Look(HERE)).see(Look((200, 150))).see(Look(THERE))
    assert story.told == []
    assert story.see(Look(THERE), 0.5).told == ["moved the pointer to 300,200"]


def test_a_pointer_that_never_rests_is_the_person_too() -> None:
    story = Story().see(Look(HERE))
    for step in range(60):
        story.see(Look((200 + step, 100)))
    assert len(story.told) == 1


@pytest.mark.parametrize(("pixels", "told"), [(8, 0), (9, 1)])
def test_more_than_eight_pixels_are_no_trembling(pixels: int, told: int) -> None:
    for there in ((HERE[0] + pixels, HERE[1]), (HERE[0], HERE[1] - pixels)):
        assert len(Story().see(Look(HERE)).see(Look(there), 2).told) == told


def test_a_way_to_our_own_window_is_none() -> None:
    story = Story().see(Look(HERE)).see(Look((150, 150))).see(Look((200, 180)))
    assert story.see(Look(THERE), 2, ours=True).told == []
    assert story.see(Look(THERE, frozenset({1}), frozenset({38})), 1, ours=True).told == []


def test_keys_and_buttons_that_go_down_are_told_once() -> None:
    story = Story().see(Look(HERE))
    for _ in range(3):
        story.see(Look(HERE, keys=frozenset({38}))).see(Look(HERE))
        story.see(Look(HERE, buttons=frozenset({1}))).see(Look(HERE))
    assert story.told == ["pressed keys", "clicked at 100,100"]


def test_what_was_down_before_is_nobodys_doing() -> None:
    stuck = Look(HERE, frozenset({1}), frozenset({38}))
    assert Story().see(stuck, 1).see(Look(HERE), 1).told == []


def test_after_it_starts_over_the_place_of_the_pointer_is_the_new_one() -> None:
    story = Story().see(Look(HERE)).see(Look(THERE), 0.5)
    story.judge.forget()
    assert story.see(Look(THERE), 2).told == ["moved the pointer to 300,200"]
    assert len(story.see(Look(HERE), 1).told) == 2


@pytest.mark.e2e
def test_on_a_display_what_the_hand_does_is_ignored_and_what_the_person_does_pauses(display: PlainDisplay) -> None:
    steering, rest = Steering(), Rest(busy=True)
    watch = Takeover(TakeoverWatch(steering, rest, lambda _: False))
    display.call("xdotool", "mousemove", "200", "200", "keydown", "a")
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.6)
    display.call("xdotool", "keyup", "a")
    rest.busy = False
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.6)
    display.call("xdotool", "keydown", "shift")
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 0.3)
    display.call("xdotool", "keyup", "shift", "mousemove", "400", "300")
    wait_until(lambda: steering.paused, "it is paused")
    assert steering.paused == "you took over: moved the pointer to 400,300"
    assert steering.take_acts() == ["moved the pointer to 400,300"]
    steering.resume()
    with pytest.raises(AssertionError, match="never"):
        wait_until(lambda: steering.paused, "it is paused", 1.0)
    display.call("xdotool", "keydown", "a", "sleep", "0.1", "keyup", "a")
    wait_until(lambda: steering.paused, "it is paused")
    assert steering.take_acts() == ["pressed keys"]
    watch.close()


@pytest.mark.usefixtures("display")
def test_a_long_title_of_an_older_program_is_read() -> None:
    title = "Rechnung für Kunden und Lieferanten 2026 (Entwurf)"
    connection = open_display()
    window = connection.screen().root.create_window(0, 0, 9, 9, 0, 0)
    window.change_property(
        connection.intern_atom("WM_NAME"), connection.intern_atom("STRING"), 8, title.encode("latin-1")
    )
    found = describe(connection, window.id)
    connection.close()
    assert found is not None
    assert found.title == title
