"""Answers are judged by published rules, and shares and differences by known statistics."""

from pathlib import Path
from typing import Any

import pytest

from agent.core.geometry import Size
from agent.evals.judging import in_polygon, judge
from agent.evals.samples import Sample
from agent.evals.statistics import paired, wilson

SIZE = Size(200, 100)
#: left 20, top 10, right 60, bottom 30 of 200x100: 100 to 300 of the thousand on both axes
BOX: tuple[float, ...] = (20, 10, 60, 30)


def line(content: str, family: str = "mai-ui", **more: Any) -> dict[str, Any]:
    answer = {"content": content, "finish_reason": "stop"}
    return {"family": family, "sent": [200, 100], "screen": [200, 100], "answer": answer, **more}


def point(x: float, y: float) -> str:
    return f'<answer>{{"coordinate":[{x},{y}]}}</answer>'


def sample(shape: Any = "box", target: tuple[float, ...] = BOX) -> Sample:
    return Sample("a", Path("a.png"), "the gear", shape, target, SIZE, {})


@pytest.mark.parametrize(
    ("x", "y", "wrong"),
    [
        (200, 200, set()),  # in the middle
        (300, 300, {"half-open", "/999"}),  # on the far corner
        (100, 100, set()),  # on the near corner
        (304, 200, {"official", "/999", "/1000", "half-open", "box on the 1000 grid", "round() pixels"}),  # 60.8 px
        (302, 200, {"official", "/999", "/1000", "half-open", "box on the 1000 grid"}),  # 60.4 px
        (98, 200, {"official", "/999", "/1000", "half-open", "box on the 1000 grid", "int() pixels"}),  # 19.6 px
    ],
)
def test_published_rules_differ_at_the_edges(x: int, y: int, wrong: set[str]) -> None:
    rules = judge(line(point(x, y)), sample()).rules
    grouped = {"MAI-UI's polygons", "unreadable is a refusal"}  # the same as the official rule for boxes
    assert {name for name, right in rules.items() if not right} - grouped == wrong
    assert {rules[name] for name in grouped} == {rules["official"]}


@pytest.mark.parametrize(
    ("content", "said", "on_absent", "gui_owl"),
    [
        (point(200, 200), "point", False, False),
        (point(-1, -1), "refused", True, True),
        ("I see no such thing.", "unreadable", False, True),
        ("", "unreadable", False, True),
    ],
)
def test_refusals_are_told_from_points_and_from_answers_that_cannot_be_read(
    content: str, said: str, on_absent: bool, gui_owl: bool
) -> None:
    verdict = judge(line(content), sample("refusal", ()))
    assert (verdict.said, verdict.right) == (said, on_absent)
    assert verdict.rules["unreadable is a refusal"] is gui_owl
    assert judge(line(content), sample()).right is (said == "point")


def test_a_family_that_has_a_word_for_absent_targets_refuses_with_it() -> None:
    assert judge(line("[]", "infigui"), sample("refusal", ())).said == "refused"


def test_polygons_are_tested_by_the_even_odd_rule_and_mai_uis_copy_beside_it() -> None:
    triangle = (20.0, 10.0, 60.0, 10.0, 60.0, 30.0)
    assert judge(line(point(280, 150)), sample("polygon", triangle)).right
    low_left = judge(line(point(120, 290)), sample("polygon", triangle))
    assert not low_left.right
    assert low_left.rules["MAI-UI's polygons"] is False
    # x, y, width, height of the first two corners: 20 to 80, 10 to 20
    assert judge(line(point(390, 190)), sample("polygon", triangle)).rules["MAI-UI's polygons"] is True
    notched = (0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 5.0, 5.0, 0.0, 10.0)
    assert [in_polygon(x, y, notched) for x, y in ((5, 2), (5, 8), (1, 8), (11, 5))] == [True, False, True, False]


def test_a_measured_grid_is_kept_with_the_answer() -> None:
    assert not judge(line(point(50, 25)), sample()).right
    verdict = judge(line(point(50, 25), grid=[200, 100, 0, 0]), sample())
    assert verdict.right
    assert verdict.point == (50, 25)
    assert "/1000" not in verdict.rules


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [  # worked out by hand from Wilson's formula with z = 1.959964
        (0, 0, 0, 1),
        (0, 10, 0, 0.2775),
        (10, 10, 0.7225, 1),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (1060, 1581, 0.6469, 0.6932),
    ],
)
def test_intervals_are_wilsons(right: int, count: int, low: float, high: float) -> None:
    assert wilson(right, count) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("here", "there", "p"),
    [
        (0, 0, 1.0),
        (1, 1, 1.0),
        (5, 0, 2 / 32),
        (8, 2, 2 * (1 + 10 + 45) / 1024),
        (2000, 1000, 0.0),  # beyond what floats of the binomial's terms could hold
    ],
)
def test_differences_are_tested_by_mcnemars_exact_test(here: int, there: int, p: float) -> None:
    mine = {str(number): number < here for number in range(here + there + 3)}
    base = {str(number): here <= number < here + there for number in range(here + there + 2)} | {"gone": True}
    found = paired(mine, base)
    assert [found[name] for name in ("both", "only_here", "only_baseline", "neither")] == [0, here, there, 2]
    assert found["p"] == pytest.approx(p, abs=1e-12)


def test_a_closer_look_is_in_pixels_of_the_picture_whatever_size_the_benchmark_states() -> None:
    """The picture has 400x200 pixels, and its benchmark says 200x100: the crop's middle is the target's."""
    looked = {"crop": [40, 20, 80, 40], **line(point(500, 500), sent=[80, 40])}
    verdict = judge(line(point(900, 900), screen=[400, 200], zoom=looked), sample())
    assert (verdict.right, verdict.rules["zoom"]) == (False, True)
    assert verdict.closer == pytest.approx((40, 20), abs=0.1), "in the pixels of the benchmark's boxes"
