"""The report of an evaluation: every miss with its picture, the target and the point, whatever a model wrote."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine
from stubs.benchmarks import MADE_UP, osworld_rows, written
from stubs.endpoint import FakeEndpoint, say

HOSTILE = "</script><script>alert(1)</script>\u202e<!--"
OUTSIDE = '<answer>{"coordinate":[900,900]}</answer>'


@pytest.fixture
def page(mai: CommandLine, tmp_path: Path) -> str:
    """A box that is hit, a polygon that is missed, and an absent target for which a place is named."""
    MADE_UP["osworld-g"].make(tmp_path / "data")
    samples = osworld_rows()
    samples[1]["instruction"] = HOSTILE
    written(tmp_path / "data" / "OSWorld-G.json", samples)
    answers = [OUTSIDE.replace("900", "200"), OUTSIDE + HOSTILE, OUTSIDE]
    with FakeEndpoint([say(answer) for answer in answers]) as endpoint:
        data, out, log = (str(tmp_path / name) for name in ("data", "out", "log.json"))
        command = ("eval", "grounding", "osworld-g", data, "--out", out, "--inspect-log", log, "--at-once", "1")
        ran = mai(*command, "--endpoint", endpoint.url)
    assert ran.status == 0, ran.err
    return (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    told: dict[str, Any] = json.loads(block)
    return told


def test_each_miss_has_its_picture_its_point_and_its_target(page: str) -> None:
    data = data_of(page)
    polygon, absent = data["steps"]
    assert [one["size"] for one in data["pictures"]] == [[200, 100]]
    assert polygon["picture"] == absent["picture"] == 0
    assert polygon["marks"] == {"kind": "point", "points": [[0.9, 0.9]]}
    assert polygon["wanted"] == {"kind": "polygon", "points": [[0.1, 0.1], [0.3, 0.1], [0.3, 0.3]]}
    assert (polygon["state"], absent["state"], absent["wanted"]) == ("elsewhere", "not there", None)
    assert dict(absent["facts"]) | {"id": "A-2", "answer": "point", "target": "not there"} == dict(absent["facts"])


def test_published_figures_stand_beside_ours(page: str) -> None:
    told = re.sub(r"<[^>]*>", " ", page)
    assert "publisher MAI-UI&#x27;s polygons 60.10 % 33.33 % -26.77" in " ".join(told.split())


def test_what_strangers_wrote_is_only_text(page: str) -> None:
    body = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert "alert(1)</script>" not in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert page.count("<script") == 2
    assert not re.search(r'(src|href)="(?!data:)', body)
    assert "default-src 'none'" in page
    assert "</script><script>alert(1)" in data_of(page)["steps"][0]["answers"][0]["raw"]


def test_a_log_of_inspect_has_each_answer_with_its_picture_and_its_score(page: str, tmp_path: Path) -> None:
    log = json.loads((tmp_path / "log.json").read_text(encoding="utf-8"))
    assert (log["version"], log["status"], log["eval"]["task"]) == (2, "success", "grounding/osworld-g")
    assert log["results"]["scores"][0]["metrics"]["official"]["value"] == pytest.approx(1 / 3)
    assert [one["scores"]["official"]["value"] for one in log["samples"]] == ["C", "I", "I"]
    hit = log["samples"][0]
    assert hit["input"][0]["content"][0]["image"].startswith("data:image/jpeg;base64,")
    assert hit["input"][0]["content"][1]["text"] == "the bbox"
    assert (hit["target"], hit["scores"]["official"]["answer"]) == ("20, 10, 60, 30", "40.0, 20.0")
    assert hit["output"]["choices"][0]["message"]["content"][0]["text"] == OUTSIDE.replace("900", "200")
