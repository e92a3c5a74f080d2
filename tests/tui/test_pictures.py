"""Pictures in the terminal: the characters and sixels that they are made of, and what is shown of a screenshot."""

import os
import re
import tempfile
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.segment import Segment
from stubs.terminal import Bench, run_screen, shown

from agent.core.actions import Click, Drag, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.tui.pictures.crop import Shot, picture
from agent.tui.pictures.images import GREYS, PARTS, CellImage, Sixels, SixelStrip, characters, drawn
from agent.tui.pictures.picture import Picture, ask_terminal
from agent.tui.pictures.terminal import Cells, cells_for, may_have_graphics, wanted_way
from agent.tui.view import Row

SCREEN = Viewport(Region(0, 0, 960, 540), Size(960, 540))


def checked(width: int, height: int, *white: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", (width, height))
    for place in white:
        image.putpixel(place, (255, 255, 255))
    return image


# Characters


@pytest.mark.parametrize("cells", get_args(Cells))
def test_every_pattern_of_a_cell_has_a_character_of_its_own(cells: Cells) -> None:
    across, down = PARTS[cells]
    assert len(set(characters(cells))) == 2 ** (across * down)


@pytest.mark.parametrize(
    ("cells", "white", "char"),
    [
        ("quadrants", [(0, 0), (1, 1)], "▚"),
        ("halves", [(0, 1)], "▄"),
        ("sextants", [(0, 0)], "\U0001fb00"),
        ("sextants", [(1, 0), (1, 1), (1, 2)], "▐"),
        ("octants", [(0, 1)], "\U0001cd00"),  # BLOCK OCTANT-3
        ("octants", [(1, 0), (0, 1)], "\U0001cd01"),  # BLOCK OCTANT-23
        ("octants", [(0, 3), (1, 3)], "▂"),
        ("octants", [(1, 0)], "\U0001ceab"),  # RIGHT HALF UPPER ONE QUARTER BLOCK
        ("octants", [(0, 0), (0, 1)], "▘"),
    ],
)
def test_a_cell_is_the_character_of_its_shape(cells: Cells, white: list[tuple[int, int]], char: str) -> None:
    [[cell]] = drawn(Shot(checked(*PARTS[cells], *white)), 1, 1, cells)
    assert (cell.char, cell.front, cell.back) == (char, (255, 255, 255), (0, 0, 0))


@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from(get_args(Cells)), st.integers(0, 9))
def test_a_picture_fills_its_cells_exactly(columns: int, rows: int, cells: Cells, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 255, (37, 53, 3), dtype=np.uint8)
    grid = drawn(Shot(Image.fromarray(noise)), columns, rows, cells)
    assert [len(row) for row in grid] == [columns] * rows


def test_with_sixteen_colours_only_those_are_used_that_every_theme_keeps_apart() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    cells = [cell for row in drawn(Shot(Image.fromarray(noise)), 20, 10, "quadrants", greys=True) for cell in row]
    assert {cell.front for cell in cells} | {cell.back for cell in cells} <= set(GREYS)
    assert len({cell.front for cell in cells}) > 1


def test_the_target_stands_in_a_frame_and_the_start_of_a_drag_has_a_dot() -> None:
    shot = Shot(Image.new("RGB", (200, 100), (255, 0, 80)), ((10, 90), (100, 50)))
    grid = drawn(shot, 20, 10, "quadrants")
    lines = ["".join(cell.char for cell in row) for row in grid]
    assert [line[7:14] for line in lines[4:7]] == ["┏━━━━━┓", "┃     ┃", "┗━━━━━┛"] and lines[9][1] == "●"
    assert grid[4][7].front == (255, 0, 80) and grid[4][7].back == (0, 0, 0)  # it stands out from its own colour


# Which way


@pytest.mark.parametrize(
    ("environ", "cells"),
    [
        ({"TERM": "xterm-256color"}, "quadrants"),
        ({"TERM": "linux"}, "halves"),
        ({"VTE_VERSION": "7802"}, "octants"),
        ({"VTE_VERSION": "7006"}, "sextants"),
        ({"VTE_VERSION": "5202"}, "quadrants"),
        ({"VTE_VERSION": "7802", "TMUX": "/tmp/x"}, "quadrants"),
        ({"KITTY_WINDOW_ID": "1"}, "sextants"),
        ({"VTE_VERSION": "²"}, "quadrants"),
    ],
)
def test_characters_that_few_fonts_have_are_used_where_the_terminal_draws_them(
    environ: dict[str, str], cells: Cells
) -> None:
    assert cells_for("auto", environ) == cells


def test_what_is_set_is_done_the_environment_before_the_file() -> None:
    assert wanted_way("octants", {}) == "octants"
    assert wanted_way("octants", {"MAI_AGENT_IMAGES": "halves"}) == "halves"
    assert wanted_way("octants", {"MAI_AGENT_IMAGES": "no such thing"}) == "octants"
    assert wanted_way(None, {}) == "auto"
    assert cells_for("sextants", {"TERM": "linux"}) == "sextants"
    assert may_have_graphics("pixels", {"TMUX": "/tmp/x"})
    assert not may_have_graphics("quadrants", {"KITTY_WINDOW_ID": "1"})
    assert not may_have_graphics("auto", {"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/x"})


