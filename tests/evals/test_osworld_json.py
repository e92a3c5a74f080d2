"""Task files in OSWorld's form: what a throw-away desktop carries is judged as written, the rest is left out."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.evals.tasks.judge import State, judge
from agent.evals.tasks.looker import StateReader
from agent.evals.tasks.osworld_json import NotCarriedError, read_osworld_task
from agent.evals.tasks.task_files import read_eval_tasks
from agent.sandbox.desktop import SandboxSpec, start_sandbox
from foundation.errors import UsageError

PRINTS = {"type": "vm_command_line", "command": ["cat", "/home/user/list.txt"]}


def written(folder: Path, **more: Any) -> Path:
    """A task as OSWorld writes it, for a list that must hold milk and no beer."""
    rules = {"type": "rule", "rules": {"include": ["milk"], "exclude": ["beer"]}}
    data = {
        "id": "a1b2", "snapshot": "os", "instruction": "Put milk on my list.", "source": "", "config": [],
        "evaluator": {"func": "check_include_exclude", "result": PRINTS, "expected": rules},
    }  # fmt: skip
    path = folder / f"{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps(data | more))
    return path


def evaluator(func: Any, **more: Any) -> dict[str, Any]:
    return {"func": func, "result": PRINTS, "expected": {"type": "rule", "rules": {"expected": "x"}}} | more


def test_set_ups_become_commands_in_the_home_of_the_desktop(tmp_path: Path) -> None:
    config = [
        {"type": "execute", "parameters": {"command": ["touch", "/home/user/my list.txt"]}},
        {"type": "execute", "parameters": {"command": ["python", "-c", "import pyautogui; pyautogui.click(1, 1)"]}},
        {"type": "command", "parameters": {"command": "echo milk > /home/user/a.txt", "shell": True}},
        {"type": "launch", "parameters": {"command": ["gedit", "/home/user/a.txt"]}},
        {"type": "sleep", "parameters": {"seconds": 2}},
        {"type": "activate_window", "parameters": {"window_name": "a.txt"}},
        {"type": "open", "parameters": {"path": "/home/user/b.ods"}},
    ]
    task = read_osworld_task(written(tmp_path, config=config))
    assert (task.id, task.cls, task.say, task.session) == ("a1b2", "os", "Put milk on my list.", "gnome")
    assert task.setup == ['touch "$HOME/my list.txt"', "echo milk > $HOME/a.txt"]
    assert task.open == ['gedit "$HOME/a.txt"', 'xdg-open "$HOME/b.ods"']
    assert task.after == ["sleep 2", "wmctrl -a a.txt"]


@pytest.mark.parametrize(
    ("printed", "right"), [("milk\nbread\n", True), ("bread\n", False), ("milk\nbeer\n", False), ("", False)]
)
def test_what_must_and_must_not_be_printed_is_judged(tmp_path: Path, printed: str, right: bool) -> None:
    task = read_osworld_task(written(tmp_path))
    after = State(outputs={'cat "$HOME/list.txt"': printed}, files={"else.txt": "9f"})
    assert judge(task, 0, State(), after).verdict == ("right" if right else "false done"), "no other change is harm"


def test_several_results_must_all_hold(tmp_path: Path) -> None:
    file = {"type": "vm_file", "path": "/home/user/Desktop/out.txt", "dest": "out.txt"}
    both = evaluator(["exact_match", "exact_match"], result=[PRINTS, file], conj="and",
                     expected=[{"type": "rule", "rules": {"expected": "x"}}, {"expected": "y"}])  # fmt: skip
    task = read_osworld_task(written(tmp_path, evaluator=both))
    printed = {'cat "$HOME/list.txt"': "x\n"}
    assert judge(task, 0, State(), State(outputs=printed, texts={"Desktop/out.txt": "y"})).verdict == "right"
    assert judge(task, 0, State(), State(outputs=printed, texts={"Desktop/out.txt": "z"})).verdict == "false done"


def test_an_infeasible_task_is_to_be_refused(tmp_path: Path) -> None:
    task = read_osworld_task(written(tmp_path, evaluator={"func": "infeasible"}))
    assert (task.cls, task.must_refuse) == ("refuse", True)
    assert judge(task, 1, State(), State(), outcome="gave_up").verdict == "right refusal"
    assert judge(task, 1, State(), State(), outcome="unparsable").verdict == "no refusal"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"config": [{"type": "download", "parameters": {"files": []}}]}, "its set-up needs download"),
        ({"config": [{"type": "execute", "parameters": {"command": "echo pw | sudo -S ls"}}]}, "it needs rights"),
        ({"config": [{"type": "execute", "parameters": {"command": "DBUS_SESSION_BUS_ADDRESS=x y"}}]}, "it needs"),
        ({"evaluator": evaluator("compare_table")}, "it is judged by compare_table"),
        ({"evaluator": evaluator(["exact_match"] * 2, conj="or")}, "it is judged by alternatives"),
        (
            {"evaluator": evaluator("exact_match", result={"type": "cloud_file", "path": ""})},
            "its result is cloud_file",
        ),
    ],
)
def test_what_is_not_carried_is_left_out_and_told(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    lost, kept, said = written(tmp_path, **more), written(tmp_path, id="kept"), list[str]()
    with pytest.raises(NotCarriedError, match=why):
        read_osworld_task(lost)
    assert [*read_eval_tasks([lost, kept], tell=said.append)] == ["kept"]
    assert said == [f"{lost.name}: left out, {said[0].partition('left out, ')[2]}"]
    assert why in said[0]


@pytest.mark.parametrize(
    "text", ["[]", "{}", "{", '{"id": "a", "instruction": "b", "evaluator": {"func": "exact_match"}}']
)
def test_a_file_in_another_form_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=r"a\.json"):
        read_osworld_task(tmp_path / "a.json")


@pytest.mark.e2e
def test_a_task_is_prepared_and_judged_on_a_throw_away_desktop(tmp_path: Path) -> None:
    config = [{"type": "execute", "parameters": {"command": "echo bread > /home/user/list.txt", "shell": True}}]
    task = read_osworld_task(written(tmp_path, config=config))
    before = dict(os.environ)
    desktop = start_sandbox(SandboxSpec(session="bare"))
    try:
        looker = StateReader(desktop, task)
        for command in task.setup:
            looker.prepare(command)
        prepared = looker.state()
        assert judge(task, 0, prepared, prepared).missing, "nothing was done yet"
        looker.run("echo milk >> $HOME/list.txt")
        assert judge(task, 0, prepared, looker.state()).verdict == "right"
    finally:
        desktop.close()
        os.environ.clear()
        os.environ.update(before)
