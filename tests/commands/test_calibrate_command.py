"""`mai-agent calibrate`: where a model clicks is found out, mended, remembered, or refused with a picture."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from PIL import Image
from stubs.endpoint import refuse
from stubs.made_up_desktop import MadeUpDesktop
from stubs.pointing import Pointing, in_mai_ui

from agent.commands import doctor
from agent.core.geometry import Grid, Size
from agent.run.calibration.trial import marks
from agent.settings import load_settings
from foundation.images import smart_resize

MAI, QWEN = "MAI-UI-8B", "Qwen2.5-VL-7B-Instruct"
SCREEN = Size(1920, 1080)


@pytest.fixture(autouse=True)
def _own_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))


def thousand(_: Size) -> Grid:
    return Grid.relative(1000)


def processor(size: Size) -> Grid:
    """What a Qwen2.5-VL processor counts on that nobody configured."""
    return Grid.pixels(Size(*smart_resize(size.width, size.height, 28, 3136, 1003520)))


def shrinking(most: int) -> Callable[[Size], Grid]:
    """A server that makes larger images smaller, and keeps their proportions."""

    def counts(size: Size) -> Grid:
        shrink = min(1.0, math.sqrt(most / size.area))
        return Grid(int(size.width * shrink), int(size.height * shrink))

    return counts


def always_by(ratio: float) -> Callable[[Size], Grid]:
    """A server that makes every image smaller."""
    return lambda size: Grid(size.width / ratio, size.height / ratio)


def found(mai: CommandLine, endpoint: Pointing, *more: str) -> dict[str, Any]:
    ran = mai("calibrate", "--json", "--endpoint", endpoint.url, "--size", str(SCREEN), *more)
    told = json.loads(ran.out)
    assert ran.status == (0 if told["ok"] else 3)
    assert told["screen"] == [1920, 1080]
    return dict(told)


@pytest.mark.parametrize(
    ("model", "counts", "verdict", "grid", "questions"),
    [
        (MAI, thousand, "as said", [1000, 1000], 3),
        (MAI, lambda _: Grid.relative(999), "as said", [1000, 1000], 3),
        (MAI, lambda _: Grid.relative(1), "corrected", [1, 1], 5),
        (MAI, Grid.pixels, "corrected", [1920, 1088], 5),
        (MAI, lambda _: Grid.pixels(SCREEN), "corrected", [1920, 1080], 5),
        (MAI, lambda _: Grid(1000, 562.5, 0, 218.75), "corrected", [1000, 562.5], 5),
        (QWEN, Grid.pixels, "as said", [1904, 1064], 3),
        (QWEN, thousand, "corrected", [1000, 1000], 5),
        (QWEN, processor, "resized", [1316, 728], 6),
        (QWEN, shrinking(800_000), "resized", [1196, 668], 6),
        (QWEN, always_by(1.47), "corrected", [1295, 724], 6),
    ],
)  # fmt: skip
def test_the_space_is_found_out_and_what_it_takes_is_told(mai, model, counts, verdict, grid, questions) -> None:
    with Pointing(model, counts) as endpoint:
        told = found(mai, endpoint)
    assert told["verdict"] == verdict
    assert told["grid"][:2] == pytest.approx(grid, rel=0.003)
    assert len(endpoint.sizes) == questions
    for mark in told["marks"]:
        assert mark["off"] < 8


@pytest.mark.parametrize(("counts", "largest"), [(processor, 1_003_520), (shrinking(800_000), 800_000)])
def test_a_server_that_resizes_is_sent_what_it_leaves_as_it_is(mai, tmp_path, counts, largest) -> None:
    with Pointing(QWEN, counts) as endpoint:
        told = found(mai, endpoint)
        assert told["max_pixels"] <= largest
        last = endpoint.sizes[-1]
        assert counts(last) == Grid.pixels(last)
        screenshot = tmp_path / "screen.png"
        Image.new("RGB", (1920, 1080)).save(screenshot)
        asked = "act", "--json", "--grounding", "--endpoint", endpoint.url, "--image", str(screenshot)
        mark = marks()[1]
        decided = json.loads(mai(*asked, mark.question).out)["action"]["point"]
    assert endpoint.sizes[-1] == last
    assert decided == pytest.approx([mark.at[0] * 1920, mark.at[1] * 1080], abs=2)


def test_what_was_found_out_is_remembered_and_counts_where_the_model_is_asked(mai, tmp_path) -> None:
    screenshot = tmp_path / "screen.png"
    Image.new("RGB", (1920, 1080)).save(screenshot)
    mark = marks()[2]
    with Pointing(MAI, Grid.pixels) as endpoint:
        asked = "act", "--json", "--grounding", "--endpoint", endpoint.url, "--image", str(screenshot), mark.question
        before = json.loads(mai(*asked).out)["action"]["point"]
        found(mai, endpoint)
        after = json.loads(mai(*asked).out)["action"]["point"]
        other = mai("calibrate", "--forget", "--json", "--endpoint", endpoint.url, "--size", "800x600")
        forgotten = mai("calibrate", "--forget", "--endpoint", endpoint.url)  # on all screens: none needs to be there
        again = json.loads(mai(*asked).out)["action"]["point"]
        nothing = mai("calibrate", "--forget", "--json", "--endpoint", endpoint.url, "--size", "1920x1080")
    assert after == pytest.approx([mark.at[0] * 1920, mark.at[1] * 1080], abs=2)
    assert before == again != after
    assert forgotten.out.startswith("Forgotten: MAI-UI-8B")
    assert json.loads(nothing.out) == json.loads(other.out) == {"ok": True, "forgotten": False}


def test_without_a_size_it_is_for_this_screen(mai, monkeypatch) -> None:
    monkeypatch.setattr("agent.desktop.factory.open_desktop", MadeUpDesktop)
    with Pointing(MAI, thousand) as endpoint:
        told = json.loads(mai("calibrate", "--json", "--endpoint", endpoint.url).out)
    assert (told["screen"], told["verdict"]) == ([256, 256], "as said")


def test_the_doctor_tells_whether_it_is_known(mai, monkeypatch) -> None:
    with Pointing(MAI, Grid.pixels) as endpoint:
        monkeypatch.setenv("MAI_AGENT_ENDPOINT", endpoint.url)
        before = doctor._endpoint(endpoint.url, load_settings())
        found(mai, endpoint)
        after = doctor._endpoint(endpoint.url, load_settings())
    assert before.endswith("Where it clicks is not known yet (`mai-agent calibrate`)")
    assert "On 1920x1080: MAI-UI-8B counts on pixels of the image as sent" in after


def test_what_others_wrote_into_the_memory_counts_as_unknown(mai, tmp_path) -> None:
    with Pointing(MAI, Grid.pixels) as endpoint:
        found(mai, endpoint)
        file = tmp_path / "state" / "calibration.json"
        document = json.loads(file.read_text())
        [(key, entry)] = document["found"].items()
        for broken in ("x", {**entry, "grid": [0, 1, 2, 3]}, {**entry, "grid": "1"}, {**entry, "max_pixels": -1}):
            file.write_text(json.dumps({"found": {key: broken}}))
            screen = "On 1920x1080" in doctor._endpoint(endpoint.url, load_settings())
            assert not screen


def constant(_: Any, __: str) -> str:
    return in_mai_ui(500, 500)


def swapped(mark: Any, _: str) -> str:
    return in_mai_ui(mark.at[1] * 1000, mark.at[0] * 1000)


def scattered(mark: Any, _: str) -> str:
    return in_mai_ui(*{"red": (900, 900), "green": (3, 500)}.get(mark.colour, (310, 40)))


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (swapped, "far from the marks"),
        (constant, "far from the marks"),
        (lambda _, __: "I see no such thing.", "5 of 5 marks it gave no point"),
        (lambda mark, written: "It is not there." if mark.shape == "circle" else written, "2 of 5 marks"),
        (scattered, "far from the marks"),
    ],
)  # fmt: skip
def test_a_model_that_fails_is_refused_with_the_picture_of_where_it_clicked(mai, tmp_path, answers, why) -> None:
    picture = tmp_path / "clicks.png"
    with Pointing(MAI, thousand, answers) as endpoint:
        ran = mai("calibrate", "--endpoint", endpoint.url, "--size", "1366x768", "--picture", str(picture))
        again = mai("calibrate", "--endpoint", endpoint.url, "--size", "1366x768")
    assert ran.status == again.status == 3
    assert why in ran.err and str(picture) in ran.err
    assert len(ran.out.splitlines()) == 5
    [kept] = re.findall(r"mark: (\S+\.png)", again.err)
    assert Image.open(picture).size == Image.open(kept).size == (1366, 768)


def test_one_mark_that_is_missed_does_not_count_against_a_model(mai) -> None:
    def misses(mark: Any, written: str) -> str:
        return in_mai_ui(20, 980) if mark.colour == "green" else written

    with Pointing(MAI, thousand, misses) as endpoint:
        told = found(mai, endpoint)
    assert told["verdict"] == "as said"
    assert [mark["off"] < 8 for mark in told["marks"]].count(False) == 1


def test_a_grid_model_behind_a_server_that_resizes_clicks_right_and_its_loss_is_told(mai) -> None:
    with Pointing(MAI, thousand, counted=700) as endpoint:
        told = found(mai, endpoint)
    assert told["verdict"] == "as said"
    assert "counts 700 tokens for a screenshot that has 2040" in told["words"]


def test_the_picture_is_written_where_all_is_well_too(mai, tmp_path) -> None:
    picture = tmp_path / "new" / "clicks.png"
    with Pointing(
        "UI-TARS-1.5-7B", Grid.pixels, lambda _, written: f"Action: click(start_box='{written}')"
    ) as endpoint:
        ran = mai("calibrate", "--endpoint", endpoint.url, "--size", "1024x768", "--picture", str(picture))
    assert ran.status == 0
    assert ran.out.splitlines()[-1].startswith("UI-TARS-1.5-7B clicks where it should: 3 of 3 marks")
    assert Image.open(picture).size == (1024, 768)


def test_a_context_that_only_shows_in_a_refusal_leaves_less_room_for_the_answer(mai) -> None:
    with Pointing(MAI, thousand) as endpoint:
        endpoint.checks.context = 4096
        told = found(mai, endpoint)
    assert told["verdict"] == "as said"
    assert len(endpoint.checks.refusals) == 3


def test_an_endpoint_that_cannot_be_asked_is_explained(mai) -> None:
    with Pointing(MAI, thousand) as endpoint:
        endpoint._script = lambda _: refuse(400, "this model takes no images")
        ran = mai("calibrate", "--endpoint", endpoint.url, "--size", "800x600")
    assert ran.status != 0
    assert "Traceback" not in ran.err and ran.err.count("\n") == 2


@pytest.mark.parametrize("family", ["planner"])
def test_a_family_that_cannot_be_asked_for_a_point_is_refused(mai, family) -> None:
    with Pointing(MAI, thousand) as endpoint:
        ran = mai("calibrate", "--endpoint", endpoint.url, "--size", "800x600", "--family", family)
    assert ran.status == 2
    assert not endpoint.sizes


def test_the_literal_engine_has_nothing_to_calibrate(mai) -> None:
    ran = mai("calibrate", "--engine", "literal", "--size", "800x600")
    assert ran.status == 3
    assert "no model" in ran.err
