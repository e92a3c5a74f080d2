"""Benchmarks are read in the layouts of their publishers, and what is wrong with a folder is said."""

from pathlib import Path

import pytest
from stubs.benchmarks import MADE_UP, osworld_rows, written

from agent.evals.samples import benchmark_names, read_benchmark
from foundation.errors import EnvironmentLacksError, UsageError


def test_every_benchmark_of_the_table_is_tried_here() -> None:
    assert benchmark_names() == list(MADE_UP)


@pytest.mark.parametrize("name", MADE_UP)
def test_a_benchmark_is_read_in_its_own_layout(name: str, tmp_path: Path) -> None:
    made = MADE_UP[name]
    made.make(tmp_path)
    samples = read_benchmark(name, tmp_path).samples
    assert [sample.id for sample in samples] == made.ids
    assert samples[0].groups == made.groups
    assert samples[0].target == pytest.approx((20, 10, 60, 30))
    assert all(sample.image.is_file() for sample in samples)


def test_targets_may_be_polygons_or_not_there(tmp_path: Path) -> None:
    MADE_UP["osworld-g"].make(tmp_path)
    samples = read_benchmark("osworld-g", tmp_path).samples
    assert [(sample.shape, sample.target) for sample in samples[1:]] == [
        ("polygon", (20, 10, 60, 10, 60, 30)), ("refusal", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"box_coordinates": [1, 2, 3]}, "not enough values"),
        ({"box_coordinates": [20, 10, -5, 20]}, "turned around"),
        ({"box_coordinates": [1, 2, float("nan"), 4]}, "must be finite"),
        ({"box_coordinates": [0.1, 0.2, 0.5, 0.25]}, "is in fractions"),
        ({"box_type": "polygon"}, "at least 6, not 4"),
        ({"box_type": "circle"}, "has no 'circle'"),
        ({"image_path": "../../secret.png"}, "is not below"),
        ({"image_path": "/etc/secret.png"}, "is not below"),
        ({"instruction": 7}, "7 is not text"),
        ({"id": "A-1"}, "Two samples"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path: Path, changed: dict[str, object], complaint: str) -> None:
    first, *rest = osworld_rows()
    written(tmp_path / "OSWorld-G.json", [first | changed, *rest])
    with pytest.raises(UsageError, match=complaint):
        read_benchmark("osworld-g", tmp_path)


def test_a_row_without_a_key_and_files_that_are_no_samples_are_named(tmp_path: Path) -> None:
    path = tmp_path / "OSWorld-G.json"
    with pytest.raises(EnvironmentLacksError, match=r"there is no OSWorld-G\.json"):
        read_benchmark("osworld-g", tmp_path)
    for content, complaint in (('[{"id": 1}]', "has no 'image_size'"), ("{}", "not a list"), ("[", "cannot be read")):
        path.write_text(content)
        with pytest.raises(UsageError, match=complaint):
            read_benchmark("osworld-g", tmp_path)
