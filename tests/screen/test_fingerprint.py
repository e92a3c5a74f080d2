"""Fingerprints see what a person would call a change, and where."""

import pytest
from desks import CARET, CLOCK, draw
from PIL import Image, ImageDraw

from agent.screen.settle import CELL, Fingerprint


def changed(one: Image.Image, other: Image.Image) -> frozenset[tuple[int, int]]:
    return Fingerprint.of(one).changed_cells(Fingerprint.of(other))


def test_the_same_picture_has_not_changed() -> None:
    assert not changed(draw(), draw())
    assert Fingerprint.of(draw()).digest == Fingerprint.of(draw()).digest


@pytest.mark.parametrize("difference", [{"caret": True}, {"clock": "12:01"}, {"ticked": True}])
def test_a_small_thing_changes_a_few_cells_and_only_around_it(difference: dict[str, object]) -> None:
    cells = changed(draw(), draw(**difference))
    assert 1 <= len(cells) <= 4


def test_a_cell_is_named_by_its_row_and_column() -> None:
    (cell,) = changed(draw(), draw(caret=True))
    assert cell == (CARET[1] // CELL, CARET[0] // CELL)
    assert {row for row, _ in changed(draw(), draw(clock="11:11"))} == {CLOCK[1] // CELL}


def test_a_ticked_box_is_another_screen() -> None:
    assert changed(draw(), draw(ticked=True))
    assert Fingerprint.of(draw()).digest != Fingerprint.of(draw(ticked=True)).digest


def test_a_moved_window_changes_many_cells() -> None:
    assert len(changed(draw(), draw(window=(160, 120)))) > 10


def test_a_window_moved_by_few_pixels_is_seen_too() -> None:
    assert changed(draw(), draw(window=(103, 80)))


def test_compression_noise_is_no_change() -> None:
    image = draw()
    noisy = image.point(lambda value: min(255, value + 4))
    assert not changed(image, noisy)


def test_a_screen_of_another_size_has_changed_as_a_whole() -> None:
    cells = changed(Image.new("RGB", (640, 480)), Image.new("RGB", (480, 640)))
    assert cells == frozenset({(-1, -1)})


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (33, 31), (641, 479)])
def test_odd_sizes_are_compared_to_their_last_pixel(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, "black")
    other = image.copy()
    ImageDraw.Draw(other).rectangle((size[0] - 1, size[1] - 1, size[0], size[1]), fill="white")
    assert changed(image, other) == {((size[1] - 1) // CELL, (size[0] - 1) // CELL)}


def test_a_change_has_no_direction() -> None:
    one, other = draw(), draw(window=(160, 120), ticked=True)
    assert changed(one, other) == changed(other, one)
