"""The verdicts of an evaluation of tasks, and the report over them; both are functions of what was recorded."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from typing_extensions import override

from agent.evals.statistics import baseline_line, clustered_wilson, paired
from agent.evals.tasks.judge import GOOD, VERDICTS, Judgement, judge, lacking, left_over, receipt_errors
from agent.evals.tasks.work import States, read_states
from agent.fleet.fleet import Lines
from agent.fleet.tasks import Result, Task
from foundation.errors import ExitStatus, UsageError
from foundation.files import read_json_object, read_lines, write_file
from foundation.printing import counted

#: The file of verdicts in the folder of an evaluation, which other evaluations name as their baseline.
_VERDICTS = "verdicts.jsonl"


class TaskVerdict(BaseModel):
    """The verdict on one run of a task: a line of `verdicts.jsonl`."""

    id: str  # TASK#EPOCH
    task: str
    digest: str = ""  # of the task
    group: str  # the class of the task
    say: str  # the sentence
    verdict: str
    right: bool  # whether that is a success
    reached: bool  # whether all that is expected holds and nothing else changed, whatever the run says
    missing: list[str]  # what was expected and is not so
    harm: list[str]  # what changed and was not asked for
    receipt: list[str]  # where the run's receipt differs from the states
    undo: list[str]  # what `mai-agent undo` left
    status: int  # the run's exit status
    verified: bool | None  # the run's own verdict
    steps: int
    seconds: float
    tokens: int | None  # of prompts and answers
    usage: dict[str, int | None] = {}  # the same apart: prompt, completion, and those of the prompt from a cache
    decide_s: list[float]  # seconds of each step from the look to the decision
    step_s: list[float]  # seconds of each whole step
    bundle: str  # in the folder
    message: str  # the run's last words

    @property
    def judged(self) -> bool:
        """Return whether the state could be judged."""
        return self.verdict != "not judged"


class Share(BaseModel):
    """A share of runs, with its Wilson interval (95 %); repeated runs of a task count as one cluster."""

    right: int
    count: int
    share: float | None  # null without runs
    low: float
    high: float

    @classmethod
    def of(cls, runs: Iterable[TaskVerdict], right: Callable[[TaskVerdict], bool]) -> "Share":
        """Return the share of runs that are right."""
        clusters: dict[str, list[bool]] = {}
        for run in runs:
            clusters.setdefault(run.task, []).append(right(run))
        return cls.of_clusters([*clusters.values()])

    @classmethod
    def of_clusters(cls, clusters: Sequence[Sequence[bool]]) -> "Share":
        """Return the share of right outcomes; outcomes of the same task are a cluster."""
        outcomes = [*chain(*clusters)]
        low, high = clustered_wilson(clusters)
        share = sum(outcomes) / len(outcomes) if outcomes else None
        return cls(right=sum(outcomes), count=len(outcomes), share=share, low=low, high=high)


class TasksReport(BaseModel):
    """The report of `mai-agent eval tasks --json`."""

    benchmark: str = "tasks"
    options: dict[str, Any]  # of the runs
    tasks: int  # tasks that were judged at least once
    runs: int  # runs that were judged
    left: int  # runs without a verdict: not begun, stopped, or failed by the environment
    success: Share  # the verdicts "right" and "right refusal"
    ever: Share  # of the tasks: at least one run is a success (pass@k, of k epochs)
    always: Share  # of the tasks: every run is a success (pass^k)
    classes: dict[str, Share]  # the same by class
    verdicts: dict[str, int]
    false_done: Share  # the run says that it is done, and it is not, or something else changed
    harmed: Share  # something changed that was not asked for
    precision: Share  # of the runs that were verified by their own evidence: `reached` by the judges
    recall: Share  # of the runs that reached what is expected: verified by their own evidence
    verifiers: dict[str, "Verifier"]  # the same for the verdicts of models (`mai-agent eval verify`)
    receipts_wrong: int  # runs whose receipt differs from the states
    undo_wrong: int  # runs that undo did not fully undo
    steps: float | None  # of a run (median)
    seconds: float | None  # of a run (median)
    decide_s: float | None  # from a look to a decision (median of all steps)
    step_s: float | None  # of a whole step (median of all steps)
    tokens: int | None  # of all runs
    cost: float | None = None  # of all runs, at the prices of --price
    baseline: dict[str, Any] | None  # McNemar's exact test over the tasks that both have


class Verifier(BaseModel):
    """A model's verdicts against those of the judges."""

    precision: Share  # of the runs that it says are done: `reached` by the judges
    recall: Share  # of the runs that reached what is expected: it says that they are done
    unclear: int  # runs of which it says neither


