"""The watch over pointer and display, on a made-up display."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from stubs.display import wait_until

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer, Window
from agent.desktop.x11 import watches as watch
from agent.desktop.x11.watches import DisplayWatch
from agent.desktop.x11.windows import VisibleParts
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError


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
