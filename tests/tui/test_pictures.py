"""Pictures in the terminal: the characters and sixels that they are made of, and what is shown of a screenshot."""

import io
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from rich.segment import Segment
from stubs.terminal import Bench, run_screen, shown

from agent.core.actions import Click, Drag, TypeText
from agent.core.geometry import DesktopPoint, Region, Size, Viewport
from agent.events.run_events import ApprovalAsked
from agent.safety.naming import Aim
from agent.screen.ocr import Box, Word
from agent.tui.conductor import RunEvent
from agent.tui.pictures import reading
from agent.tui.pictures.cells import GREYS, PARTS, characters, drawn
from agent.tui.pictures.reading import Line
from agent.tui.pictures.sixel import Sixels
from agent.tui.pictures.ways import Cells, cells_for, may_have_graphics, wanted_way
from agent.tui.screenshot import picture
from agent.tui.view import Row
from agent.tui.widgets.cell_image import CellImage, _placed
from agent.tui.widgets.picture import Picture, ask_terminal
from agent.tui.widgets.sixel_image import SixelStrip

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
    [[cell]] = drawn(checked(*PARTS[cells], *white), 1, 1, cells)
    assert (cell.char, cell.front, cell.back) == (char, (255, 255, 255), (0, 0, 0))


@given(st.integers(1, 40), st.integers(1, 20), st.sampled_from(get_args(Cells)), st.integers(0, 9))
def test_a_picture_fills_its_cells_exactly(columns: int, rows: int, cells: Cells, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 255, (37, 53, 3), dtype=np.uint8)
    grid = drawn(Image.fromarray(noise), columns, rows, cells)
    assert [len(row) for row in grid] == [columns] * rows


def test_with_sixteen_colours_only_those_are_used_that_every_theme_keeps_apart() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    cells = [cell for row in drawn(Image.fromarray(noise), 20, 10, "quadrants", "sixteen") for cell in row]
    assert {cell.front for cell in cells} | {cell.back for cell in cells} <= set(GREYS)
    assert len({cell.front for cell in cells}) > 1


def test_without_colours_light_is_told_from_dark_by_the_characters_alone() -> None:
    image = Image.new("RGB", (20, 10), (20, 20, 20))
    image.paste((240, 240, 240), (10, 0, 20, 10))
    [row] = drawn(image, 4, 1, "quadrants", "none")
    assert "".join(cell.char for cell in row) == "  ██"
    assert all(cell.front is None and cell.back is None for cell in row)


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
            colours[number] = rgb
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
    buffer = io.BytesIO()
    Image.new("RGB", (960, 540), (200, 200, 200)).save(buffer, "PNG")
    return Row(1, "asking", "x", viewport=SCREEN, data=buffer.getvalue(), **values)  # type: ignore[arg-type]


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
    assert shot is not None and shot.image.size == (200, 100) and shot.places == ((100, 50),)


@pytest.mark.parametrize(("at", "corner"), [((40, 20), "top"), ((620, 440), "bottom")])
def test_of_a_window_that_is_too_large_to_be_read_the_part_is_shown_where_the_most_is_written(
    at: tuple[int, int], corner: str
) -> None:
    window = Image.new("RGB", (960, 540), (245, 245, 245))
    pen = ImageDraw.Draw(window)
    for line in range(5):
        pen.text((at[0], at[1] + 14 * line), "words of a window that is open", fill=(20, 20, 20))
    buffer = io.BytesIO()
    window.save(buffer, "PNG")
    row = a_row(target=TypeText("hello"), about=Region(0, 0, 900, 530))
    row.data = buffer.getvalue()
    coarse, sharp = (picture(row, 2.0, whole=False, across=200, coarse=coarse) for coarse in (True, False))
    assert coarse is not None and coarse.image.size == (270, 135) and not coarse.whole
    dark = (np.asarray(coarse.image.convert("L")) < 100).sum()
    assert dark == (np.asarray(window.convert("L")) < 100).sum(), corner  # all of it
    assert sharp is not None and sharp.image.size == (912, 540)


def test_of_a_window_where_nothing_is_written_the_top_is_shown() -> None:
    row = a_row(target=TypeText("hello"), about=Region(100, 100, 800, 400))
    row.data = a_row().data
    coarse = picture(row, 2.0, whole=False, across=200, coarse=True)
    assert coarse is not None and coarse.image.size == (270, 135)


