"""The report over tasks: shares, intervals, epochs, the run's own verdict against the judges, and a baseline."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.evals.statistics import clustered_wilson, wilson
from agent.evals.tasks.judge import State
from agent.evals.tasks.osworld_tree import write_tree
from agent.evals.tasks.report import (
    TaskVerdict,
    lines,
    read_baseline,
    read_results,
    report_on,
    told,
    verdict_of,
    write_verdicts,
)
from agent.evals.tasks.task import EvalTask
from agent.evals.tasks.work import STATES, States
from agent.fleet.tasks import Result
from foundation.errors import UsageError

BUNDLES = Path(__file__).parents[1] / "record/data/format-3"
RAISE = "xfconf xfwm4 /general/cycle_raise"
GOOD = ("right", "right refusal")


def verdict(name: str, verdict: str, verified: bool | None = None, **more: Any) -> TaskVerdict:
    values = {
        "id": name, "task": name.partition("#")[0], "group": "xfce", "say": "b", "verdict": verdict,
        "right": verdict in GOOD, "reached": verdict in ("right", "false unverified"), "missing": [], "harm": [],
        "receipt": [], "undo": [], "status": 0, "verified": verified, "steps": 4, "seconds": 8.0, "tokens": None,
        "decide_s": [0.5], "step_s": [2.0], "bundle": "", "message": "",
    }  # fmt: skip
    return TaskVerdict(**(values | more))


SOME = [
    verdict("a#1", "right", True, tokens=100),
    verdict("b#1", "right", None, steps=6),
    verdict("c#1", "false done", True, harm=["setting x"]),
    verdict("d#1", "honest miss", False, group="gnome"),
    verdict("e#1", "right refusal", None, group="gnome"),
    verdict("f#1", "not judged", None, group=""),
]


def test_shares_leave_out_what_could_not_be_judged() -> None:
    report = report_on(SOME, {"engine": "literal"}, ["a#1", "g#1"])
    assert (report.tasks, report.runs, report.left) == (5, 5, 2)
    assert (report.success.right, report.success.count, report.success.share) == (3, 5, 0.6)
    assert (report.success.low, report.success.high) == pytest.approx(wilson(3, 5))
    assert {name: (share.right, share.count) for name, share in report.classes.items()} == {
        "gnome": (1, 2),
        "xfce": (2, 3),
    }
    assert report.verdicts == {
        "right": 2, "right refusal": 1, "honest miss": 1, "false done": 1, "not judged": 1,
    }  # fmt: skip
    assert (report.false_done.right, report.harmed.right, report.steps, report.tokens) == (1, 1, 4, 100)


def test_the_runs_own_verdict_is_held_against_the_judges() -> None:
    report = report_on(SOME, {})
    assert (report.precision.right, report.precision.count) == (1, 2)  # of a and c, a is right
    assert (report.recall.right, report.recall.count) == (1, 2)  # of a and b, a was verified


def test_a_baseline_is_compared_by_the_tasks_that_most_epochs_succeed_in(tmp_path: Path) -> None:
    earlier = [verdict(f"a#{epoch}", "right") for epoch in (1, 2)]
    earlier += [
        verdict("b#1", "right"),
        verdict("b#2", "honest miss"),
        verdict("c#1", "right"),
        verdict("z#1", "right"),
    ]
    write_verdicts(tmp_path, earlier)
    baseline = read_baseline(tmp_path)
    assert baseline == {"a": True, "b": False, "c": True, "z": True}
    told = report_on(SOME, {}, (), baseline).baseline
    assert told == {"both": 1, "only_here": 1, "only_baseline": 1, "neither": 0, "left_out": 2, "p": 1.0}
    with pytest.raises(UsageError, match="holds no verdicts on tasks"):
        read_baseline(tmp_path / "none")


def test_a_baseline_is_of_runs_and_of_the_same_tasks(tmp_path: Path) -> None:
    first = verdict("a#1", "right", digest="1", message="one\u2028two\x85three")
    write_verdicts(tmp_path, [first, verdict("b#1", "right")])
    baseline = read_baseline(tmp_path)
    here = [verdict("a#1", "right", digest="2"), verdict("b#1", "honest miss")]
    assert report_on(here, {}, (), baseline).baseline == {
        "both": 0, "only_here": 0, "only_baseline": 1, "neither": 0, "left_out": 1, "p": 1.0,
    }  # fmt: skip
    changed = "\n".join(lines(report_on(here[:1], {}, (), baseline)))
    assert "baseline: it has none of these" in changed
    (tmp_path / "eval.json").write_text('{"benchmark": "tasks", "options": {"prove": true}}')
    with pytest.raises(UsageError, match="holds proofs of judges"):
        read_baseline(tmp_path)


def test_epochs_are_counted_by_task_and_tokens_are_priced() -> None:
    used = {"prompt": 1_000_000, "completion": 100_000, "cached": None}
    runs = [
        verdict("a#1", "right", usage=used), verdict("a#2", "right", usage=used),
        verdict("b#1", "right", usage=used), verdict("b#2", "honest miss", usage=used),
        verdict("c#1", "honest miss", usage=used), verdict("c#2", "false done", usage=used),
    ]  # fmt: skip
    report = report_on(runs, {}, price=(0.5, 2.0))
    assert [(one.right, one.count) for one in (report.success, report.ever, report.always)] == [(3, 6), (2, 3), (1, 3)]
    assert report.cost == pytest.approx(6 * (0.5 + 0.2))
    text = "\n".join(lines(report))
    assert "cost of the tokens: 4.2 in all, 0.7 a run, 1.4 a success" in text
    assert report_on(SOME, {}, price=(0.5, 2.0)).cost is None, "their tokens are not known"


def test_more_misses_never_raise_the_lower_end_of_the_interval() -> None:
    for tasks, epochs in ((3, 3), (5, 4), (20, 5), (100, 3)):
        outcomes = [[True] * epochs for _ in range(tasks)]
        ends = []
        for task in range(tasks):
            for epoch in range(epochs):
                ends.append(clustered_wilson(outcomes)[0])
                outcomes[task][epoch] = False
        assert all(later <= earlier for earlier, later in pairwise(ends)), (tasks, epochs)


def test_results_that_were_cut_off_or_joined_are_read_once(tmp_path: Path) -> None:
    rows = [json.dumps(asdict(Result(f"{name}#1", "done", 0, True, 2, 3.0, None, "", "", 1, ""))) for name in "abc"]
    (tmp_path / "results.jsonl").write_text("\n".join([*rows, *rows, rows[0][:30]]))
    assert [one.id for one in read_results(tmp_path)] == ["a#1", "b#1", "c#1"]


def test_repeated_runs_of_a_task_narrow_the_interval_only_if_they_differ() -> None:
    assert clustered_wilson([[True], [True], [False], [False]]) == pytest.approx(wilson(2, 4))
    assert clustered_wilson([[True] * 9, [True] * 9, [False] * 9, [False] * 9]) == pytest.approx(wilson(2, 4))
    alike, apart = clustered_wilson([[True] * 2] * 4 + [[False] * 2] * 4), clustered_wilson([[True, False]] * 8)
    assert alike == pytest.approx(wilson(4, 8))
    assert alike[0] < apart[0] < apart[1] < alike[1]
    assert clustered_wilson([[True] * 3] * 5) == pytest.approx(wilson(5, 5))
    assert clustered_wilson([]) == (0.0, 1.0)


def test_a_verdict_is_made_of_the_recorded_states_alone(tmp_path: Path) -> None:
    task = EvalTask.model_validate({"id": "a", "say": "b", "class": "xfce", "expect": {"settings": {RAISE: "true"}}})
    off, on = State(settings={RAISE: "false"}), State(settings={RAISE: "true"})
    states = States(task=task, home="/home/me", before=off, after=on, undone=on, error="no such key", receipt=[])
    (tmp_path / "runs/one").mkdir(parents=True)
    (tmp_path / "runs/one" / STATES).write_text(states.model_dump_json(exclude_defaults=True))
    result = Result("a#2", "done", 0, True, 2, 3.0, None, "runs/one", "It is done.", 1, "")
    one = verdict_of(result, tmp_path)
    assert (one.task, one.group, one.verdict, one.reached) == ("a", "xfce", "right", True)
    assert one.receipt == [f"missing: setting {RAISE}: false -> true"]
    assert one.undo == ["no such key", f"setting {RAISE}: false -> true"]
    failed = Result("a#3", "failed", 3, None, 0, 0.0, None, "runs/one", "No server.", 2, "")
    assert verdict_of(failed, tmp_path).verdict == "not judged"
    (tmp_path / "runs/one" / STATES).write_text("{")
    assert verdict_of(result, tmp_path).verdict == "not judged"


def test_the_report_is_told_in_lines() -> None:
    text = "\n".join(lines(report_on(SOME, {}, ["g#1"], {"a": False})))
    assert "5 tasks, 5 runs judged, 2 left" in text
    assert "success                  3 of 5       60.0 %  95 %: 23.1 to 88.2" in text
    assert "median of a step: 0.50 s from look to decision, 2.00 s whole" in text
    assert "baseline: 1 task right only here, 0 only there, 0 alike; 4 are not in it; McNemar's p = 1" in text
    assert next(lines(report_on([], {}, ["a#1", "b#1", "c#1"]))) == "0 tasks, 0 runs judged, 3 left"
    assert next(told(SOME[2])) == "FALSE DONE       c#1 (4 steps, 8.0 s)"


def test_runs_are_written_as_osworlds_tree_of_results(tmp_path: Path) -> None:
    runs = [
        verdict("a#1", "right", True, bundle="interrupted", status=1),
        verdict("a#2", "honest miss", bundle="interrupted"),
        verdict("b#1", "not judged", bundle="interrupted"),
        verdict("c#1", "right", bundle="removed"),
    ]
    assert write_tree(runs, BUNDLES, tmp_path) == 2
    (folder, again) = sorted(path.parent for path in tmp_path.rglob("result.txt"))
    assert (folder.name, again.name) == ("a", "a-2")
    assert folder.relative_to(tmp_path).parts[:2] == ("mai-agent", "screenshot")
    assert folder.parent.name == "xfce"
    assert [(each / "result.txt").read_text() for each in (folder, again)] == ["1.0\n", "0.0\n"]
    summary = json.loads((tmp_path / "summary/results.json").read_text())
    assert [(row["application"], row["task_id"], row["status"], row["score"]) for row in summary] == [
        ("xfce", "a", "success", 1.0), ("xfce", "a-2", "success", 0.0),
    ]  # fmt: skip
    rows = [json.loads(line) for line in (folder / "traj.jsonl").read_text().splitlines()]
    assert [(row["step_num"], row["done"], row["reward"]) for row in rows] == [(1, False, 0.0), (2, True, 1.0)]
    second = (BUNDLES / "interrupted/screens/0002.png").read_bytes()
    assert (folder / rows[0]["screenshot_file"]).read_bytes() == second, "the screen after the first step"
