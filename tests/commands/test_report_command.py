"""`mai-agent report RUN`: files written, and said."""

import json
import os
import re
from datetime import datetime
from pathlib import Path

import pytest
from record.bundles import a_bundle, a_step

from agent.cli import main
from agent.record.read import read_bundle


def test_a_report_is_written_into_the_run_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_bundle(tmp_path / "20261121-080405-a-7b81", [a_step(1), a_step(2, image=None)])
    assert main(["report", "last", "--runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/20261121-080405-a-7b81/report.html" in said
    assert "1 of 2 steps have no screenshot" in said
    assert (tmp_path / "20261121-080405-a-7b81/report.html").is_file()


def test_json_says_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1), a_step(2)])
    output = tmp_path / "out.html"
    assert main(["report", str(bundle.path), "--output", str(output), "--webp", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "report": str(output), "bytes": output.stat().st_size, "steps": 2, "pictures": 2, "missing": 0, "reduced": 0,
        "webp": str(tmp_path / "run.webp"), "webp_bytes": (tmp_path / "run.webp").stat().st_size, "webp_frames": 2,
    }  # fmt: skip


def test_an_animation_goes_where_it_is_asked_to(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    assert main(["report", str(bundle.path), "--webp", str(tmp_path / "other.webp")]) == 0
    assert (tmp_path / "other.webp").is_file()


@pytest.mark.parametrize(
    ("name", "why"), [("nowhere/out.html", r"There is no folder .*/nowhere\. Make it"), ("", r" is a folder\. Name a")]
)
def test_a_place_that_cannot_be_written_to_is_told_for_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    assert main(["report", str(bundle.path), "--output", str(tmp_path / name)]) == 3
    assert re.search(why, capsys.readouterr().err)


def test_texts_can_be_masked_on_request(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1, thought="Ada and Charles")])
    assert main(["report", str(bundle.path), "--redact", "Ada", "--redact", "Charles"]) == 0
    page = (bundle.path / "report.html").read_text()
    assert "Ada" not in page
    assert "[redacted 3 chars] and [redacted 7 chars]" in page


def test_a_text_can_be_masked_in_the_run_itself_for_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1, thought="Ada again"), a_step(2)], instruction="write to Ada")
    pictures = sorted((path.name, path.read_bytes()) for path in (bundle.path / "screens").iterdir())
    assert main(["report", str(bundle.path), "--redact", "Ada", "--redact-run"]) == 0
    assert "2 of the run's lines were masked" in capsys.readouterr().out
    for name in ("run.json", "steps.jsonl", "report.html"):
        assert "Ada" not in (bundle.path / name).read_text()
    masked = read_bundle(bundle.path)
    assert masked.run.instruction == "write to [redacted 3 chars]"
    assert [step.thought for step in masked.steps] == ["[redacted 3 chars] again", bundle.steps[1].thought]
    assert sorted((path.name, path.read_bytes()) for path in (bundle.path / "screens").iterdir()) == pictures
    assert (bundle.path / "steps.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_killed_runs_earlier_lines_can_be_masked_by_what_a_later_one_reveals(tmp_path: Path) -> None:
    later = {"type": "type", "text": "Tr0ub4dor&3x"}
    bundle = a_bundle(tmp_path / "run", [a_step(1, thought="the screen says Tr0ub4dor&3x"), a_step(2, target=later)])
    with (bundle.path / "steps.jsonl").open("a") as file:
        file.write('{"step": 3, "thought": "Tr0ub4dor&3x and')  # cut off by the kill
    assert main(["report", str(bundle.path), "--redact-run"]) == 0
    assert "Tr0ub4dor" not in (bundle.path / "steps.jsonl").read_text()
    assert len(read_bundle(bundle.path).steps) == 2


def test_a_run_without_secrets_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    before = [(bundle.path / name).read_bytes() for name in ("run.json", "steps.jsonl")]
    assert main(["report", str(bundle.path), "--redact-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["masked_lines"] == 0
    assert [(bundle.path / name).read_bytes() for name in ("run.json", "steps.jsonl")] == before


def test_a_run_that_goes_on_is_not_rewritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = datetime.now().astimezone().isoformat()
    going = a_bundle(tmp_path / "run", [a_step(1)], outcome="running", pid=os.getpid(), started=started)
    assert main(["report", str(going.path), "--redact", "Ada", "--redact-run"]) == 2
    assert "still going on" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "last", "--runs", str(tmp_path)]) == 2
    assert "mai-agent runs" in capsys.readouterr().err


def test_the_browser_is_asked_to_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    assert main(["report", str(bundle.path), "--open"]) == 0
    assert opened == [(bundle.path / "report.html").as_uri()]


def test_a_run_is_shown_with_every_action_of_a_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    actions = [
        {"target": {"type": "wait", "seconds": 1.0}, "executed": True, "fate": "done"},
        {"target": None, "error": "it went away", "fate": "failed"},
    ]
    bundle = a_bundle(tmp_path / "run", [a_step(1, actions=actions)])
    assert main(["show", str(bundle.path)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("proposed wait 1 s") + 1 :][:2] == [
        "result   done", "result   failed: it went away",
    ]  # fmt: skip
