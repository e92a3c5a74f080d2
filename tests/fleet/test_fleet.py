"""A fleet's tasks, order, results and ends, with a fake program in place of `mai-agent run`."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from stubs.display import wait_until

from agent.commands import fleet as command
from agent.commands.run import read_arguments
from agent.fleet import process
from agent.fleet.fleet import Fleet, Lines, Table
from agent.fleet.tasks import Result, Results, Task, read_tasks
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.processes import identity_of
from foundation.rich_console import GatedConsole

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def result_of(task: Task, status: int = 0, tries: int = 1) -> Result:
    outcome = {0: "done", 1: "gave_up", 3: "failed"}[status]
    return Result(task.id, outcome, status, status == 0, 2, 3.0, 120, "", "", tries, task.digest)


def many(count: int) -> list[Task]:
    return [Task(str(number), f"do {number}") for number in range(count)]


def not_done(result: Result) -> bool:
    return not result.done


class Silent(Lines):
    """Remembers which tasks began."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def started(self, task: Task, tries: int) -> None:
        self.order.append(f"{task.id}.{tries}")

    def finished(self, result: Result, *, again: bool) -> None:
        pass


# -- the task file


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: Expecting"),
        ("[1]", "line 2: it is no object"),
        ('{"id": "b"}', "line 2: it needs a text 'instruction'"),
        ('{"id": 7, "instruction": "x"}', "line 2: it needs a text 'id'"),
        ('{"id": "b", "instruction": " "}', "line 2: it needs a text 'instruction'"),
        ('{"id": "b", "instruction": "a\\u0000b"}', "line 2: it needs a text 'instruction'"),
        ('{"id": "b", "instruction": "\\ud800"}', "line 2: 'utf-8' codec can't encode"),
        ('{"id": "a", "instruction": "x"}', "line 2: line 1 has the id 'a' too"),
        ('{"id": "b", "instruction": "x", "max_step": 3}', "no option 'max_step' (did you mean 'max_steps'?)"),
        ('{"id": "b", "instruction": "x", "max_steps": 0}', "line 2: Argument --max-steps: must be at least 1"),
        ('{"id": "b", "instruction": "x", "sandbox_size": "big"}', "line 2: Argument --sandbox-size"),
        ('{"id": "b", "instruction": "x", "max_steps": [1]}', "'max_steps' must be a text, a number"),
        ('{"id": "b", "instruction": "x", "dry_run": "yes"}', "line 2: Argument --dry-run"),
        ('{"id": "b", "instruction": "x", "runs": "elsewhere"}', "no option 'runs'"),
        ('{"id": "b", "instruction": "x", "keep": true}', "no option 'keep'"),
        ('{"id": "b", "instruction": "x", "approve": "ask"}', "no option 'approve'"),
    ],
)
def test_a_broken_line_is_named_before_anything_starts(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(f'{{"id": "a", "instruction": "x"}}\n{line}\n')
    with pytest.raises(UsageError) as raised:
        read_tasks(path, read_arguments)
    assert complaint in raised.value.what


def test_options_of_a_line_are_kept_and_tell_tasks_apart(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        '{"id": "a", "instruction": "-x", "sandbox_size": "800x600", "max_steps": 5, "see": null, "dry_run": true}\n'
        '\n{"id": "b", "instruction": "-x"}\n'
    )
    first, second = read_tasks(path, lambda words: read_arguments([*words, "--sandbox"]))
    assert first.options == (("dry_run", True), ("max_steps", 5), ("sandbox_size", "800x600"))
    assert first.digest != second.digest


# -- order, memory, retries


def test_thousands_of_tasks_run_in_order_with_bounded_memory(tmp_path: Path) -> None:
    tasks, at_once, most = many(4000), 0, 0

    async def carry(task: Task, tries: int, seen: Any) -> Result:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        seen({"event": "Acted", "step": 1, "detail": "x" * 50_000})
        await asyncio.sleep(0)
        at_once -= 1
        return result_of(task)

    with Results(tmp_path / "out") as results:
        watcher = Silent()
        tracemalloc.start()
        asyncio.run(Fleet(carry, results, watcher, parallel=8).run(tasks))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert watcher.order == [f"{number}.1" for number in range(4000)]
    assert most == 8
    assert peak < 16_000_000
    written = [json.loads(line)["id"] for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert sorted(written, key=int) == [task.id for task in tasks]


def test_a_long_task_holds_up_its_own_slot_only(tmp_path: Path) -> None:
    others_done = asyncio.Event()

    async def carry(task: Task, tries: int, seen: Any) -> Result:
        if task.id == "0":
            await others_done.wait()
        elif task.id == "99":
            others_done.set()
        return result_of(task)

    with Results(tmp_path) as results:
        asyncio.run(asyncio.wait_for(Fleet(carry, results, Silent(), parallel=2).run(many(100)), 30))
        assert list(results.of)[-1] == "0"
        assert len(results.of) == 100


@pytest.mark.parametrize(
    ("statuses", "tries"), [([3, 3, 0], 3), ([3, 3, 3], 3), ([3, 1], 2), ([1], 1), ([0], 1)], ids=str
)
def test_only_what_the_environment_failed_is_tried_again(tmp_path: Path, statuses: list[int], tries: int) -> None:
    left = list(statuses)

    async def carry(task: Task, tries: int, seen: Any) -> Result:
        return result_of(task, left.pop(0), tries)

    with Results(tmp_path) as results:
        asyncio.run(Fleet(carry, results, Silent(), parallel=1, retries=2, pause=0).run(many(1)))
        assert (results.of["0"].status, results.of["0"].tries, left) == (statuses[-1], tries, [])


def test_a_fleet_ends_where_the_environment_fails_one_task_after_the_other(tmp_path: Path) -> None:
    async def carry(task: Task, tries: int, seen: Any) -> Result:
        return result_of(task, 3)

    with Results(tmp_path) as results:
        with pytest.raises(EnvironmentLacksError, match="failed 6 tasks in a row"):
            asyncio.run(Fleet(carry, results, Silent(), parallel=2, retries=0).run(many(50)))
        assert len(results.still_to_do(many(50))) in (43, 44)
        assert len(results.still_to_do(many(50), not_done)) == 50


# -- the results


def test_failed_tasks_are_done_again_on_demand_and_have_one_line_each(tmp_path: Path) -> None:
    tasks = many(3)
    with Results(tmp_path) as results:
        for task, status in zip(tasks, (0, 1, 3), strict=True):
            results.write(result_of(task, status))
        assert results.still_to_do(tasks) == []
        assert results.still_to_do(tasks, not_done) == tasks[1:]
        results.write(result_of(tasks[1]))
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [(line["id"], line["status"]) for line in lines] == [("0", 0), ("1", 0)]


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"mine": 1}\n')
    with pytest.raises(UsageError, match="line 1 is not a result"):
        Results(tmp_path)
    assert (tmp_path / "results.jsonl").read_text() == '{"mine": 1}\n'


def test_a_result_of_another_task_with_the_same_id_is_not_taken(tmp_path: Path) -> None:
    with Results(tmp_path) as results:
        results.write(result_of(Task("0", "another")))
        with pytest.raises(UsageError, match="was changed after its result"):
            results.still_to_do(many(1))


# -- the command, with processes


@pytest.fixture
def tasks_file(tmp_path: Path) -> Any:
    def write(*instructions: str) -> Path:
        lines = [{"id": word.split()[0] + str(at), "instruction": word} for at, word in enumerate(instructions)]
        (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return tmp_path / "tasks.jsonl"

    return write


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setattr(command, "PROGRAM", (sys.executable, str(HERE / "fake_agent.py")))

    def run(path: Path, *options: str) -> tuple[int, str]:
        from agent.cli import main

        status = main(["fleet", str(path), "--out", str(path.parent / "out"), *options])
        return status, capsys.readouterr().out

    return run


def results_in(path: Path) -> dict[str, Any]:
    lines = (path.parent / "out/results.jsonl").read_text().splitlines()
    documents = [json.loads(line) for line in lines]
    assert len({document["id"] for document in documents}) == len(documents), "nothing twice"
    return {document["id"]: document for document in documents}


def begun(path: Path) -> list[Any]:
    file = path.parent / "out/runs/begun"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_every_end_of_a_run_becomes_a_result(tasks_file: Any, fleet: Any) -> None:
    path = tasks_file("fine", "lost", "nothing", "crash", "usage", "leak")
    status, out = fleet(path, "--retries", "0", "--max-steps", "7")
    assert status == 1
    found = results_in(path)
    assert {name: (one["outcome"], one["status"]) for name, one in found.items()} == {
        "fine0": ("done", 0), "lost1": ("gave_up", 1), "nothing2": ("failed", 3), "crash3": ("crashed", 3),
        "usage4": ("failed", 2), "leak5": ("crashed", 3),
    }  # fmt: skip
    fine = found["fine0"]
    assert (fine["verified"], fine["steps"], fine["tokens"], fine["bundle"]) == (True, 2, 120, "runs/fine")
    assert found["crash3"]["message"] == "The run was ended by signal 9. Its last message: Segmentation fault"
    assert all({"--sandbox", "--json", "--max-steps=7"} <= set(words) for _, _, words in begun(path))
    assert out.splitlines()[-1].startswith("6 tasks: 2 failed, 2 crashed, 1 done, 1 gave up")
    for leaked in psutil.process_iter():  # what the leaking run left
        with suppress(psutil.Error):
            if str(path.parent / "out/runs") in " ".join(leaked.cmdline()):
                leaked.kill()


def test_a_run_that_hangs_costs_only_its_own_task(tasks_file: Any, fleet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SLACK_S", 0.2)
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    path = tasks_file("stubborn", "lingers")
    path.write_text(path.read_text().replace('"stubborn"}', '"stubborn", "max_seconds": 0.2}'))
    assert fleet(path, "--retries", "0")[0] == 1
    found = results_in(path)
    assert {name: (one["outcome"], one["status"]) for name, one in found.items()} == {
        "stubborn0": ("hung", 3), "lingers1": ("done", 0),
    }  # fmt: skip
    assert found["stubborn0"]["message"].startswith("The run hung.")
    assert no_run_left(path)


def test_a_process_that_cannot_be_started_is_a_failure_of_the_environment(
    tasks_file: Any, fleet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PROGRAM", (str(HERE / "none"),))
    path = tasks_file("fine")
    assert fleet(path, "--retries", "0")[0] == 1
    assert (results_in(path)["fine0"]["outcome"], results_in(path)["fine0"]["status"]) == ("crashed", 3)


def test_a_second_start_does_nothing_twice_and_all_done_is_status_0(tasks_file: Any, fleet: Any) -> None:
    path = tasks_file("fine a", "fine b", "fine c")
    assert fleet(path)[0] == 0
    assert fleet(path)[0] == 0
    assert len(begun(path)) == 3


def test_events_are_told_as_json_with_the_tasks_id(tasks_file: Any, fleet: Any) -> None:
    _, out = fleet(tasks_file("fine", "lost"), "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events if event.get("task") == "lost1"] == [
        "TaskStarted", "RunStarted", "Observed", "Decided", "Acted", "StepFinished", "RunFinished", "TaskFinished",
    ]  # fmt: skip
    assert events[-1] == {
        "event": "FleetFinished", "tasks": 2, "done": 1, "outcomes": {"done": 1, "gave_up": 1}, "environment": 0,
        "left": 0, "seconds_a_step": 1.5,
    } or events[-1]["outcomes"] == {"gave_up": 1, "done": 1}  # fmt: skip


def test_the_table_has_a_row_for_each_desktop(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(9, 3)
    for task in many(2):
        table.started(task, 1)
    table.event(
        many(1)[0], {"event": "Acted", "step": 4, "detail": "clicked [bold]Save[/bold] \x1b[31m", "error": None}
    )
    table.finished(result_of(many(2)[1], 1), again=False)
    GatedConsole(width=80).print(table.drawn())
    shown = capsys.readouterr().out
    assert "4 of 9 tasks finished, 1 of them not done" in shown
    assert "clicked [bold]Save[/bold]" in shown
    assert "\x1b[31m" not in shown


@pytest.fixture
def started() -> Iterator[Any]:
    """Starts a fleet as a process of its own."""
    running: list[subprocess.Popen[str]] = []

    def start(path: Path, *options: str) -> subprocess.Popen[str]:
        starter, out = ROOT / "tests/stubs/start_with_fakes.py", path.parent / "out"
        words = [sys.executable, str(starter), "fleet", str(path), "--out", str(out), *options]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        running.append(
            subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
        return running[-1]

    yield start
    for popen in running:
        popen.kill()
        popen.wait()


def no_run_left(path: Path) -> bool:
    return not any(identity_of(pid) for pid, *_ in begun(path))


def test_after_a_kill_of_the_fleet_no_run_is_left_and_the_next_one_goes_on(tasks_file: Any, started: Any) -> None:
    path = tasks_file("fine a", "fine b", "hold", "stubborn", "fine c", "fine d")
    first = started(path, "--parallel", "2")
    wait_until(lambda: len(begun(path)) == 4, "both slots are held")
    pids = {words.split()[0]: pid for pid, words, _ in begun(path)}
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_until(lambda: identity_of(pids["hold"]) is None, "the kernel ended the run")
    assert set(results_in(path)) == {"fine0", "fine1"}
    for task in ("hold", "stubborn"):  # now they end
        path.write_text(path.read_text().replace(f'"instruction": "{task}"', f'"instruction": "fine {task}"'))
    second = started(path, "--parallel", "2")
    assert second.wait(60) == 0, second.stdout.read()
    assert no_run_left(path)
    assert set(results_in(path)) == {"fine0", "fine1", "hold2", "stubborn3", "fine4", "fine5"}
    assert [words for _, words, _ in begun(path)].count("fine a") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_runs_and_records_none_of_them(tasks_file: Any, started: Any, number: int) -> None:
    path = tasks_file("fine", "hold", "hold again", "fine late")
    running = started(path, "--parallel", "2")
    wait_until(lambda: len(begun(path)) == 3, "both slots are held")
    refused = started(path)
    assert refused.wait(60) == 2
    assert "Another fleet is writing" in refused.stdout.read()
    running.send_signal(number)
    assert running.wait(60) == 130
    assert no_run_left(path)
    assert set(results_in(path)) == {"fine0"}
    assert "4 tasks: 1 done, 3 left" in running.stdout.read()