# Sixels


def decoded(sixels: str, width: int, height: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """What a terminal makes of a sixel image, in percent; -1 where it draws nothing."""
    [body] = re.findall(r'\x1bP[0-9;]*q"1;1;\d+;\d+(.*?)\x1b\\', sixels, re.DOTALL)
    pixels = np.full((height + 6, width, 3), -1)
    colours: dict[int, list[int]] = {}
    colour = x = band = 0
    for defined, selected, count, repeated, plain in re.findall(
        r"#(\d+;2;\d+;\d+;\d+)|#(\d+)|!(\d+)([?-~])|([?-~$-])", body
    ):
        if defined:
            number, _, *rgb = map(int, defined.split(";"))
            colours[number], colour = rgb, number
        elif selected:
            colour = int(selected)
        elif plain == "$":
            x = 0
        elif plain == "-":
            x, band = 0, band + 6
        else:
            bits = ord(repeated or plain) - 63
            times = int(count or 1)
            for bit in (bit for bit in range(6) if bits >> bit & 1):
                pixels[band + bit, x : x + times] = colours[colour]
            x += times
    assert (pixels[height:] == -1).all(), "it draws over the line below"
    return pixels[:height]


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 9), st.integers(1, 21), st.integers(0, 99))
def test_a_line_of_sixels_draws_every_pixel_of_its_cells_and_none_below(
    columns: int, rows: int, width: int, height: int, seed: int
) -> None:
    noise = np.random.default_rng(seed).integers(0, 2, (rows * height, columns * width, 1), dtype=np.uint8) * 255
    image = Image.fromarray(np.repeat(noise, 3, axis=2))
    sixels = Sixels(image, columns, rows, (width, height))
    for row in range(rows):
        seen = decoded(sixels.line(row, 0, columns), columns * width, height)
        expected = np.asarray(image)[row * height : (row + 1) * height] / 255 * 100
        assert np.abs(seen - expected).max() <= 1


def test_a_line_of_sixels_that_is_cut_draws_what_is_left_of_it() -> None:
    """A strip of text is cut by the length of its text, which loses sixels: a picture went blank under a message."""
    image = Image.new("RGB", (60, 20))
    image.paste((255, 255, 255), (30, 0, 60, 20))
    strip = SixelStrip(Sixels(image, 6, 1, (10, 20)), 0, 0, 6)
    assert strip.cell_length == 6
    parts = strip.divide([2, 4, 6])
    assert [part.cell_length for part in parts] == [2, 2, 2]
    drawings = [decoded("".join(segment.text for segment in part), 20, 20) for part in parts]
    assert [drawing[0, :, 0].tolist() for drawing in drawings] == [[0] * 20, [0] * 10 + [100] * 10, [100] * 20]
    cropped = strip.crop(4).crop(0, 1)
    assert decoded("".join(segment.text for segment in cropped), 10, 20).min() == 100
    assert list(strip.crop(3, 3)) == list[Segment]()


def test_a_line_of_sixels_leaves_the_cursor_behind_it() -> None:
    [segment] = SixelStrip(Sixels(Image.new("RGB", (60, 20)), 6, 1, (10, 20)), 0, 2, 6)
    assert segment.text.startswith("\x1b7\x1bP") and segment.text.endswith("\x1b\\\x1b8\x1b[4C")


# What is shown


def a_row(**values: object) -> Row:
    file = Path(tempfile.mkdtemp(dir=os.environ["TMPDIR"])) / "shot.png"
    Image.new("RGB", (960, 540), (200, 200, 200)).save(file)
    return Row(1, "asking", "x", viewport=SCREEN, image=file, **values)  # type: ignore[arg-type]


