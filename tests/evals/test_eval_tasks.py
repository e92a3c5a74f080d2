"""`mai-agent eval tasks` as a command: what is run, resumed after a kill, judged again, and compared."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stubs.display import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


class Evaluation:
    """An evaluation of made-up tasks in a folder, by fake processes."""

    def __init__(self, folder: Path) -> None:
        self.file, self.out = folder / "tasks.toml", folder / "out"

    def tasks(self, **sentences: str) -> None:
        expect = 'class = "c"\nexpect.settings = {"xfconf a /b" = "true"}\n'
        tasks = [f'[[task]]\nid = "{name}"\nsay = "{say}"\n{expect}' for name, say in sentences.items()]
        self.file.write_text("\n".join(tasks))

    def start(self, *options: str) -> "subprocess.Popen[str]":
        starter = ROOT / "tests/stubs/start_with_fakes.py"
        words = [sys.executable, str(starter), "eval", "tasks", str(self.file), "--out", str(self.out), *options]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *options: str) -> tuple[int, dict[str, Any]]:
        with self.start(*options, "--json") as program:
            out, err = program.communicate(timeout=60)
        assert out, err
        return program.returncode, json.loads(out)

    def refused(self, *options: str) -> str:
        with self.start(*options) as program:
            _, err = program.communicate(timeout=60)
        assert program.returncode == 2, err
        return err

    @property
    def begun(self) -> list[str]:
        path = self.out / "runs/begun"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    return Evaluation(tmp_path)


def test_every_task_is_run_as_often_as_epochs_say_and_judged(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it", b="do it wrong")
    status, told = evaluation.run("--epochs", "2", "--max-steps", "9")
    assert status == 0
    assert (told["tasks"], told["runs"], told["left"], told["options"]["max_steps"]) == (2, 4, 0, 9)
    assert told["verdicts"] == {"right": 2, "false done": 2}
    assert (told["precision"]["right"], told["precision"]["count"], told["tokens"]) == (2, 4, 48)
    assert sorted(evaluation.begun) == ["a", "a", "b", "b"]
    status, again = evaluation.run("--epochs", "3", "--max-steps", "9", "--filter", " a ")
    assert (status, again["runs"], sorted(evaluation.begun)) == (0, 5, ["a", "a", "a", "b", "b"])


def test_after_a_kill_the_same_command_does_the_rest_and_nothing_twice(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it", b="do it", c="hold", d="do it wrong")
    with evaluation.start("--parallel", "1") as program:
        wait_until(lambda: evaluation.begun == ["a", "b", "c"], "the third task is under way", 30)
        program.send_signal(signal.SIGKILL)
    (evaluation.out / "runs/go").touch()
    status, told = evaluation.run("--parallel", "1")
    assert (status, told["runs"], told["verdicts"]) == (0, 4, {"right": 3, "false done": 1})
    assert evaluation.begun == ["a", "b", "c", "c", "d"]
    rows = [json.loads(line) for line in (evaluation.out / "verdicts.jsonl").read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == ["a#1", "b#1", "c#1", "d#1"]


def test_what_the_environment_failed_has_no_verdict_and_is_done_again(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it", b="broken")
    status, told = evaluation.run("--retries", "0")
    assert (status, told["runs"], told["left"]) == (1, 1, 1)
    (evaluation.out / "runs/mended").touch()
    status, told = evaluation.run("--retries", "0")
    assert (status, told["runs"], told["left"], sorted(evaluation.begun)) == (0, 2, 0, ["a", "b", "b"])


def test_verdicts_are_made_again_of_what_was_recorded(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    from agent.cli import main

    evaluation.tasks(a="do it", b="do it wrong")
    evaluation.run()
    (evaluation.out / "verdicts.jsonl").unlink()
    assert main(["eval", "rescore", str(evaluation.out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"right": 1, "false done": 1}
    assert main(["eval", "rescore", str(evaluation.out), "--baseline", str(evaluation.out)]) == 0
    assert "McNemar's p = 1" in capsys.readouterr().out


def test_a_folder_holds_runs_of_one_kind_and_of_the_same_tasks(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it")
    evaluation.run("--max-steps", "9")
    assert "holds runs with another max_steps (9, not 8)" in evaluation.refused("--max-steps", "8")
    evaluation.tasks(a="do something else")
    assert "was changed after its result" in evaluation.refused("--max-steps", "9")


def test_what_is_wrong_is_said_before_anything_starts(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it")
    assert "no such task" in evaluation.refused("--filter", "zzz")
    assert "no regular expression" in evaluation.refused("--filter", "(")
    assert "holds no verdicts" in evaluation.refused("--baseline", "/nowhere")
    assert not evaluation.out.exists()


def test_tasks_that_need_what_is_not_installed_are_left_out_by_name(evaluation: Evaluation) -> None:
    evaluation.tasks(a="do it", b="do it")
    evaluation.file.write_text(evaluation.file.read_text() + 'open = ["no-such-program --new"]\n')
    with evaluation.start() as program:
        out, err = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "b: left out, missing: no-such-program" in err
    assert "1 task, 1 run judged, 1 left" in out
    assert evaluation.begun == ["a"]
