"""The misses of an evaluation in a real browser: the point and the target lie where they belong, without an error."""

from pathlib import Path
from typing import Any

import pytest
from stubs.benchmarks import MADE_UP

from agent.evals.judging import judge
from agent.evals.report import write_report
from agent.evals.samples import read_benchmark
from agent.evals.summary import summary

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

HOSTILE = '</script><img src=x onerror="document.title=1">'


def test_a_miss_shows_its_point_and_its_target(browser: Any, tmp_path: Path) -> None:
    MADE_UP["osworld-g"].make(tmp_path)
    benchmark = read_benchmark("osworld-g", tmp_path)
    content = f'<answer>{{"coordinate":[900,900]}}</answer>{HOSTILE}'
    line = {
        "family": "mai-ui",
        "model": HOSTILE,
        "sent": [200, 100],
        "screen": [200, 100],
        "answer": {"content": content},
    }
    answers = {sample.id: {**line, "id": sample.id} for sample in benchmark.samples}
    verdicts = [judge(answers[sample.id], sample) for sample in benchmark.samples]
    told = summary(benchmark, {"model": HOSTILE, "family": "mai-ui", "words": "ours"}, verdicts)
    browser.get(write_report(tmp_path, benchmark, told, verdicts, answers).as_uri())

    def box(selector: str) -> tuple[float, float, float, float]:
        """Left, top, right and bottom as shares of the picture."""
        script = """
            for (const one of document.getAnimations()) one.finish();  // a mark arrives larger than it is
            const box = (selector) => document.querySelector(selector).getBoundingClientRect();
            const [one, all] = [box(arguments[0]), box('#shot')];
            return [one.left, one.right].map((side) => (side - all.left) / all.width)
                .concat([one.top, one.bottom].map((side) => (side - all.top) / all.height));
        """
        left, right, top, bottom = browser.execute_script(script, selector)
        return left, top, right, bottom

    assert [one.text.splitlines()[1] for one in browser.find_elements("css selector", ".step")] == [
        "the bbox", "the polygon", "the refusal",
    ]  # fmt: skip
    assert box("#wanted rect") == pytest.approx((0.1, 0.1, 0.3, 0.3), abs=0.02)
    left, top, right, bottom = box("#mark .dot")
    assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((0.9, 0.9), abs=0.01)
    browser.find_element("id", "next").click()
    assert box("#wanted path") == pytest.approx((0.1, 0.1, 0.3, 0.3), abs=0.02)
    browser.find_element("id", "next").click()
    assert browser.find_elements("css selector", "#wanted") == []
    assert "not there" in browser.find_element("id", "detail").text
    assert not browser.find_element("id", "time").is_displayed()
    assert browser.title.startswith("0.00 % right")
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