@pytest.mark.parametrize("about", [None, Region(2000, 50, 400, 200), Region(-500, -500, 400, 400)])
def test_where_the_window_is_not_known_or_not_on_the_picture_the_whole_screen_is_shown(about: Region | None) -> None:
    shot = picture(a_row(target=TypeText("hello"), about=about), 2.0, whole=False, across=200)
    assert shot is not None and shot.image.size == (960, 540) and shot.whole


def test_a_coarse_picture_shows_the_window_where_the_most_is_written_and_not_the_whole_desktop() -> None:
    screen = Image.new("RGB", (960, 540), (60, 100, 140))
    pen = ImageDraw.Draw(screen)
    pen.rectangle((300, 150, 700, 400), fill=(245, 245, 245))
    for line in range(10):
        pen.text((330, 170 + 20 * line), "words of a window that is open here", fill=(20, 20, 20))
    pen.text((10, 5), "Applications   Panel   12:00", fill=(240, 240, 240))
    buffer = io.BytesIO()
    screen.save(buffer, "PNG")
    row = Row(1, "done", "x", target=TypeText("hello"), viewport=SCREEN, data=buffer.getvalue())
    coarse = picture(row, 2.0, whole=False, coarse=True)
    assert coarse is not None and not coarse.whole
    assert 200 <= coarse.image.width <= 420 and 180 <= coarse.image.height <= 260
    sharp = picture(row, 2.0, whole=False, coarse=False)
    assert sharp is not None and sharp.whole and sharp.image.size == (960, 540)


def test_a_screenshot_that_is_none_is_no_picture(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG nothing")
    assert picture(Row(1, "done", "x", image=tmp_path / "broken.png"), 2.0, whole=False) is None


def test_a_screenshot_of_absurd_size_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 1000)
    assert picture(a_row(target=Click(DesktopPoint(3, 5))), 2.0, whole=False) is None


# What the screen looks like


