"""Recorded runs in the application: the list, one run, two side by side."""

import json
import time
from pathlib import Path

import pytest
from stubs.terminal import VIEWPORT, Bench, matches, shown
from textual.widgets import DataTable

from agent.actions import Click
from agent.actions import to_json as action_json
from agent.geometry import DesktopPoint
from agent.record.read import list_bundles, read_bundle
from agent.tui.recorded import view_of
from agent.tui.screens.recorded import RecordedScreen
from agent.tui.screens.runs import RunsScreen
from agent.tui.widgets.history import History

POINT = DesktopPoint(3.0, 4.0)


def write_run(runs: Path, name: str, steps: int, **meta: object) -> Path:
    folder = runs / name
    (folder / "screens").mkdir(parents=True)
    values = {"instruction": "open settings", "outcome": "done", "status": 0, "steps": steps, "seconds": 2.5,
              "started": "2026-11-21T09:00:00.000+00:00", "message": "It is open.", "engine": "literal"}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(values | meta))
    viewport = {"left": 0, "top": 0, "width": 960, "height": 540, "captured_width": 960, "captured_height": 540}
    lines = [
        {"step": number, "at": number * 1.0, "before": [],
         "image": {"file": f"screens/{number:04d}.png", "width": 960, "height": 544},
         "viewport": viewport, "answers": [{"raw": "<answer>", "failure": None}], "thought": f"thought {number}",
         "target": action_json(Click(POINT)), "approval": None, "executed": True, "dry_run": False,
         "detail": "click at 3,4", "error": None, "milliseconds": {"model": 400.0, "act": 10.0},
         "tokens": {"prompt": 10, "completion": 5, "cached": None}}
        for number in range(1, steps + 1)
    ]  # fmt: skip
    (folder / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_view_of_a_bundle_tells_what_was_recorded(tmp_path: Path) -> None:
    view = view_of(read_bundle(write_run(tmp_path, "one", 2)))
    assert [row.words for row in view.rows] == ["click at 3,4"] * 2
    assert view.rows[1].viewport == VIEWPORT
    assert view.rows[1].seconds == pytest.approx(0.41)
    assert (view.state, view.status, view.stage) == ("ended", 0, "It is open.")


def test_a_bundle_full_of_nonsense_still_makes_a_view(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "bad", 0)
    (folder / "steps.jsonl").write_text('{"step": "x", "image": 3, "target": [], "milliseconds": {"a": "b"}}\n{}\n[]\n')
    assert len(view_of(read_bundle(folder)).rows) == 2


def test_the_list_of_runs_is_newest_first_and_leaves_out_what_is_no_run(tmp_path: Path) -> None:
    write_run(tmp_path, "20260101-a", 1)
    write_run(tmp_path, "20260102-b", 3, outcome="stopped")
    (tmp_path / "notes").mkdir()
    (tmp_path / "20260103-c").mkdir()
    (tmp_path / "20260103-c" / "run.json").write_text("{")
    assert [(run.path.name, run.run.steps, run.outcome) for run in list_bundles(tmp_path)] == [
        ("20260102-b", 3, "stopped"), ("20260101-a", 1, "done"),
    ]  # fmt: skip
    assert list_bundles(tmp_path / "none") == []


async def test_runs_are_listed_searched_opened_and_run_again(bench: Bench) -> None:
    runs = bench.folder / "runs"
    write_run(runs, "20260101-a", 2)
    write_run(runs, "20260102-b", 3, instruction="write a letter", outcome="stopped", status=130)
    async with bench.app(None).run_test(size=(100, 24)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        matches(pilot, "runs-100x24")
        await pilot.press("slash", *"settings", "enter")
        table = pilot.app.screen.query_one(DataTable)
        assert table.row_count == 1
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, RecordedScreen)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "thought 1" in shown(pilot)
        await pilot.press("down")
        await pilot.pause()
        assert "thought 2" in shown(pilot)
        await pilot.press("escape", "r")
        await pilot.pause()
        assert "open settings" in shown(pilot)
        await pilot.press("enter")
        assert bench.conductor.started == ["open settings"]


async def test_two_runs_are_laid_side_by_side(bench: Bench) -> None:
    runs = bench.folder / "runs"
    write_run(runs, "20260101-a", 2, instruction="first of two")
    write_run(runs, "20260102-b", 3, instruction="second of two")
    async with bench.app(None).run_test(size=(120, 40)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("c", "down", "c")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert "first of two" in shown(pilot)
        assert "second of two" in shown(pilot)
        await pilot.press("down")
        await pilot.pause()
        assert [history.cursor for history in pilot.app.screen.query(History)] == [1, 1]


async def test_a_replay_says_whether_the_decisions_come_out_the_same(bench: Bench) -> None:
    write_run(bench.folder / "runs", "20260101-a", 2)
    async with bench.app(None).run_test(size=(120, 40), notifications=True) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.press("p")
        await pilot.app.workers.wait_for_complete()
        assert any("2 decisions replayed" in note.message for note in pilot.app._notifications)


async def test_two_thousand_steps_cost_a_screenful(bench: Bench) -> None:
    folder = write_run(bench.folder / "runs", "long", 2000)
    async with bench.app(None).run_test(size=(120, 40)) as pilot:
        began = time.monotonic()
        pilot.app.push_screen(RecordedScreen(folder))
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.press("end")
        await pilot.pause()
        assert "thought 2000" in shown(pilot)
        assert len(pilot.app.screen.query("*")) < 60  # widgets, however many steps there are
        print(f"{time.monotonic() - began:.2f} s")