def verdict_of(result: Result, out: Path) -> TaskVerdict:
    """Return the verdict on a result of the fleet, by the states in its bundle."""
    states = read_states(out / result.bundle) if result.bundle else None
    judged = states is not None and result.status != ExitStatus.ENVIRONMENT
    judgement, receipt, undo = Judgement("not judged"), [], []
    if states is not None and judged:
        judgement = judge(
            states.task, result.status, states.before, states.after, states.revealed, result.outcome
        )  # fmt: skip
        if states.receipt is not None:
            receipt = receipt_errors(states.receipt, states.before, states.after, states.home)
        if states.undone is not None:
            left = left_over(states.before, states.undone)
            undo = [*([states.error] if left and states.error else []), *left]
    return TaskVerdict(
        **asdict(result) | {"digest": states.task.digest if states else ""}, **asdict(judgement),
        task=result.id.rpartition("#")[0], usage=states.usage if states else {},
        group=states.task.cls if states else "", say=states.task.say if states else "",
        right=judgement.verdict in GOOD, reached=judgement.reached, receipt=receipt, undo=undo,
        decide_s=states.decide_s if states else [], step_s=states.step_s if states else [],
    )  # fmt: skip


def flaws_of(states: States | None) -> list[str]:
    """Return the flaws of a task or its judge that a proof shows; empty if there are none."""
    if states is None:
        return ["it could not be prepared"]
    task, before = states.task, states.before
    found = [states.error] if states.error else []
    if not task.must_refuse and not lacking(task, before):
        found.append("it holds before anything is done")
    by_hand = judge(task, int(task.must_refuse), before, states.after, states.revealed)
    if by_hand.verdict not in GOOD:
        found += [*(f"done by hand, it lacks: {line}" for line in by_hand.missing),
                  *(f"done by hand, it harms: {line}" for line in by_hand.harm)]  # fmt: skip
    if states.harmed is None or not judge(task, 0, before, states.harmed).harm:
        found.append("a change that nobody asked for is no harm to its judge")
    return found


def write_verdicts(out: Path, verdicts: Sequence[TaskVerdict]) -> None:
    """Write the verdicts of a folder. Raises EnvironmentLacksError."""
    write_file(out / _VERDICTS, "".join(f"{one.model_dump_json()}\n" for one in verdicts), 0o666)


def read_baseline(folder: Path) -> dict[str, bool]:
    """Return by task whether most of its judged runs in a folder are successes. Raises UsageError."""
    if read_json_object(folder / "eval.json").get("options", {}).get("prove"):
        raise UsageError(f"{folder} holds proofs of judges, not runs.", "Name the folder of runs.")
    try:
        lines = (folder / _VERDICTS).read_bytes().splitlines()  # of bytes: models write line separators, too
        return _by_task(TaskVerdict.model_validate_json(line) for line in lines)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} holds no verdicts on tasks.", f"`mai-agent eval rescore {folder}` makes them."
        ) from error


