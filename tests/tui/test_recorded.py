"""Recorded runs in the application: the list, one run, two side by side."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.terminal import VIEWPORT, Bench, matches, settled, shown, write_run
from textual.widgets import DataTable

from agent.core.actions import Action, Click, PressKeys, TypeText, describe
from agent.core.geometry import DesktopPoint
from agent.record.read import read_bundle
from agent.tui.recorded import view_of
from agent.tui.screens.recorded import RecordedScreen, ReplayScreen, compare
from agent.tui.screens.runs import RunsScreen
from agent.tui.view import Row
from agent.tui.widgets.history import History


def test_a_view_of_a_bundle_tells_what_was_recorded(tmp_path: Path) -> None:
    view = view_of(read_bundle(write_run(tmp_path, "one", 2)))
    assert [row.words for row in view.rows] == ["click at 3,4"] * 2
    assert view.rows[1].viewport == VIEWPORT
    assert view.rows[1].seconds == pytest.approx(0.41)
    assert (view.state, view.status, view.stage) == ("ended", 0, "It is open.")


def test_of_a_bundle_full_of_nonsense_the_readable_steps_are_shown(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "bad", 0)
    (folder / "steps.jsonl").write_text('{"step": "x", "image": 3, "target": [], "milliseconds": {"a": "b"}}\n{}\n[]\n')
    assert len(view_of(read_bundle(folder)).rows) == 1


async def test_runs_are_listed_searched_opened_and_run_again(bench: Bench) -> None:
    runs = bench.folder / "runs"
    write_run(runs, "20260101-a", 2)
    write_run(runs, "20260102-b", 3, instruction="write a letter", outcome="stopped", status=130)
    async with bench.app(None).run_test(size=(100, 24)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        matches(pilot, "runs-100x24")
        await pilot.press("slash", *"settings", "enter")
        table = pilot.app.screen.query_one(DataTable)
        assert table.row_count == 1
        await pilot.press("enter")
        assert isinstance(pilot.app.screen, RecordedScreen)
        await settled(pilot)
        assert "thought 1" in shown(pilot)
        await pilot.press("down")
        await pilot.pause()
        assert "thought 2" in shown(pilot)
        await pilot.press("escape", "ctrl+r")
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
        await settled(pilot)
        await pilot.press("c", "down", "c")
        await settled(pilot)
        assert "first of two" in shown(pilot)
        assert "second of two" in shown(pilot)
        assert "The first 2 steps are the same; 1 differs" in shown(pilot)
        assert [history.cursor for history in pilot.app.screen.query(History)] == [2, 2]  # the first difference
        assert "no such step here" in shown(pilot)
        await pilot.press("up")
        await pilot.pause()
        assert [history.cursor for history in pilot.app.screen.query(History)] == [1, 1]
        await pilot.press("n")
        await pilot.pause()
        assert [history.cursor for history in pilot.app.screen.query(History)] == [2, 2]


def a_row(number: int, action: Action[DesktopPoint], **changes: Any) -> Row:
    return Row(number, **{"mark": "done", "words": describe(action), "target": action} | changes)


def test_two_runs_are_the_same_up_to_their_first_difference() -> None:
    left = [a_row(1, Click(DesktopPoint(100, 100))), a_row(2, TypeText("dark")), a_row(3, PressKeys(("enter",)))]
    right = [a_row(1, Click(DesktopPoint(104, 97))), a_row(2, TypeText("light")), a_row(3, PressKeys(("enter",)))]
    found = compare(left, right)
    assert found.differing == [1]
    assert [row.words for row in found.left][1:] == ["≠ type “dark”", "press enter"]
    assert found.words.startswith("The first step is the same; 1 differs.")


def test_a_step_that_one_run_lacks_does_not_part_what_follows() -> None:
    same = [a_row(2, TypeText("dark")), a_row(3, PressKeys(("enter",)))]
    found = compare([a_row(1, Click(DesktopPoint(9, 9))), *same], same)
    assert found.differing == [0]
    assert [row.words for row in found.right] == ["no such step here", "type “dark”", "press enter"]
    assert len(found.left) == len(found.right) == 3


def test_a_step_that_failed_is_not_the_same_as_one_that_was_done() -> None:
    action = PressKeys(("enter",))
    assert compare([a_row(1, action)], [a_row(1, action, mark="failed")]).differing == [0]
    assert compare([a_row(1, action)], [a_row(1, action)]).words == "Every step is the same."
    assert compare([], []).words == "Neither has a step."


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_every_step_of_both_runs_is_shown_once_and_only_equal_ones_are_called_the_same(
    one: list[str], other: list[str]
) -> None:
    left, right = ([a_row(at, TypeText(text)) for at, text in enumerate(texts)] for texts in (one, other))
    found = compare(left, right)
    assert len(found.left) == len(found.right)
    for rows, texts in ((found.left, one), (found.right, other)):
        assert [row.target.text for row in rows if row.number is not None] == texts  # type: ignore[union-attr]
    for at, (mine, theirs) in enumerate(zip(found.left, found.right, strict=True)):
        assert (at in found.differing) == (mine.target != theirs.target)


async def test_a_replay_says_whether_the_decisions_come_out_the_same(bench: Bench) -> None:
    write_run(bench.folder / "runs", "20260101-a", 2)
    async with bench.app(None).run_test(size=(120, 40), notifications=True) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        assert isinstance(pilot.app.screen, RunsScreen)
        await pilot.press("p")
        await settled(pilot)
        assert isinstance(pilot.app.screen, ReplayScreen)
        assert "2 decisions replayed" in shown(pilot)
        assert "these differ now: 1, 2" in shown(pilot)  # "<answer>" is no answer of that family
        assert [row.number for row in pilot.app.screen.view.rows] == [1, 2]
        assert "≠" in shown(pilot) and "differs from the recording: click at 3,4" in shown(pilot)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunsScreen)


async def test_a_report_opens_on_the_persons_own_display(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(bench.folder / "runs", "20260101-a", 1)
    opened: list[str] = []
    monkeypatch.setattr(
        "agent.tui.screens.runs.open_browser", lambda _, environ: opened.append(environ["DISPLAY"]) or True
    )
    monkeypatch.setenv("DISPLAY", ":1")
    async with bench.app(None).run_test(size=(120, 40)) as pilot:
        monkeypatch.setenv("DISPLAY", ":6974")  # as a sandbox does
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        await pilot.press("h")
        await settled(pilot)
    assert opened == [":1"]


async def test_a_replay_that_cannot_be_done_says_why(bench: Bench) -> None:
    folder = write_run(bench.folder / "runs", "20260101-a", 1)
    (folder / "steps.jsonl").write_text('{"step": 1}\n')
    async with bench.app(None).run_test(size=(120, 40)) as pilot:
        pilot.app.push_screen(ReplayScreen(read_bundle(folder)))
        await settled(pilot)
        assert "is damaged" in shown(pilot)


async def test_a_run_is_shown_in_short_beside_the_list(bench: Bench) -> None:
    runs = bench.folder / "runs"
    one = write_run(runs, "20260102-b", 3, engine="vllm", model="MAI-UI-8B", message="It is\x1b[31m open.")
    lines = [json.loads(line) for line in (one / "steps.jsonl").read_text().splitlines()]
    for line, answer in zip(lines, ("allowed", "allowed", "refused"), strict=True):
        line["approval"] = {"reason": "it deletes", "scope": "", "answer": answer, "by": "you"}
    (one / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_run(runs, "20260101-a", 1, instruction="write a letter", outcome="gave_up", status=1)
    async with bench.app(None).run_test(size=(140, 40)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        for words in ("vllm · MAI-UI-8B", "asked   3 times: 2", "It is", "done in 2.5 s"):
            assert words in shown(pilot)
        assert "\x1b" not in shown(pilot)
        await pilot.press("j")
        await settled(pilot)
        assert "asked   nothing" in shown(pilot) and "gave up" in shown(pilot)


async def test_the_list_can_be_filtered_by_outcome_and_keeps_what_was_chosen(bench: Bench) -> None:
    runs = bench.folder / "runs"
    write_run(runs, "20260101-a", 1)
    write_run(runs, "20260102-b", 1, outcome="gave_up", engine="vllm")
    write_run(runs, "20260103-c", 1, outcome="stopped")
    async with bench.app(None).run_test(size=(80, 24)) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        table = pilot.app.screen.query_one(DataTable)
        await pilot.press("j")  # the one that gave up
        for filtered, count in (("not done", 2), ("done", 1), ("", 3)):
            await pilot.press("f")
            assert table.row_count == count and f"{count} of 3 runs" in shown(pilot)
            assert not filtered or f"only those {filtered}" in shown(pilot)
        await pilot.press("slash", *"vllm")
        await pilot.pause()
        assert table.row_count == 1


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)])
async def test_the_list_of_runs_has_no_horizontal_scrollbar(bench: Bench, size: tuple[int, int]) -> None:
    write_run(bench.folder / "runs", "20260101-a", 1, instruction="open settings and " * 20)
    async with bench.app(None).run_test(size=size) as pilot:
        pilot.app.action_runs()  # type: ignore[attr-defined]
        await settled(pilot)
        table = pilot.app.screen.query_one(DataTable)
        assert table.virtual_size.width <= table.size.width
        assert "open settings" in shown(pilot)


async def test_two_thousand_steps_cost_a_screenful(bench: Bench) -> None:
    folder = write_run(bench.folder / "runs", "long", 2000)
    async with bench.app(None).run_test(size=(120, 40)) as pilot:
        began = time.monotonic()
        pilot.app.push_screen(RecordedScreen(folder))
        await pilot.pause()
        await settled(pilot)
        await pilot.press("end")
        await pilot.pause()
        assert "thought 2000" in shown(pilot)
        assert len(pilot.app.screen.query("*")) < 60  # widgets, however many steps there are
        print(f"{time.monotonic() - began:.2f} s")
