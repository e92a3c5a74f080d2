"""From what a model writes for marks at known places to the space in which it counts."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.geometry import Grid, GridPoint, Size, Viewport
from agent.run.calibration.fit import Sighting, Sizes, best_fit
from agent.run.calibration.trial import draw, marks, side_of
from foundation.images import ImageRule

RULE = ImageRule(28, 3136, 12845056)
SCREENS = [Size(1366, 768), Size(1920, 1080), Size(2880, 1800), Size(3840, 2160), Size(1080, 1920), Size(800, 600)]


def sizes_of(captured: Size, max_pixels: int = 2_097_152) -> Sizes:
    sent = Size(*RULE.capped(max_pixels).fit(captured.width, captured.height))
    return Sizes(captured, sent, side_of(captured))


def answers(grid: Grid, sizes: Sizes, noise: list[tuple[float, float]]) -> list[Sighting]:
    """What a model writes that counts on the grid, off by these shares of a mark's side."""
    seen = []
    for mark, (right, down) in zip(marks(), noise, strict=True):
        x = mark.at[0] + right * sizes.side / sizes.captured.width
        y = mark.at[1] + down * sizes.side / sizes.captured.height
        seen.append(Sighting(mark.at, (x * grid.width + grid.left, y * grid.height + grid.top)))
    return seen


def grids(sizes: Sizes) -> dict[str, Grid]:
    """The spaces that are about."""
    small = Size(*ImageRule(28, 3136, 1003520).fit(sizes.sent.width, sizes.sent.height))
    return {
        "thousand": Grid.relative(1000),
        "fractions": Grid.relative(1),
        "sent": Grid.pixels(sizes.sent),
        "captured": Grid.pixels(sizes.captured),
        "processor": Grid.pixels(small),
        "shrunk": Grid(sizes.sent.width / 1.3, sizes.sent.height / 1.3),
    }


noise = st.floats(-0.15, 0.15)


@given(
    st.sampled_from(SCREENS),
    st.sampled_from(["thousand", "fractions", "sent", "captured", "processor", "shrunk"]),
    st.sampled_from(["thousand", "fractions", "sent"]),
    st.lists(st.tuples(noise, noise), min_size=5, max_size=5),
    st.none() | st.integers(0, 4),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_every_space_is_found_out_so_well_that_each_mark_is_hit(captured, truth, own, off, missed, elsewhere):
    sizes = sizes_of(captured)
    true = grids(sizes)[truth]
    seen = answers(true, sizes, off)
    if missed is not None:
        seen[missed] = replace(seen[missed], written=(elsewhere[0] * true.width, elsewhere[1] * true.height))
    found = best_fit(seen, grids(sizes)[own], sizes)
    assert found is not None
    viewport = Viewport.of_image(captured)
    for mark in marks():
        exact = GridPoint(mark.at[0] * true.width, mark.at[1] * true.height, true)
        at, wanted = viewport.to_capture(replace(exact, grid=found.space.grid)), mark.on(captured)
        assert max(abs(at.x - wanted.x), abs(at.y - wanted.y)) <= 0.5 * sizes.side
    if truth == own:
        assert found.space.kind == "own"


@pytest.mark.parametrize("screen", [Size(1920, 1080), Size(2880, 1800), Size(1080, 1920)], ids=str)
@pytest.mark.parametrize(
    ("truth", "kind"), [("thousand", "known"), ("fractions", "known"), ("processor", "resized"), ("shrunk", "scaled")]
)
def test_another_space_is_told_by_its_name(screen, truth, kind):
    sizes = sizes_of(screen)
    grid = grids(sizes)[truth]
    found = best_fit(answers(grid, sizes, [(0.0, 0.0)] * 5), Grid.pixels(sizes.sent), sizes)
    assert found is not None and all(found.explained)
    assert found.space.kind == kind
    assert (found.space.grid.width, found.space.grid.height) == pytest.approx((grid.width, grid.height))


def test_a_grid_of_another_divisor_is_measured_and_told_as_one():
    sizes = sizes_of(Size(1920, 1080))
    found = best_fit(answers(Grid.relative(768), sizes, [(0.02, -0.02)] * 5), Grid.relative(1000), sizes)
    assert found is not None and found.space.kind == "scaled"
    assert found.space.words.startswith("0 to about 7")
    assert (found.space.grid.width, found.space.grid.height) == pytest.approx((768, 768), rel=0.01)


def test_a_frame_around_the_image_is_an_offset():
    sizes = sizes_of(Size(1920, 1080))
    framed = Grid(1000, 562.5, 0, 218.75)  # the image in the middle of a square
    found = best_fit(answers(framed, sizes, [(0.05, -0.05)] * 5), Grid.relative(1000), sizes)
    assert found is not None and found.space.kind == "shifted"
    for measured, true in zip(
        (found.space.grid.width, found.space.grid.height, found.space.grid.left, found.space.grid.top),
        (1000, 562.5, 0, 218.75),
        strict=True,
    ):
        assert measured == pytest.approx(true, abs=6)


@given(
    st.sampled_from(SCREENS),
    st.sampled_from(["thousand", "fractions", "sent", "processor"]),
    st.lists(st.tuples(noise, noise), min_size=5, max_size=5),
)
def test_axes_that_change_places_fit_nothing(captured, truth, off):
    sizes = sizes_of(captured)
    straight = answers(grids(sizes)[truth], sizes, off)
    turned = [replace(one, written=(one.written[1], one.written[0])) for one in straight if one.written]
    assert best_fit(turned, grids(sizes)["thousand"], sizes) is None


@given(st.sampled_from(SCREENS), st.tuples(st.floats(0, 2000), st.floats(0, 2000)))
def test_the_same_point_for_every_mark_fits_nothing(captured, point):
    sizes = sizes_of(captured)
    seen = [Sighting(mark.at, point) for mark in marks()]
    assert best_fit(seen, Grid.relative(1000), sizes) is None


def test_points_anywhere_fit_nothing():
    sizes, chance = sizes_of(Size(1920, 1080)), Random(1)
    for _ in range(1000):
        seen = [Sighting(mark.at, (chance.uniform(0, 1000), chance.uniform(0, 1000))) for mark in marks()]
        assert best_fit(seen, Grid.relative(1000), sizes) is None


def test_two_marks_without_a_point_are_too_many():
    sizes = sizes_of(Size(1920, 1080))
    seen = answers(Grid.relative(1000), sizes, [(0.0, 0.0)] * 5)
    lacking = [replace(one, written=None) if index < 2 else one for index, one in enumerate(seen)]
    assert best_fit(lacking, Grid.relative(1000), sizes) is None
    assert best_fit([replace(seen[0], written=None), *seen[1:]], Grid.relative(1000), sizes) is not None


@pytest.mark.parametrize("size", [*SCREENS, Size(640, 480), Size(333, 555)], ids=str)
def test_every_mark_is_drawn_where_it_is_said_to_be(size):
    picture = draw(size)
    for mark in marks():
        at, far = mark.on(size), side_of(size)
        assert picture.getpixel((round(at.x), round(at.y))) == mark.rgb
        assert far < at.x < size.width - far and far < at.y < size.height - far
        for x, y in ((at.x - far, at.y), (at.x + far, at.y), (at.x, at.y - far), (at.x, at.y + far)):
            assert picture.getpixel((round(x), round(y))) == picture.getpixel((0, 0))