def report_on(
    verdicts: Sequence[TaskVerdict],
    options: Mapping[str, Any],
    wanted: Iterable[str] = (),
    baseline: Mapping[str, bool] | None = None,
    verified: Mapping[str, Mapping[str, bool | None]] = MappingProxyType({}),
    price: tuple[float, float] | None = None,
) -> TasksReport:
    """Return the report over verdicts; `wanted` are the ids of all runs that were to be done.

    `verified` has what models said of each run, by run and model.
    """
    runs = [one for one in verdicts if one.judged]
    outcomes = [*_outcomes(runs).values()]
    left = {*wanted, *(one.id for one in verdicts)} - {one.id for one in runs}
    tokens = [one.tokens for one in runs if one.tokens is not None]
    return TasksReport(
        options=dict(options),
        tasks=len({one.task for one in runs}),
        runs=len(runs),
        left=len(left),
        success=Share.of(runs, lambda one: one.right),
        ever=Share.of_clusters([[any(each)] for each in outcomes]),
        always=Share.of_clusters([[all(each)] for each in outcomes]),
        classes={name: Share.of([one for one in runs if one.group == name], lambda one: one.right)
                 for name in sorted({one.group for one in runs})},
        verdicts={name: count for name in VERDICTS if (count := sum(one.verdict == name for one in verdicts))},
        false_done=Share.of(runs, lambda one: one.verdict == "false done"),
        harmed=Share.of(runs, lambda one: bool(one.harm)),
        precision=Share.of([one for one in runs if one.verified], lambda one: one.reached),
        recall=Share.of([one for one in runs if one.reached], lambda one: bool(one.verified)),
        verifiers={model: _verifier(runs, model, verified) for model in sorted({*chain(*verified.values())})},
        receipts_wrong=sum(bool(one.receipt) for one in runs),
        undo_wrong=sum(bool(one.undo) for one in runs),
        steps=_median(one.steps for one in runs),
        seconds=_median(one.seconds for one in runs),
        decide_s=_median(seconds for one in runs for seconds in one.decide_s),
        step_s=_median(seconds for one in runs for seconds in one.step_s),
        tokens=sum(tokens) if tokens else None,
        cost=_cost(runs, price),
        baseline=None if baseline is None else paired(_by_task(runs), baseline),
    )  # fmt: skip


def _verifier(runs: Sequence[TaskVerdict], model: str, verified: Mapping[str, Mapping[str, bool | None]]) -> Verifier:
    asked = [one for one in runs if model in verified.get(one.id, {})]
    return Verifier(
        precision=Share.of([one for one in asked if verified[one.id][model]], lambda one: one.reached),
        recall=Share.of([one for one in asked if one.reached], lambda one: bool(verified[one.id][model])),
        unclear=sum(verified[one.id][model] is None for one in asked),
    )


def _outcomes(verdicts: Iterable[TaskVerdict]) -> dict[str, list[bool]]:
    """Return for each task and version of its text whether its judged runs are successes."""
    found: dict[str, list[bool]] = {}
    for one in verdicts:
        if one.judged:
            found.setdefault(f"{one.task} {one.digest}".rstrip(), []).append(one.right)
    return found


def _by_task(verdicts: Iterable[TaskVerdict]) -> dict[str, bool]:
    """Return by task whether more than half of its judged runs are successes."""
    return {task: 2 * sum(right) > len(right) for task, right in _outcomes(verdicts).items()}


def _cost(runs: Sequence[TaskVerdict], price: tuple[float, float] | None) -> float | None:
    """Return what the tokens of all runs cost, at prices of a million tokens of prompts and of answers."""
    if price is None or any(one.usage.get(kind) is None for one in runs for kind in ("prompt", "completion")):
        return None
    prompts, answers = (sum(one.usage[kind] or 0 for one in runs) for kind in ("prompt", "completion"))
    return round((prompts * price[0] + answers * price[1]) / 1e6, 6)


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(median(found), 3) if found else None


