"""Run bundles: complete at every moment, private, and readable whatever happened."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stubs.endpoint import act
from stubs.events import PICTURE, finished, record, run_of, started, step

from agent.events.run_events import (
    Acted,
    ApprovalAsked,
    ApprovalGiven,
    Decided,
    Event,
    Observed,
    RunFinished,
    StepFinished,
    Warned,
)
from agent.record.bundle import Recorder, run_id
from agent.record.read import find_bundle, list_bundles, read_bundle
from foundation.chat_stream import Answer, ToolCall
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_bundle_holds_what_the_model_saw_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = record(tmp_path / "state" / "runs", run_of(2))
    finally:
        os.umask(before)
    assert sorted(str(item.relative_to(path)) for item in path.rglob("*")) == [
        "run.json", "screens", "screens/0001.png", "screens/0002.png", "steps.jsonl",
    ]  # fmt: skip
    assert mode(path) == mode(path / "screens") == 0o700
    assert {mode(item) for item in path.rglob("*") if item.is_file()} == {0o600}
    assert (path / "screens/0002.png").read_bytes() == PICTURE.data


def test_a_step_is_recorded_with_answer_action_and_numbers(tmp_path: Path) -> None:
    bundle = read_bundle(record(tmp_path, run_of(2)))
    first = bundle.steps[0]
    assert [entry.step for entry in bundle.steps] == [1, 2]
    assert first.answers[0].raw.startswith("<thinking>")
    assert first.thought == "I click."
    assert first.action == {"type": "click", "point": [101.0, 250.0], "button": "left", "count": 1}
    assert first.grid == [999, 999]
    assert first.target is not None
    assert first.target["point"] == pytest.approx([100 + 800 * 101 / 999, 50 + 600 * 250 / 999])
    assert (first.executed, first.dry_run, first.error, first.changed) == (True, False, None, True)
    assert first.tokens.model_dump() == {"prompt": 100, "completion": 20, "cached": 60}
    assert first.milliseconds == {"capture": 2.0, "fit": 3.0, "model": 500.0, "act": 30.0}
    assert first.image is not None
    assert first.image.model_dump() == {"file": "screens/0001.png", "width": 800, "height": 608, "tokens": 475}


def test_reasoning_and_calls_that_a_server_tells_apart_are_recorded_as_they_came(tmp_path: Path) -> None:
    answer = Answer("I click.", "The button is blue.", (ToolCall("call-1", "computer", '{"action": "click"}'),))
    events = step(1)
    decided = events[2]
    assert isinstance(decided, Decided)
    events[2] = replace(decided, answer=answer, model="MAI-UI-8B")
    first = read_bundle(record(tmp_path, [started(), *events, finished()])).steps[0]
    assert first.answers[0].answer == answer
    assert first.answers[0].model == "MAI-UI-8B"
    plain = read_bundle(record(tmp_path, run_of(1))).steps[0].answers[0]
    assert plain.parts is None
    assert plain.answer == Answer(plain.raw)


def test_every_action_and_image_of_a_step_is_recorded_with_what_became_of_it(tmp_path: Path) -> None:
    observed, _, decided, acted, ended = step(1)
    assert isinstance(observed, Observed)
    assert isinstance(decided, Decided)
    assert isinstance(acted, Acted)
    assert isinstance(ended, StepFinished)
    events: list[Event] = [
        replace(observed, images=(PICTURE, PICTURE)),
        replace(decided, actions=decided.actions * 2, targets=decided.targets * 2),
        acted,
        ApprovalAsked(1, acted.target, "risky", "clicking", index=1),
        ApprovalGiven(1, allowed=False, by="you", note="not that one", index=1),
        ended,
    ]
    bundle = read_bundle(record(tmp_path, [started(), *events, finished(steps=1)]))
    [only] = bundle.steps
    assert [image.file for image in only.images] == ["screens/0001.png", "screens/0001-2.png"]
    assert all((bundle.path / image.file).read_bytes() == PICTURE.data for image in only.images)
    first, second = only.actions
    assert (first.executed, first.approval, second.executed) == (True, None, False)
    assert second.approval is not None
    assert (second.approval.reason, second.approval.allowed, second.approval.note) == ("risky", False, "not that one")
    assert second.target == first.target == only.target
    assert (only.executed, only.approval, only.image) == (True, None, only.images[0])


def test_runs_of_one_second_are_listed_as_they_ended_and_a_newer_format_is_refused(tmp_path: Path) -> None:
    for moment, name in enumerate(("20261127-225200-write-b", "20261127-225200-open-a", "20261127-225159-z"), 1):
        file = tmp_path / name / "run.json"
        file.parent.mkdir()
        file.write_text('{"instruction": "x"}')
        os.utime(file, (moment, moment))
    assert [one.path.name[9:] for one in list_bundles(tmp_path)] == ["225200-open-a", "225200-write-b", "225159-z"]
    assert find_bundle(tmp_path, "last").path.name == "20261127-225200-open-a"
    file.write_text('{"format": 99}')
    with pytest.raises(UsageError, match="by a newer mai-agent"):
        read_bundle(file.parent)


def test_the_list_of_runs_reads_no_step_of_a_run_that_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = record(tmp_path / "whole", run_of(3))
    cut = record(tmp_path / "cut", run_of(3)[:-1])
    (whole / "steps.jsonl").unlink()
    monkeypatch.setattr("agent.record.read.StepRecord.model_validate_json", lambda _: pytest.fail("a step was read"))
    assert [bundle.step_count for bundle in list_bundles(tmp_path / "whole")] == [3]
    assert [bundle.step_count for bundle in list_bundles(tmp_path / "cut")] == [3]
    assert [bundle.path for bundle in list_bundles(cut.parent, 0)] == []


def test_the_run_is_recorded_with_its_end(tmp_path: Path) -> None:
    bundle = read_bundle(record(tmp_path, run_of(2)))
    assert bundle.outcome == "done"
    assert bundle.run.status == 0
    assert bundle.run.message == "The task is done."
    assert bundle.run.warnings == ["a remark"]
    assert bundle.run.instruction == "open settings"
    assert bundle.run.tokens is not None
    assert bundle.run.tokens.model_dump() == {"prompt": 200, "completion": 40, "cached": 120}


def test_the_bundle_can_be_read_after_every_single_event(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "open settings")
    done = 0
    for event in run_of(4):
        recorder.handle(event)
        done += isinstance(event, StepFinished)
        bundle = read_bundle(recorder.path)
        assert len(bundle.steps) == done
        assert bundle.outcome == ("done" if isinstance(event, RunFinished) else "running")
    recorder.close()
    recorder.close()


KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
from stubs.events import started, step
from agent.record.bundle import Recorder
recorder = Recorder(Path(sys.argv[1]), "open settings")
for event in [started(), *step(1), *step(2), *step(3)[:3]]:
    recorder.handle(event)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_process_that_is_killed_leaves_every_finished_step_and_reads_as_interrupted(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": tests},
    )  # fmt: skip
    with process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        (running,) = list_bundles(tmp_path)
        assert running.outcome == "running"
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    (bundle,) = list_bundles(tmp_path)
    assert bundle.outcome == "interrupted"
    assert [entry.step for entry in bundle.steps] == [1, 2]


def test_another_process_that_got_the_number_later_does_not_count_as_the_run(tmp_path: Path) -> None:
    path = record(tmp_path, run_of(1)[:-1])
    meta = json.loads((path / "run.json").read_text())
    meta["started"] = "2001-01-01T00:00:00.000+00:00"  # long before this process, whose number it holds
    (path / "run.json").write_text(json.dumps(meta))
    assert read_bundle(path).outcome == "interrupted"


@pytest.mark.parametrize("cut", [1, 10, 300])
def test_a_last_line_that_was_cut_is_left_out_and_nothing_else(tmp_path: Path, cut: int) -> None:
    path = record(tmp_path, run_of(3))
    lines = path / "steps.jsonl"
    lines.write_bytes(lines.read_bytes()[: -1 - cut])
    assert [entry.step for entry in read_bundle(path).steps] == [1, 2]


def test_a_step_under_way_is_kept_when_the_run_ends_in_the_middle_of_it(tmp_path: Path) -> None:
    ending = RunFinished("stopped", ExitStatus.STOPPED, "Stopped: Ctrl-C.", 1, 1.0, finished().usage)
    bundle = read_bundle(record(tmp_path, [started(), *step(1)[:3], ending]))
    assert bundle.steps[0].executed is False
    target = bundle.steps[0].target
    assert target is not None
    assert target["type"] == "click"
    assert bundle.outcome == "stopped"


@pytest.mark.parametrize(
    "odd", ["line\u2028separator", "next\x85line", "\x0b\x0c\x1c", "lone \ud800 half", "\x00", "漢字"]
)
def test_whatever_a_model_writes_its_step_reads_back(tmp_path: Path, odd: str) -> None:
    decided = step(1)[2]
    assert isinstance(decided, Decided)
    events = step(1)
    events[2] = Decided(
        1, odd, odd, decided.calls, decided.actions, decided.targets, None, decided.usage, decided.milliseconds
    )
    path = record(tmp_path, [started(odd), Warned(odd), *events, finished(odd, 1)], odd)
    bundle = read_bundle(path)
    readable = odd.encode("utf-8", "replace").decode()
    assert bundle.steps[0].thought == readable
    assert bundle.run.message == readable


def test_a_message_of_any_length_leaves_run_json_readable(tmp_path: Path) -> None:
    events: list[Event] = [started(), *(Warned("w" * 5000) for _ in range(50)), *step(1), finished("漢" * 50_000, 1)]
    bundle = read_bundle(record(tmp_path, events, "do " * 9000))
    assert bundle.outcome == "done"
    assert bundle.run.instruction == "do " * 9000


# A disk that fills up


class FullDisk:
    """os.write on a disk with so many free bytes; writing over what is there costs nothing, as on ext4 and tmpfs."""

    def __init__(self, free: int) -> None:
        self.free = free
        self._write = os.write

    def write(self, handle: int, view: memoryview) -> int:
        data = bytes(view)
        size = os.fstat(handle).st_size
        at = size if _appends(handle) else os.lseek(handle, 0, os.SEEK_CUR)
        grows = max(0, at + len(data) - size)
        if grows > self.free:
            data = data[: len(data) - (grows - self.free)]
            grows = self.free
            if not data:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.free -= grows
        return self._write(handle, data)


def _appends(handle: int) -> bool:
    import fcntl

    return bool(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_APPEND)


LONG: list[Event] = [started("do it " * 500), *(Warned("trouble " * 30) for _ in range(25))]


@pytest.mark.parametrize("events", [run_of(4), [*LONG, *run_of(4)[1:]]], ids=["short", "long"])
def test_a_full_disk_ends_in_a_sentence_and_leaves_a_readable_bundle_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    instruction = "do it " * 500
    ends: set[Any] = set()
    for number, free in enumerate(range(0, 26_000, 331)):
        runs = tmp_path / str(number)
        recorder = Recorder(runs, instruction)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", FullDisk(free).write)
            try:
                for event in events:
                    recorder.handle(event)
            except EnvironmentLacksError as error:
                assert "No space left on device" in str(error)
                assert "--runs" in str(error)
                recorder.abandon(RunFinished("failed", error.exit_status, str(error), 0, 0.0, finished().usage))
        recorder.close()
        bundle = read_bundle(recorder.path)
        ends.add(bundle.outcome)
        assert bundle.outcome in ("done", "failed"), free
        for entry in bundle.steps:
            image = entry.image
            assert image is None or (recorder.path / image.file).stat().st_size == len(PICTURE.data)
    assert ends == {"done", "failed"}


def test_a_disk_that_is_full_from_the_start_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", FullDisk(100).write)
    with pytest.raises(EnvironmentLacksError, match="cannot be recorded"):
        Recorder(tmp_path, "x")


def test_a_folder_that_cannot_be_made_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentLacksError, match="--runs"):
        Recorder(tmp_path / "file" / "runs", "x")


# Finding bundles


def test_bundles_are_listed_newest_first_and_other_folders_left_out(tmp_path: Path) -> None:
    for name in ("20260101-000000-a-0001", "20260102-000000-b-0002"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text('{"outcome": "done"}')
    (tmp_path / "other").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    assert [bundle.path.name[-1] for bundle in list_bundles(tmp_path)] == ["2", "1"]
    assert list_bundles(tmp_path / "none") == []


def test_a_bundle_is_found_by_path_id_beginning_or_as_the_last(tmp_path: Path) -> None:
    names = ["20260101-000000-a-0001", "20260102-000000-b-0002"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    assert find_bundle(tmp_path, "last").path.name == names[1]
    assert find_bundle(tmp_path, "20260101").path.name == names[0]
    assert find_bundle(tmp_path, names[0]).path.name == names[0]
    assert find_bundle(Path("/nowhere"), str(tmp_path / names[0])).path.name == names[0]
    for name in ("2026", "x", "", "/nowhere/x"):
        with pytest.raises(UsageError, match="mai-agent runs"):
            find_bundle(tmp_path, name)


def test_ids_sort_by_time_and_can_be_recognised() -> None:
    from datetime import datetime

    early, late = (run_id("Öffne die Settings!", datetime(2026, 1, day, 9, 5)) for day in (2, 10))
    assert early < late
    assert early.startswith("20260102-090500-ffne-die-settings-")
    assert run_id("設定", datetime(2026, 1, 1)).startswith("20260101-000000-run-")


def test_a_run_that_breaks_off_masks_its_earlier_lines_too(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "log in")
    for event in [
        started(),
        *step(1, thought="the field says Tr0ub4dor&3x"),
        *step(2, act("type", text="Tr0ub4dor&3x")),
    ]:
        recorder.handle(event)
    recorder.abandon(RunFinished("failed", ExitStatus.NOT_DONE, "It broke off.", 2, 0.0, finished().usage))
    recorder.close()
    assert "Tr0ub4dor" not in (recorder.path / "steps.jsonl").read_text()