def test_a_crop_lies_around_the_target_and_says_where_it_is() -> None:
    shot = picture(a_row(target=Click(DesktopPoint(500, 300))), 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (200, 100) and shot.places == ((100, 50),)


def test_a_crop_at_the_edge_keeps_its_size_and_its_mark() -> None:
    shot = picture(a_row(target=Click(DesktopPoint(3, 535))), 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (200, 100) and shot.places == ((3, 95),)


def test_a_drag_is_shown_from_its_start_to_its_end() -> None:
    shot = picture(a_row(target=Drag(DesktopPoint(100, 100), DesktopPoint(800, 400))), 2.0, whole=False, across=200)
    assert shot is not None and shot.image.width >= 700
    assert all(0 <= x < shot.image.width and 0 <= y < shot.image.height for x, y in shot.places)


def test_an_action_without_a_point_is_shown_in_the_window_that_it_goes_to() -> None:
    row = a_row(target=TypeText("hello"), about=Region(100, 50, 400, 200))
    shot = picture(row, 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (424, 248) and not shot.whole
    zoomed = picture(row, 2.0, whole=True)
    assert zoomed is not None and zoomed.image.size == (960, 540)


def test_what_is_typed_is_shown_at_the_field_that_gets_it() -> None:
    row = a_row(target=TypeText("hello"), about=Region(100, 50, 400, 200), spot=Region(300, 100, 80, 20))
    shot = picture(row, 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (200, 100) and not shot.places
    assert shot.field == (108, 68, 188, 88)
    wide = picture(row, 2.0, whole=False, across=320)
    assert wide is not None and wide.field == (212, 86, 292, 106)  # the window's title is in sight, too


def test_in_a_large_field_the_last_line_that_is_written_is_in_sight() -> None:
    page = Image.new("RGB", (960, 540), (250, 250, 250))
    page.paste((20, 20, 20), (110, 420, 200, 432))
    row = a_row(target=TypeText("hello"), about=Region(100, 60, 700, 460), spot=Region(100, 90, 700, 430))
    assert row.image is not None
    page.save(row.image)
    shot = picture(row, 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (200, 100)
    assert shot.image.convert("L").getextrema()[0] < 60
    Image.new("RGB", (960, 540), (250, 250, 250)).save(row.image)
    empty = picture(row, 2.0, whole=False, across=200)
    assert empty is not None and empty.field == (12, 66 - 30, 200, 100)  # from the title on


def test_of_a_large_window_without_a_known_field_the_title_is_shown() -> None:
    row = a_row(target=PressKeys(("ctrl", "s")), about=Region(100, 60, 800, 460))
    shot = picture(row, 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (480, 240) and not shot.whole


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize(("size", "is_drawn"), [((80, 24), True), ((80, 14), False), ((140, 40), True)])
async def test_where_a_picture_would_be_too_small_there_are_words(
    bench: Bench, size: tuple[int, int], is_drawn: bool
) -> None:
    async with bench.shows(*bench.step(1, Click(DesktopPoint(480.0, 270.0))), size=size) as pilot:
        await pilot.pause()
        detail = run_screen(pilot).detail
        assert detail.query_one(Picture).display is is_drawn
        assert is_drawn or detail.query_one("#scroll").size.height >= detail.size.height - 1


@pytest.mark.parametrize("about", [None, Region(2000, 50, 400, 200), Region(-500, -500, 400, 400)])
def test_where_the_window_is_not_known_or_not_on_the_picture_the_whole_screen_is_shown(about: Region | None) -> None:
    shot = picture(a_row(target=TypeText("hello"), about=about), 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (960, 540) and shot.whole


def test_a_screenshot_that_is_none_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG nothing")
    assert picture(Row(1, "done", "x", image=tmp_path / "broken.png"), 2.0, whole=False) is None


def test_a_screenshot_of_absurd_size_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 1000)
    assert picture(a_row(target=Click(DesktopPoint(3, 5))), 2.0, whole=False) is None


# What the screen looks like


@pytest.fixture
def in_cells(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tui.pictures.picture.image_widget", lambda: CellImage)
    monkeypatch.setenv("MAI_AGENT_IMAGES", "quadrants")


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("colours", ["truecolor", "256", "standard"])
async def test_a_question_shows_the_target_framed(bench: Bench, colours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console.Console.color_system", colours)
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.app().run_test(size=(140, 40)) as pilot:
        for step in (1, 2):  # the picture of a later question, too
            reports = [*bench.sees(step), *bench.decides(step, click), *bench.asks(step, click, "it deletes", "")]
            await bench.feed(pilot, *(bench.begins() if step == 1 else ()), *reports)
            await pilot.pause(0.05)
            lines = [strip.text for strip in run_screen(pilot).detail.query_one(CellImage)._strips]
            [above] = [row for row, line in enumerate(lines) if "┏━━━━━┓" in line]
            assert "┗━━━━━┛" in lines[above + 2] and lines[above + 1].count("┃") == 2


@pytest.mark.usefixtures("in_cells")
async def test_the_whole_screen_has_the_whole_width_and_the_steps_can_be_gone_through(bench: Bench) -> None:
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.shows(*bench.step(1, click), *bench.step(2, TypeText("hello")), size=(80, 24)) as pilot:
        await pilot.press("escape", "z")
        await pilot.pause()
        assert run_screen(pilot).detail.query_one(Picture).size.width == 80
        assert "type “hello”" in shown(pilot)
        await pilot.press("k")
        await pilot.pause()
        assert run_screen(pilot).history.cursor == 0
        assert "click" in shown(pilot) and "type “hello”" not in shown(pilot)
        await pilot.press("z")
        await pilot.pause()
        assert "type “hello”" in shown(pilot) and run_screen(pilot).detail.query_one(Picture).size.width < 50


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("environ", [True, False], ids=["environment", "settings"])
async def test_pictures_can_be_switched_off(bench: Bench, monkeypatch: pytest.MonkeyPatch, environ: bool) -> None:
    monkeypatch.setenv("MAI_AGENT_IMAGES", "off" if environ else "")
    ask_terminal(None if environ else "off")
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.shows(*bench.step(1, click), size=(140, 40)) as pilot:
        assert not pilot.app.screen.query(CellImage)
        assert pilot.app.screen.query_one("Detail #scroll").size.height > 30  # the words have the room
    ask_terminal(None)