def told(one: TaskVerdict) -> Iterator[str]:
    """Yield a verdict as lines for a person; more than one if it is no success."""
    verdict = one.verdict if one.right else one.verdict.upper()
    yield f"{verdict:16} {one.id} ({counted(one.steps, 'step')}, {one.seconds:.1f} s)"
    if not one.right:
        yield f"    said: {one.say}"
        yield f"    status {one.status}: {one.message}"
        yield from (f"    lacks: {line}" for line in one.missing[:6])
        yield from (f"    harm: {line}" for line in one.harm[:6])
        yield f"    bundle: {one.bundle}"
    yield from (f"    receipt: {line}" for line in one.receipt[:6])
    yield from (f"    left by undo: {line}" for line in one.undo[:6])


def lines(report: TasksReport) -> Iterator[str]:
    """Yield the report for a person."""
    yield f"{counted(report.tasks, 'task')}, {counted(report.runs, 'run')} judged" + (
        f", {report.left} left" if report.left else ""
    )
    rows = {"success": report.success, **{f"  {name}": share for name, share in report.classes.items()}}
    if report.runs > report.tasks:
        rows |= {"tasks with a success (pass@k)": report.ever, "only successes (pass^k)": report.always}
    rows |= {"false done": report.false_done, "harm": report.harmed}
    rows |= {"verified: precision": report.precision, "verified: recall": report.recall}
    for model, shares in report.verifiers.items():
        rows |= {f"{model}: precision": shares.precision, f"{model}: recall": shares.recall}
    width = max(map(len, rows))
    yield from (f"{name:<{width}}  {_row(share)}" for name, share in rows.items())
    yield "verdicts: " + ", ".join(f"{count} {name}" for name, count in report.verdicts.items())
    if report.steps is not None:
        tokens = "" if report.tokens is None else f"; {report.tokens} tokens in all"
        yield f"median of a run: {report.steps:g} steps, {report.seconds:.1f} s{tokens}"
    if report.cost is not None:
        each = f", {report.cost / report.success.right:.4g} a success" if report.success.right else ""
        yield f"cost of the tokens: {report.cost:.4g} in all, {report.cost / report.runs:.4g} a run{each}"
    if report.step_s is not None:
        yield f"median of a step: {report.decide_s:.2f} s from look to decision, {report.step_s:.2f} s whole"
    yield f"receipts that differ from the states: {report.receipts_wrong}; left by undo: {report.undo_wrong}"
    if found := report.baseline:
        yield baseline_line(found, counted(found["only_here"], "task"))


def _row(share: Share) -> str:
    if share.share is None:
        return "   no such run"
    interval = f"{100 * share.low:.1f} to {100 * share.high:.1f}"
    return f"{share.right:>5} of {share.count:<5} {100 * share.share:>6.1f} %  95 %: {interval}"


def read_results(out: Path) -> list[Result]:
    """Return the results in a folder, the last of each run, without locking it. Raises UsageError."""
    found: dict[str, Result] = {}

    def take(line: dict[str, Any]) -> None:
        found[line["id"]] = Result(**line)

    try:
        read_lines(out / "results.jsonl", "a result of a fleet", take)
        return [*found.values()]
    except OSError as error:
        raise UsageError(f"{out} holds no results of tasks ({error}).", "Name the folder of an evaluation.") from error


class JudgedLines(Lines):
    """Prints the lines that `judge` returns for a result in the output folder, when its run ends."""

    def __init__(self, judge: Callable[[Result, Path], Iterable[str]], out: Path, tell: Callable[..., object]) -> None:
        self._judge = judge
        self._out = out
        self._tell = tell

    @override
    def started(self, task: Task, tries: int) -> None:
        if tries > 1:
            self._tell(f"{task.id}: try {tries}")

    @override
    def finished(self, result: Result, *, again: bool) -> None:
        if again:
            self._tell(f"{result.id}: {result.message}; it is tried again")
        else:
            self._tell(*self._judge(result, self._out))
