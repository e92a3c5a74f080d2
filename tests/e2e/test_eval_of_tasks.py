"""An evaluation on real desktops with the literal engine: what is done, refused, changed by a person, and stopped."""

import json
from pathlib import Path

import pytest

from agent.cli import main

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

TASKS = """
[defaults]
class = "settings"
size = "1280x800"

[[task]]
id = "dark"
say = "open settings and enable dark mode"
expect.settings = {"xfconf xsettings /Net/ThemeName" = "Adwaita-dark"}

[[task]]
id = "no-such"
class = "refuse"
say = "open settings and click Quantum Entanglement"

[[task]]
id = "changed"
say = "create a folder called Invoices"
open = ["thunar"]
person.at = [{step = 1, say = "Also create a folder called Receipts"}]
expect.files = {"Invoices" = true, "Receipts" = true}

[[task]]
id = "stopped"
class = "stop"
say = "open Window Manager Tweaks and enable Raise windows while cycling"
person.at = [{step = 2, stops = true}]
"""


def test_runs_are_judged_and_judges_are_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tasks.toml").write_text(TASKS)
    common = ["eval", "tasks", str(tmp_path / "tasks.toml"), "--parallel", "2", "--json"]
    assert main([*common, "--out", str(tmp_path / "proof"), "--prove"]) == 0
    assert json.loads(capsys.readouterr().out) == {"tasks": 4, "proven": 4, "flaws": {}}
    status = main([*common, "--out", str(tmp_path / "out"), "--engine", "literal", "--undo"])
    told = json.loads(capsys.readouterr().out)
    rows = {row["task"]: row for row in map(json.loads, (tmp_path / "out/verdicts.jsonl").read_text().splitlines())}
    assert status == 0, told
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "dark": "right", "no-such": "right refusal", "changed": "right", "stopped": "right refusal",
    }, rows  # fmt: skip
    assert rows["stopped"]["status"] == 130
    assert (rows["dark"]["receipt"], rows["dark"]["undo"], rows["changed"]["undo"]) == ([], [], []), rows
    assert rows["dark"]["step_s"]
