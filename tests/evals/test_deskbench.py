"""DeskBench, made on real throw-away desktops: the same seed makes the same, and what is in a box reacts to a click."""

import os
from pathlib import Path

import pytest
from PIL import Image

from agent.core.actions import Click
from agent.core.geometry import DesktopPoint, Region, Size
from agent.evals.making import BenchmarkOptions, Stage, make
from agent.evals.samples import read_benchmark
from agent.sandbox.desktop import Sandbox
from foundation.errors import UsageError

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(400)]
WISHES = BenchmarkOptions(10, 1, (Size(1024, 768),), ("light", "dark"), ("de_DE",))


@pytest.fixture(autouse=True)
def own_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox becomes this process's display."""
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


def test_the_same_seed_makes_the_same_set_and_it_is_read_as_a_benchmark(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert make(tmp_path / name, WISHES, lambda _: None) == 10
    one, two = ((tmp_path / name / "DeskBench.json").read_text(encoding="utf-8") for name in ("one", "two"))
    assert one == two
    samples = read_benchmark("deskbench", tmp_path / "one").samples
    assert [sample.shape for sample in samples].count("refusal") == 1
    assert {sample.groups["language"] for sample in samples} == {"de"}
    assert {sample.groups["theme"] for sample in samples} == {"light", "dark"}
    assert len({sample.groups["asks"] for sample in samples}) >= 3
    for sample in samples:
        assert sample.instruction.startswith("Klicke auf ")
        with Image.open(sample.image) as image:
            assert image.size == (1024, 768)


def test_a_click_anywhere_in_a_box_reaches_what_is_asked_for(sandbox: Sandbox) -> None:
    with Stage(sandbox) as stage:
        window = stage.open(["xfwm4-tweaks-settings"])
        stage.place(window, Region(100, 100, 900, 600))
        _, outline = stage.look()
        boxes = [one.element for one in stage.targets(outline) if one.role == "check"]
        assert len(boxes) >= 5
        for number, box in enumerate(boxes):
            corner = (0.03, 0.97)[number % 2]
            point = DesktopPoint(box.box.left + corner * box.box.width, box.box.top + corner * box.box.height)
            stage.desktop.hand.perform(Click(point))
        _, after = stage.look()
        now = {one.box: "checked" in one.states for one in after.elements if one.role == "check box"}
        assert [now[one.box] for one in boxes] == ["checked" not in one.states for one in boxes]


def test_what_cannot_be_made_is_said_before_a_desktop_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no words for instructions in fi_FI"):
        make(tmp_path / "new", BenchmarkOptions(1, 1, (Size(1024, 768),), ("light",), ("fi_FI",)), lambda _: None)
    (tmp_path / "old" / "images").mkdir(parents=True)
    with pytest.raises(UsageError, match="old holds pictures already"):
        make(tmp_path / "old", WISHES, lambda _: None)
