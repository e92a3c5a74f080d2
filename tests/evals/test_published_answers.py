"""Published answers get their published scores, by every rule."""

import json
import lzma
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agent.core.geometry import Size
from agent.evals.judging import Verdict, judge
from agent.evals.samples import Sample, Shape

ANSWERS = Path(__file__).with_name("data") / "mai-ui-8b-answers.jsonl.xz"
#: Shares in percent, computed once from the same files by another program. The model card states the first number of
#: each set, rounded; for OSWorld-G it is the one by its own reading of polygons.
PUBLISHED = {
    "screenspot-pro": {
        "official": 67.05,
        "/999": 65.97,
        "half-open": 67.05,
        "int() pixels": 67.87,
        "round() pixels": 67.62,
        "box on the 1000 grid": 68.56,
    },
    "screenspot-v2": {"official": 94.89, "/999": 94.89, "int() pixels": 94.89, "box on the 1000 grid": 94.97},
    "osworld-g": {"MAI-UI's polygons": 61.70, "official": 63.65},
    "osworld-g-refined": {"MAI-UI's polygons": 69.50, "official": 71.63},
    "mmbench-gui-l2": {
        "official": 88.76,
        "/999": 88.73,
        "half-open": 88.73,
        "int() pixels": 88.79,
        "round() pixels": 88.79,
        "box on the 1000 grid": 88.90,
    },
}


def shape_of(target: list[float]) -> Shape:
    if not any(target):
        return "refusal"
    return "box" if len(target) == 4 else "polygon"


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Verdict]]:
    judged = defaultdict[str, list[Verdict]](list)
    with lzma.open(ANSWERS, "rt", encoding="utf-8") as lines:
        for benchmark, size, target, content in map(json.loads, lines):
            shape = shape_of(target)
            place = tuple(target) if shape != "refusal" else ()
            sample = Sample("a", Path("a.png"), "", shape, place, Size(*size), {})
            answer: dict[str, Any] = {"content": content, "finish_reason": "stop"}
            judged[benchmark].append(
                judge({"family": "mai-ui", "sent": size, "screen": size, "answer": answer}, sample)
            )
    return judged


@pytest.mark.parametrize("benchmark", PUBLISHED)
def test_mai_uis_answers_get_the_published_shares(benchmark: str, verdicts: dict[str, list[Verdict]]) -> None:
    told = verdicts[benchmark]
    shares = {rule: round(100 * sum(one.rules[rule] for one in told) / len(told), 2) for rule in PUBLISHED[benchmark]}
    assert shares == PUBLISHED[benchmark]


def test_every_answer_is_read_and_none_of_them_refuses(verdicts: dict[str, list[Verdict]]) -> None:
    assert {name: len(told) for name, told in verdicts.items()} == {
        "screenspot-pro": 1581,
        "screenspot-v2": 1272,
        "osworld-g": 564,
        "osworld-g-refined": 564,
        "mmbench-gui-l2": 3594,
    }
    assert {verdict.said for told in verdicts.values() for verdict in told} == {"point"}
