"""The second way of copying a screen (ext-image-copy-capture), against a compositor that keeps to the letter."""

from pathlib import Path

import pytest
from stubs.fake_compositor import ABGR, MANAGERS, FakeCompositor, colour

from agent.core.geometry import Size
from agent.desktop.wlroots.desktop import missing_on
from agent.desktop.wlroots.screen import WlrootsScreen
from foundation.errors import EnvironmentLacksError


@pytest.mark.parametrize("formats", [(0x34325241, 1), (ABGR,)])
def test_every_capture_comes_at_once_in_its_colours(tmp_path: Path, formats: tuple[int, ...]) -> None:
    with FakeCompositor(tmp_path, formats=formats) as compositor:
        screen = WlrootsScreen(compositor.path)
        for _ in range(3):
            frame = screen.grab()
            assert frame.viewport.captured == Size(8, 4)
            assert [frame.image.getpixel((x, y)) for x, y in ((0, 0), (7, 0), (3, 3))] == [
                colour(0, 0), colour(7, 0), colour(3, 3)
            ]  # fmt: skip
        screen.close()
        assert (compositor.sessions, compositor.errors) == (3, [])


def test_a_turned_monitor_is_seen_upright(tmp_path: Path) -> None:
    with FakeCompositor(tmp_path, transform=1) as compositor:
        screen = WlrootsScreen(compositor.path)
        frame = screen.grab()
        assert frame.viewport.captured == Size(4, 8)
        assert frame.viewport.region.size == Size(4, 8)
        assert frame.image.getpixel((3, 0)) == colour(0, 0)
        screen.close()


def test_a_monitor_that_changes_its_size_meanwhile_is_captured_anew(tmp_path: Path) -> None:
    with FakeCompositor(tmp_path, misses=1) as compositor:
        screen = WlrootsScreen(compositor.path)
        assert screen.grab().image.getpixel((1, 1)) == colour(1, 1)
        assert compositor.sessions == 2
        screen.close()


@pytest.mark.parametrize("how", [{"misses": 9}, {"stops": True}])
def test_a_capture_that_is_refused_is_told(tmp_path: Path, how: dict[str, int]) -> None:
    with FakeCompositor(tmp_path, **how) as compositor:  # type: ignore[arg-type]
        screen = WlrootsScreen(compositor.path)
        with pytest.raises(EnvironmentLacksError, match="no longer be captured"):
            screen.grab()
        screen.close()


def test_a_picture_in_the_memory_of_the_graphics_card_alone_is_told(tmp_path: Path) -> None:
    with FakeCompositor(tmp_path, formats=()) as compositor:
        screen = WlrootsScreen(compositor.path)
        with pytest.raises(EnvironmentLacksError, match="graphics card's memory"):
            screen.grab()
        screen.close()


@pytest.mark.parametrize(
    ("offered", "lacks"),
    [(MANAGERS, False), (("zwlr_screencopy_manager_v1",), False), (MANAGERS[:1], True), ((), True)],
)
def test_one_of_the_two_ways_is_enough(tmp_path: Path, offered: tuple[str, ...], lacks: bool) -> None:
    with FakeCompositor(tmp_path, offered=offered) as compositor:
        assert ("zwlr_screencopy_manager_v1" in missing_on(compositor.path)) == lacks
