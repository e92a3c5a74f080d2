"""A desktop is called good only for what was seen to arrive in the window of a trial."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stubs.benches import Bench, bench_of

from agent.core.actions import Action, TypeText
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.desktop.protocol.desktop import Desktop, Finding
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.self_test import capture as seeing
from agent.desktop.self_test import window
from agent.desktop.self_test.capture import Pattern
from agent.desktop.self_test.checks import SelfTest, window_environ
from agent.desktop.self_test.window import SelfTestWindow
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame, Screen
from foundation.errors import EnvironmentLacksError, StoppedError

pytestmark = pytest.mark.slow

DONE = ["left button", "middle button", "right button", "drag", "wheel down", "wheel up", "wheel right", "wheel left"]
DONE += ["text, Latin", "text, Cyrillic", "text, Chinese", "chord", "clipboard", "released"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench_of("x11", tmp_path_factory.mktemp("trial")) as found:
        yield found


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeing, "TIMEOUT", 1.5)
    monkeypatch.setattr(window, "TIMEOUT", 1.5)


class Changed:
    """A desktop, some parts of which are others."""

    def __init__(self, desktop: Desktop, **parts: Any) -> None:
        self._desktop, self._parts = desktop, parts

    def __getattr__(self, name: str) -> Any:
        return self._parts[name] if name in self._parts else getattr(self._desktop, name)


class Seen:
    """A screen whose frames are changed."""

    def __init__(self, screen: Screen, change: Callable[[Frame], Frame]) -> None:
        self._screen, self._change = screen, change

    def grab(self) -> Frame:
        return self._change(self._screen.grab())

    def close(self) -> None:
        self._screen.close()


def tried(bench: Bench, stop: StopSwitch | None = None, watch: str = "", **parts: Any) -> dict[str, Finding]:
    """All findings of a trial."""
    stop = stop or StopSwitch()
    desktop = bench.open(stop)
    changed: Any = Changed(desktop, **{name: part(desktop) for name, part in parts.items()})
    environ = window_environ(changed, os.environ)
    assert environ is not None
    try:
        return {one.name: one for one in SelfTest(changed, environ, stop, watch).run()}
    finally:
        desktop.screen.close()
        desktop.close()


@pytest.mark.e2e
@pytest.mark.usefixtures("little_patience")
def test_a_black_capture_is_no_good_desktop_and_nothing_is_clicked(bench: Bench) -> None:
    def black(frame: Frame) -> Frame:
        return Frame(Image.new("RGB", frame.image.size), frame.viewport, frame.taken_at)

    bench.since_now()
    found = tried(bench, screen=lambda desktop: Seen(desktop.screen, black))
    assert found["capture"].ok is False
    assert "empty: every pixel is black" in found["capture"].detail
    assert found["input"].ok is None
    assert not set(DONE[:-1]) & set(found)
    assert bench.events("press", "key") == []


@pytest.mark.e2e
@pytest.mark.usefixtures("little_patience")
def test_an_old_picture_given_again_is_not_taken_for_the_screen(bench: Bench) -> None:
    first: list[Frame] = []

    def old(frame: Frame) -> Frame:
        first.append(frame)
        return first[0]

    found = tried(bench, screen=lambda desktop: Seen(desktop.screen, old))
    assert found["capture"].ok is False
    assert "does not show our whole window and its change" in found["capture"].detail


@pytest.mark.e2e
@pytest.mark.usefixtures("little_patience")
def test_a_scale_that_is_not_understood_is_told(bench: Bench) -> None:
    def doubled(frame: Frame) -> Frame:
        region = frame.viewport.region
        half = Region(0, 0, region.width // 2, region.height // 2)
        return Frame(frame.image, Viewport(half, frame.viewport.captured), frame.taken_at)

    found = tried(bench, screen=lambda desktop: Seen(desktop.screen, doubled))
    assert found["capture"].ok is False
    assert "640x480 appears as 320x240" in found["capture"].detail


@pytest.mark.e2e
@pytest.mark.usefixtures("little_patience")
def test_where_the_pointer_does_not_arrive_no_button_is_pressed(bench: Bench) -> None:
    def shifted(frame: Frame) -> Frame:
        moved = Image.new("RGB", frame.image.size)
        moved.paste(frame.image, (400, 200))
        return Frame(moved, frame.viewport, frame.taken_at)

    bench.since_now()
    found = tried(bench, screen=lambda desktop: Seen(desktop.screen, shifted))
    assert (found["capture"].ok, found["pointer"].ok, found["input"].ok) == (True, False, None)
    assert not set(DONE[:-1]) & set(found)
    assert bench.events("press", "key") == []


class Typing:
    """A hand that types otherwise than it is told."""

    def __init__(self, hand: Any, change: Callable[[str], str]) -> None:
        self._hand, self._change = hand, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hand, name)

    def perform(self, action: Action[DesktopPoint]) -> str:
        changed = TypeText(self._change(action.text)) if isinstance(action, TypeText) else action
        return str(self._hand.perform(changed))


def fails(_: str) -> str:
    raise ActionFailedError("there is no such key")


@pytest.mark.e2e
@pytest.mark.usefixtures("little_patience")
@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda text: text.encode("ascii", "ignore").decode() or "?", "arrived as"), (fails, "no such key")],
)
def test_text_that_did_not_arrive_to_the_letter_is_not_good(
    bench: Bench, change: Callable[[str], str], told: str
) -> None:
    found = tried(bench, hand=lambda desktop: Typing(desktop.hand, change))
    for script in ("Latin", "Cyrillic", "Chinese"):
        assert found[f"text, {script}"].ok is False
        assert told in found[f"text, {script}"].detail
    assert found["chord"].ok and found["released"].ok


@pytest.mark.e2e
def test_a_stop_ends_it_at_once_and_the_window_goes_away(bench: Bench) -> None:
    stop = StopSwitch()

    def stopping(text: str) -> str:
        stop.stop("enough")
        return text

    with pytest.raises(StoppedError):
        tried(bench, stop, hand=lambda desktop: Typing(desktop.hand, stopping))
    windows = bench.open().open_windows()
    assert windows is not None
    bench.wait(lambda: "mai-agent doctor" not in [one.title for one in windows.windows()], "the window is gone")
    windows.close()


def pictures(number: int, place: tuple[int, int], size: Size) -> list[Image.Image]:
    """The pattern on a screen, in both ways."""
    found = []
    for turned in (False, True):
        image = Image.new("RGB", (800, 600), (120, 130, 140))
        image.paste(Pattern(number).colours[turned], (*place, place[0] + size.width, place[1] + size.height))
        found.append(image)
    return found


def test_the_pattern_is_found_to_the_pixel_wherever_it_is() -> None:
    chance = random.Random(7)
    for number in range(6):
        size = Size(chance.randrange(200, 400), chance.randrange(150, 300))
        place = chance.randrange(0, 400), chance.randrange(0, 300)
        found = Pattern(number).find(*pictures(number, place, size))
        assert found is not None
        assert (found.box, found.right, found.off) == (Region(*place, size.width, size.height), 1, 0)


def test_other_colours_and_those_that_do_not_change_are_not_taken_for_it() -> None:
    first, second = pictures(3, (50, 60), Size(320, 240))
    assert Pattern(3).find(first, first) is None
    assert Pattern(5).find(first, second) is None


def test_a_part_of_it_that_is_covered_is_told() -> None:
    first, second = pictures(3, (50, 60), Size(320, 240))
    for image in (first, second):
        image.paste((0, 0, 0), (100, 100, 180, 180))
    found = Pattern(3).find(first, second)
    assert found is not None and found.box.size == Size(320, 240) and 0.9 < found.right < 0.95


def test_what_lacks_for_its_window_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for program, why in (("#!/bin/sh\nexec false\n", "window went away"), ("", "cannot be started")):
        python = tmp_path / "python3"
        python.write_text(program)
        python.chmod(0o755 if program else 0o644)
        monkeypatch.setattr(window, "_PYTHON", str(python))
        with pytest.raises(EnvironmentLacksError, match=why):
            SelfTestWindow({}, Pattern(3).colours, StopSwitch())
