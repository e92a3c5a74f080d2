"""Points as models write them are read on their grid, or refused; they are never guessed."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.geometry import Grid
from agent.families.shared.points import PointError, read_pair, read_point

GRID = Grid.relative(999)
PROPERTY = settings(deadline=None, max_examples=300)


@pytest.mark.parametrize(
    ("written", "pair"),
    [
        ([500, 300], (500, 300)),
        ([0, 0], (0, 0)),
        ([500.5, 300.25], (500.5, 300.25)),
        ([100, 200, 300, 400], (200, 300)),
        ([[500, 300]], (500, 300)),
        ([[100, 200], [300, 400]], (200, 300)),
        ([[100, 200, 300, 400]], (200, 300)),
        ({"x": 0, "y": 7}, (0, 7)),
        ({"x1": 0, "y1": 2, "x2": 4, "y2": 6}, (2, 4)),
        ("500, 300", (500, 300)),
        ("[500,300]", (500, 300)),
        ("(500 300)", (500, 300)),
        ("x=500, y=300", (500, 300)),
        ('{"x": 500, "y": 300}', (500, 300)),
        ("<point>510 150</point>", (510, 150)),
        ("<|box_start|>(197,525)<|box_end|>", (197, 525)),
        ("<bbox>637 964 637 964</bbox>", (637, 964)),
        ("（５００，３００）", (500, 300)),
        (["500", " 300 "], (500, 300)),
        (["５００", 300], (500, 300)),
    ],
)
def test_a_point_in_any_known_spelling_is_read(written: Any, pair: tuple[float, float]) -> None:
    assert read_pair(written) == pair
    point = read_point(written, GRID)
    assert (point.x, point.y, point.grid) == (*pair, GRID)


@pytest.mark.parametrize(
    "written",
    [
        *(
            None,
            True,
            5,
            5.5,
            "",
            "here",
            [],
            [5],
            [1, 2, 3],
            [1, 2, 3, 4, 5],
            list(range(100)),
            {},
            {"x": 1},
            {"y": 1},
        ),
        *([None, 1], [True, False], ["a", "b"], [[1], 2], [[1, 2], 3], [{"x": 1}, 2], {"x": [1], "y": 2}),
        *([math.inf, 1], [math.nan, 1], [1e300, 1], [10**400, 1], [-(10**400), 1], [1e10, 1]),
        *("1e400, 5", "1e2 5", "12345678901, 5", "1.5.3, 5", "0x10, 5", "5²,3", "٥٠٠, ٣٠٠", "½, 5", "1_0, 5", "NaN 5"),
        *("5, 3 pixels", "500x300", "5" + " " * 300 + "300", ["5" + " " * 50 + "123", 5], ["5e1", 5], "start_box='='"),
    ],
)
def test_what_is_no_point_is_refused(written: Any) -> None:
    with pytest.raises(PointError):
        read_pair(written)
    with pytest.raises(PointError):
        read_point(written, GRID)


@pytest.mark.parametrize("written", [[0.5, 0.2], [0.0, 0.5], [1.0, 0.5], [0.1, 0.1, 0.9, 0.9], "0.5, 0.5", [1, 0.999]])
def test_fractions_of_the_screen_are_refused_and_not_taken_for_its_corner(written: Any) -> None:
    with pytest.raises(PointError) as refused:
        read_point(written, GRID)
    assert refused.value.fraction
    read_pair(written)  # as plain numbers they are what they are


@pytest.mark.parametrize("written", [[0, 0], [1, 1], [0, 1], [0.0, 0.0], [0, 0, 1, 1], [1.5, 0.5], [2, 0.5]])
def test_small_coordinates_are_no_fractions(written: Any) -> None:
    assert read_point(written, GRID).overshoot() == 0


def test_a_point_may_overshoot_by_a_hundredth_and_no_more() -> None:
    assert read_point([1000, -5], GRID).x == 1000
    assert read_point([1008, 1008], GRID).y == 1008
    for far in ([1010, 5], [5, -11], [1920, 1080], [5000, 5], [-50, 5]):
        with pytest.raises(PointError) as refused:
            read_point(far, GRID)
        assert refused.value.kind == "off_screen"


@PROPERTY
@given(st.lists(st.integers(0, 999), min_size=2, max_size=2))
def test_every_spelling_of_a_pair_is_the_same_point(pair: list[int]) -> None:
    x, y = pair
    for written in ({"x": x, "y": y}, f"{x},{y}", f"[{x}, {y}]", [str(x), float(y)], [pair], [x, y, x, y]):
        assert read_point(written, GRID) == read_point(pair, GRID)


@PROPERTY
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["x", "y", "x1", "z"]), inner),
        max_leaves=8,
    )
)
def test_any_value_is_a_point_on_the_grid_or_refused(written: Any) -> None:
    try:
        point = read_point(written, GRID)
    except PointError:
        return
    assert point.overshoot() <= 0.01
