"""The receipt of a run in its bundle and in everything that shows it: whole, bounded, masked, and harmless."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from record.test_bundle import FullDisk
from stubs.endpoint import act
from stubs.events import finished, printed, record, run_of, started, step
from stubs.witness import DARK

from agent.cli import main
from agent.console.printers import JsonPrinter, PlainPrinter
from agent.core.changes import Change
from agent.events.as_json import to_json
from agent.events.run_events import Event, Receipt, RunFinished
from agent.record.bundle import Recorder
from agent.record.read import mask_run, read_bundle
from agent.record.redactor import Redactor, is_masked
from agent.record.report.page import write_report
from foundation.errors import ExitStatus

PASSWORD = "Tr0ub4dor&3"
EVIL = Change("window", "\x1b[31mevil", None, "Sett\u202eings\x07\n</script><script>alert(1)</script>")
UNDO = {"store": "xfconf", "key": ["xsettings", "/Net/ThemeName"], "before": "Adwaita", "after": "Adwaita-dark"}
UNVERIFIED = RunFinished(
    "unverified", ExitStatus.NOT_DONE, "The model says so.", 2, 1.0, finished().usage,
    ("check box “Dark mode” not checked",), False,
)  # fmt: skip


def events_of(*changes: Change, end: RunFinished | None = None, **receipt: Any) -> list[Event]:
    return [*run_of(2)[:-1], Receipt(changes, **receipt), end or finished()]


def changes_in(path: Path) -> tuple[Change, ...]:
    receipt = read_bundle(path).run.receipt
    assert receipt is not None
    return receipt.receipt.changes


def test_a_bundle_holds_the_receipt_the_evidence_and_whether_it_is_verified(tmp_path: Path) -> None:
    path = record(tmp_path, events_of(DARK, end=UNVERIFIED, remarks=("KDE's settings are not known.",)))
    run = json.loads((path / "run.json").read_text())
    assert run["receipt"] == {
        "changes": [
            {
                "kind": "setting",
                "what": "xfconf xsettings /Net/ThemeName",
                "before": "Adwaita",
                "after": "Adwaita-dark",
                "undo": None,
            }
        ],
        "remarks": ["KDE's settings are not known."],
        "watched": True,
    }
    assert (run["outcome"], run["verified"]) == ("unverified", False)
    assert run["evidence"] == ["check box “Dark mode” not checked"]
    assert changes_in(path) == (DARK,)


def test_a_typed_secret_shows_in_no_change_and_in_no_file_of_the_bundle(tmp_path: Path) -> None:
    typed = step(1, act("type", "I type the password.", text=PASSWORD))
    changes = (
        Change("clipboard", "clipboard", "old", PASSWORD),
        Change("clipboard", "clipboard", None, f"60 characters: “{PASSWORD[:9]}…” and more"),
        Change("setting", "dconf /a/secret", None, f"'{PASSWORD}'", {"store": "dconf", "after": PASSWORD}),
        Change("file", f"/home/me/{PASSWORD}.txt", None, "x" * 290 + PASSWORD[:9] + "…"),
    )
    path = record(tmp_path, [started(), *typed, Receipt(changes), replace(finished(), evidence=(f"holds {PASSWORD}",))])
    write_report(path)
    for file in (path / "run.json", path / "steps.jsonl", path / "report.html"):
        assert PASSWORD[:9] not in file.read_text(), file.name
    assert is_masked(changes_in(path)[2].undo)


def test_masking_a_run_later_masks_its_receipt_too(tmp_path: Path) -> None:
    path = record(tmp_path, events_of(replace(DARK, undo=UNDO)))
    mask_run(read_bundle(path), Redactor(secrets=["Adwaita-dark"]))
    assert "Adwaita-dark" not in (path / "run.json").read_text()
    assert is_masked(changes_in(path)[0].undo)


def test_a_receipt_that_finds_no_room_leaves_the_runs_end_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = [Change("file", f"/home/me/{number}" + "x" * 250, None, "y" * 290, UNDO) for number in range(100)]
    recorder = Recorder(tmp_path, "enable dark mode")
    *before, receipt, end = events_of(*changes)
    for event in before:
        recorder.handle(event)
    monkeypatch.setattr(os, "write", FullDisk(0).write)
    recorder.handle(receipt)
    recorder.handle(end)
    bundle = read_bundle(recorder.path)
    assert bundle.outcome == "done"
    assert bundle.run.receipt is not None
    assert (bundle.run.receipt.changes, bundle.run.receipt.watched) == ([], False)


def test_a_run_that_could_not_begin_says_that_it_touched_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "enable dark mode")
    recorder.abandon(RunFinished("failed", ExitStatus.ENVIRONMENT, "There is no display.", 0, 0.0, finished().usage))
    receipt = read_bundle(recorder.path).run.receipt
    assert receipt is not None
    assert receipt.remarks == ["The run ended before it touched anything."]


def test_a_run_that_broke_off_after_an_action_does_not_say_that_it_touched_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "enable dark mode")
    for event in events_of(DARK)[:-2]:
        recorder.handle(event)
    recorder.abandon(RunFinished("failed", ExitStatus.ENVIRONMENT, "The disk is full.", 0, 0.0, finished().usage))
    receipt = read_bundle(recorder.path).run.receipt
    assert receipt is not None
    assert receipt.remarks == ["The run broke off, so it is not known what it changed."]


def test_plain_lines_end_with_what_changed_and_what_shows_it() -> None:
    out = printed(PlainPrinter, events_of(DARK, end=UNVERIFIED)[-2:])
    assert out.splitlines() == [
        "what changed:",
        "  setting xfconf xsettings /Net/ThemeName: Adwaita -> Adwaita-dark",
        "evidence: check box “Dark mode” not checked",
        "not confirmed: The model says so. (2 steps, 1.0 s)",
    ]


def test_json_lines_tell_the_receipt_before_the_end_and_not_how_to_undo_it() -> None:
    out = printed(JsonPrinter, events_of(replace(DARK, undo=UNDO), end=UNVERIFIED))
    *_, receipt, end = map(json.loads, out.splitlines())
    assert receipt["event"] == "Receipt"
    assert receipt["changes"] == [
        {"kind": "setting", "what": "xfconf xsettings /Net/ThemeName", "before": "Adwaita", "after": "Adwaita-dark"}
    ]
    assert (end["event"], end["verified"], end["evidence"]) == ("RunFinished", False, list(UNVERIFIED.evidence))


def test_show_and_report_say_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path, events_of(DARK, end=UNVERIFIED))
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-4:] == [
        "what changed:",
        "  setting xfconf xsettings /Net/ThemeName: Adwaita -> Adwaita-dark",
        "evidence: check box “Dark mode” not checked",
        "unverified: The model says so.",
    ]
    [block] = re.findall(r'id="data">(.*?)</script>', write_report(path).path.read_text(), re.DOTALL)
    run = json.loads(block)["run"]
    assert run["changes"] == [str(DARK)]
    assert run["evidence"] == list(UNVERIFIED.evidence)
    assert ["verified", "no"] in run["facts"]


def test_an_event_masked_for_a_screen_keeps_everything_else() -> None:
    redactor = Redactor(secrets=["Adwaita-dark"])
    masked = redactor.event(Receipt((replace(DARK, undo=UNDO),), ("Adwaita-dark",)))
    assert isinstance(masked, Receipt)
    assert "Adwaita-dark" not in str(to_json(masked))
    assert masked.changes[0].undo == UNDO