@pytest.fixture
def in_cells(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures in quadrants, and a reader that reads "Delete all" at the target of `click`."""
    monkeypatch.setattr("agent.tui.widgets.picture.image_widget", lambda: CellImage)
    monkeypatch.setattr("agent.tui.widgets.picture._REST", 0.01)
    monkeypatch.setattr("agent.tui.widgets.picture._REST_ASKING", 0.01)
    monkeypatch.setenv("MAI_AGENT_IMAGES", "quadrants")

    def read(image: Image.Image) -> tuple[Line, ...]:
        x, y = image.width // 2, image.height // 2
        near = Line(
            (Word("Delete", Box(x - 30, y - 6, x + 5, y + 6), 95), Word("all", Box(x + 9, y - 6, x + 25, y + 6), 95))
        )
        far = Line((Word("Close\u202e\x1b]52", Box(10, 4, 60, 16), 95),))
        return far, near

    monkeypatch.setattr("agent.tui.widgets.picture.read_lines", read)


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("colours", ["truecolor", "256", "standard"])
async def test_a_question_shows_the_target_framed_and_the_words_around_it(
    bench: Bench, colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console.color_system", colours)
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.app().run_test(size=(140, 40)) as pilot:
        for step in (1, 2):  # the picture of a later question, too
            reports = [*bench.sees(step), *bench.decides(step, click), *bench.asks(step, click, "it deletes", "")]
            await bench.feed(pilot, *(bench.begins() if step == 1 else ()), *reports)
            for _ in range(100):
                await pilot.pause(0.02)
                if "reads: Delete all" in shown(pilot):
                    break
            panel = run_screen(pilot).detail.query_one(Picture)
            lines = [strip.text for strip in panel.query_one(CellImage)._strips]
            [framed] = [line for line in lines if "Delete all" in line]
            assert re.search(r"┃\s*Delete all\s*┃", framed)
            above, below = lines[lines.index(framed) - 1], lines[lines.index(framed) + 1]
            assert "┏" in above and "┓" in above and "┗" in below and "┛" in below
            assert "reads: Delete all · Close" in shown(pilot)
            assert "\u202e" not in shown(pilot) and "\x1b" not in shown(pilot)


@pytest.mark.usefixtures("in_cells")
async def test_what_is_typed_is_shown_in_the_window_that_gets_it(bench: Bench) -> None:
    action, window = TypeText("hello"), Region(100, 50, 400, 200)
    asked = ApprovalAsked(1, action, "it types", aim=Aim(("“Name”",), "Settings", window))
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, action), RunEvent(asked))
        shot = pilot.app.screen.query_one("Detail Picture", Picture)._shot
        assert shot is not None and shot.image.size == (424, 250) and not shot.whole


@pytest.mark.usefixtures("in_cells")
async def test_nothing_is_read_while_a_step_is_under_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr("agent.tui.widgets.picture.read_lines", lambda image: read.append(image) or ())
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, click))
        await pilot.pause(0.1)
        assert not read
        await bench.feed(pilot, *bench.does(1, click))
        await pilot.pause(0.1)
        await pilot.app.workers.wait_for_complete()
        assert len(read) == 1


@pytest.mark.usefixtures("in_cells")
async def test_the_words_are_read_while_the_model_thinks_long(bench: Bench) -> None:
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        for _ in range(100):
            await pilot.pause(0.02)
            if "reads: " in shown(pilot):
                break
        assert "Delete all" in shown(pilot)


def lines_at(*placed: tuple[str, int, int]) -> list[Line]:
    """Lines of 12 pixels by 7 a letter, from where they begin."""
    return [Line((Word(text, Box(x, y, x + 7 * len(text), y + 12), 95),)) for text, x, y in placed]


def test_in_a_coarse_picture_a_word_takes_the_room_that_is_free_to_its_right() -> None:
    image = Image.new("RGB", (800, 320), (240, 240, 240))
    lines = lines_at(("Appearance", 0, 10), ("Keyboard", 320, 10), ("Mouse and Touchpad", 640, 10), ("Below", 0, 18))
    written = {one.line.text: one for one in _placed(image, lines, 40, 10)}  # cells of 20 by 32 pixels
    assert [(one.text, one.left, one.row) for one in (written["Appearance"], written["Keyboard"])] == [
        ("Appearance", 0, 0),
        ("Keyboard", 16, 0),
    ]
    assert written["Mouse and Touchpad"].text == "Mouse a…"  # up to the edge
    assert "Below" not in written  # there is only one line of letters in a row of cells: the one in its middle


def test_what_would_be_cut_to_nothing_stays_a_picture() -> None:
    image = Image.new("RGB", (800, 320), (240, 240, 240))
    written = _placed(image, lines_at(("Settings", 0, 10), ("Close", 80, 10)), 40, 10)
    assert [one.text for one in written] == ["Close"]


@pytest.mark.usefixtures("in_cells")
async def test_the_whole_screen_has_the_whole_width_and_the_steps_can_be_gone_through(bench: Bench) -> None:
    click = Click(DesktopPoint(480.0, 270.0))
    async with bench.app().run_test(size=(80, 24)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, click), *bench.step(2, TypeText("hello")))
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
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, click))
        assert not pilot.app.screen.query(CellImage)
        assert pilot.app.screen.query_one("Detail #scroll").size.height > 30  # the words have the room
    ask_terminal(None)


def test_words_of_a_real_picture_are_read_with_their_places() -> None:
    image = Image.new("RGB", (300, 60), (240, 240, 240))
    from PIL import ImageFont

    ImageDraw.Draw(image).text((40, 20), "Appearance", fill=(20, 20, 20), font=ImageFont.load_default(18))
    lines = reading.read_lines(image)
    assert [line.text for line in lines] == ["Appearance"]
    assert 30 <= lines[0].box.left <= 50 and lines[0].away(60, 30) == 0


def test_words_that_are_selected_are_read_beside_those_that_are_not() -> None:
    from PIL import ImageFont

    image = Image.new("RGB", (420, 190), (255, 255, 255))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(13)
    for row, (word, selected) in enumerate(
        {"Computer": False, "Letters": True, "Desktop": False, "Trash": False}.items()
    ):
        if selected:
            pen.rectangle((10, 20 + row * 40, 150, 48 + row * 40), fill=(74, 144, 217))
        pen.text((40, 26 + row * 40), word, fill=(255, 255, 255) if selected else (40, 40, 40), font=font)
    assert [line.text for line in reading.read_lines(image)] == ["Computer", "Letters", "Desktop", "Trash"]
