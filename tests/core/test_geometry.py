"""Points keep their space, and come out where the model meant them on any monitor."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent.core.geometry import CapturePoint, DesktopPoint, Grid, GridPoint, Region, Size, Viewport

NAVIGATION, GROUNDING = Grid.relative(999), Grid.relative(1000)
PROPERTY = settings(deadline=None, max_examples=300)

sides = st.integers(4, 8000)
offsets = st.integers(-12_000, 12_000)
regions = st.builds(Region, offsets, offsets, sides, sides)
sizes = st.builds(Size, sides, sides)
viewports = st.builds(Viewport, regions, sizes)
grids = st.sampled_from([NAVIGATION, GROUNDING]) | st.builds(Grid.pixels, sizes)
shares = st.floats(0, 1)


@PROPERTY
@given(viewports, shares, shares)
def test_a_capture_point_survives_the_way_to_the_desktop_and_back(viewport: Viewport, x: float, y: float) -> None:
    region, captured = viewport.region, viewport.captured
    inner_x, inner_y = 1 + x * (region.width - 3), 1 + y * (region.height - 3)
    point = CapturePoint(inner_x * captured.width / region.width, inner_y * captured.height / region.height)
    back = viewport.desktop_to_capture(viewport.capture_to_desktop(point))
    assert math.isclose(back.x, point.x, rel_tol=1e-6, abs_tol=1e-6)
    assert math.isclose(back.y, point.y, rel_tol=1e-6, abs_tol=1e-6)


@PROPERTY
@given(viewports, grids, shares, shares)
def test_a_grid_point_lies_at_its_share_of_the_monitor(viewport: Viewport, grid: Grid, x: float, y: float) -> None:
    region = viewport.region
    want_x, want_y = region.left + x * region.width, region.top + y * region.height
    assume(region.left + 1 <= want_x <= region.left + region.width - 2)
    assume(region.top + 1 <= want_y <= region.top + region.height - 2)
    got = viewport.to_desktop(GridPoint(x * grid.width, y * grid.height, grid))
    assert abs(got.x - want_x) < 1e-6
    assert abs(got.y - want_y) < 1e-6


wild = st.floats(allow_nan=False, allow_infinity=False)


@PROPERTY
@given(viewports, grids, wild, wild)
def test_any_point_lands_one_pixel_inside_the_monitor(viewport: Viewport, grid: Grid, x: float, y: float) -> None:
    region = viewport.region
    got = viewport.to_desktop(GridPoint(x, y, grid))
    column, row = got.rounded()
    assert region.contains(got)
    assert region.left + 1 <= column <= region.left + region.width - 2
    assert region.top + 1 <= row <= region.top + region.height - 2


@PROPERTY
@given(offsets, st.integers(1, 3), st.integers(1, 3), wild)
def test_a_monitor_too_small_for_a_margin_is_still_hit(offset: int, width: int, height: int, x: float) -> None:
    viewport = Viewport(Region(offset, -offset, width, height), Size(width, height))
    got = viewport.to_desktop(GridPoint(x, x, NAVIGATION))
    assert viewport.region.contains(got)
    assert viewport.region.contains(DesktopPoint(*got.rounded()))


@PROPERTY
@given(viewports, grids, shares, shares, shares)
def test_a_point_further_right_never_lands_further_left(
    viewport: Viewport, grid: Grid, one: float, other: float, y: float
) -> None:
    left, right = sorted((one, other))
    points = [viewport.to_desktop(GridPoint(x * grid.width, y * grid.height, grid)) for x in (left, right)]
    assert points[0].x <= points[1].x


@pytest.mark.parametrize(
    ("grid", "value", "x", "y"),
    [
        (NAVIGATION, 0, 1, 1),  # clamped
        (NAVIGATION, 1, 1.9219219, 1.0810811),
        (NAVIGATION, 500, 960.96096, 540.54054),
        (NAVIGATION, 998, 1918, 1078),  # 1918.08 and 1078.92, clamped
        (NAVIGATION, 999, 1918, 1078),
        (NAVIGATION, 1000, 1918, 1078),
        (GROUNDING, 0, 1, 1),
        (GROUNDING, 500, 960, 540),
        (GROUNDING, 998, 1916.16, 1077.84),
        (GROUNDING, 999, 1918, 1078),
        (GROUNDING, 1000, 1918, 1078),
    ],
)
def test_the_edges_of_both_grids_land_inside_a_full_hd_screen(grid: Grid, value: float, x: float, y: float) -> None:
    got = Viewport.of_image(Size(1920, 1080)).to_desktop(GridPoint(value, value, grid))
    assert got.x == pytest.approx(x)
    assert got.y == pytest.approx(y)


def test_zero_is_a_coordinate_and_not_a_missing_value() -> None:
    point = GridPoint(0, 0, NAVIGATION)
    assert point.overshoot() == 0
    assert Viewport.of_image(Size(1920, 1080)).to_capture(point) == CapturePoint(0, 0)
    left = Viewport(Region(-1920, 0, 1920, 1080), Size(1920, 1080))
    assert left.capture_to_desktop(CapturePoint(1920 - 10, 500)) == DesktopPoint(-10, 500)
    assert left.desktop_to_capture(DesktopPoint(-1920, 0)) == CapturePoint(0, 0)


@pytest.mark.parametrize(
    ("viewport", "scale", "point", "x", "y"),
    [
        (Viewport(Region(1280, -720, 1280, 720), Size(2560, 1440)), (2, 2), GridPoint(500, 500, GROUNDING), 1920, -360),
        (Viewport(Region(0, 0, 1536, 864), Size(1920, 864)), (1.25, 1), GridPoint(250, 250, GROUNDING), 384, 216),
        (Viewport.of_image(Size(1920, 1080)), (1, 1), GridPoint(966, 273, Grid.pixels(Size(1932, 1092))), 960, 270),
    ],
)  # fmt: skip
def test_each_axis_has_a_factor_of_its_own(
    viewport: Viewport, scale: tuple[float, float], point: GridPoint, x: float, y: float
) -> None:
    assert viewport.scale == scale
    got = viewport.to_desktop(point)
    assert (got.x, got.y) == (pytest.approx(x), pytest.approx(y))


def test_rounding_takes_the_pixel_that_the_point_lies_in_also_left_of_the_origin() -> None:
    assert DesktopPoint(10.9, 0.0).rounded() == (10, 0)
    assert DesktopPoint(-0.5, -1.0).rounded() == (-1, -1)


def test_a_region_holds_its_first_pixel_and_not_the_one_behind_its_last() -> None:
    region = Region(-1920, 100, 1920, 1080)
    assert region.size == Size(1920, 1080)
    assert region.contains(DesktopPoint(-1920, 100))
    assert region.contains(DesktopPoint(-0.001, 1179.999))
    assert not region.contains(DesktopPoint(0, 500))
    assert not region.contains(DesktopPoint(-5, 1180))


@pytest.mark.parametrize(("x", "y", "share"), [(0, 0, 0), (999, 999, 0), (1998, 0, 1), (-99.9, 0, 0.1), (0, 1998, 1)])
def test_overshoot_is_the_share_by_which_a_point_is_outside(x: float, y: float, share: float) -> None:
    assert GridPoint(x, y, NAVIGATION).overshoot() == pytest.approx(share)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_not_finite_cannot_exist(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        GridPoint(value, 1, NAVIGATION)
    with pytest.raises(ValueError, match="finite"):
        GridPoint(1, value, NAVIGATION)


@PROPERTY
@given(sizes)
def test_a_written_size_is_read_back(size: Size) -> None:
    assert Size.parse(str(size)) == size
    assert Size.parse(str(size).upper()) == size
    assert size.area == size.width * size.height


@pytest.mark.parametrize(
    "text",
    ["", "x", "1920", "1920x", "x1080", "1920x1080x3", "-1x5", "0x5", "5x0", "1.5x2", "１９x1", "9999999x1", "a x b"],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        Size.parse(text)
