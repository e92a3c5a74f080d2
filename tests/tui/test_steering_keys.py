"""Stopping, pausing, telling and instructing a run from its screen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stubs.terminal import CLICK, INSTRUCTION, Bench, run_screen, shown

from agent.conductor import ReplyWanted, RunBegan, RunClosed
from agent.events import run_events as events
from agent.tui.remembered import Memory
from agent.tui.widgets.prompt import Prompt


async def test_two_escapes_stop_and_one_does_not(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("escape")
        assert bench.conductor.stopped == []
        bench.clock.now += 5
        await pilot.press("escape")
        assert bench.conductor.stopped == []
        bench.clock.now += 0.5
        await pilot.press("escape")
        assert bench.conductor.stopped == ["Esc Esc"]


async def test_two_escapes_stop_also_from_within_a_line(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("t", "h", "escape", "escape")
        assert bench.conductor.stopped == ["Esc Esc"]


async def test_ctrl_c_stops_at_once_and_quits_when_nothing_runs(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("ctrl+c")
        assert bench.conductor.stopped == ["Ctrl-C"]
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not pilot.app.is_running


async def test_space_pauses_and_goes_on(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK)) as pilot:
        run = bench.run
        await pilot.press("space")
        assert run.steering.paused
        await bench.feed(pilot, events.Paused(2, "you paused it"))
        assert "paused" in shown(pilot)
        await pilot.press("space")
        assert not run.steering.paused
        await bench.feed(pilot, events.Resumed(2))
        assert run_screen(pilot).view.state == "running"


async def test_what_is_typed_while_it_runs_is_told_to_the_model(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("t", *"use the other window", "enter")
        run = bench.run
        assert run.steering.take_told() == ["use the other window"]


async def test_the_models_question_is_answered_on_the_line(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.shows(*bench.sees(1), ReplyWanted("Which account?", replies.append)) as pilot:
        assert "asks you: “Which account?”" in shown(pilot)
        bench.clock.now += 1
        await pilot.press(*"work", "enter")
        assert replies == ["work"]


async def test_the_theme_and_the_instructions_are_remembered(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        pilot.app.theme = "nord"
        await pilot.pause()
    async with bench.app(None).run_test() as pilot:
        assert pilot.app.theme == "nord"
        await pilot.press("up")
        assert run_screen(pilot).query_one(Prompt).line.value == INSTRUCTION


async def test_a_past_instruction_is_searched_and_put_on_the_line(bench: Bench) -> None:
    async with bench.app(None).run_test(size=(100, 30)) as pilot:
        for text in ("open settings", "write a letter"):
            pilot.app.memory.add_instruction(text)  # type: ignore[attr-defined]
        await pilot.press("escape", "ctrl+r")
        await pilot.pause()
        await pilot.press(*"sett")
        await pilot.app.screen.workers.wait_for_complete()
        await pilot.pause(0.3)
        await pilot.press("down", "enter")
        await pilot.pause(0.3)
        assert run_screen(pilot).query_one(Prompt).line.value == "open settings"


@pytest.mark.parametrize(
    ("options", "told"), [({"sandbox": False}, True), ({}, False), ({"sandbox": False, "dry_run": True}, False)]
)
async def test_a_live_run_tells_how_it_is_stopped_from_anywhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], told: bool
) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)  # on X11 the key is always to be had
    async with bench.shows(size=(120, 30), **options) as pilot:
        for _ in range(100):  # a busy machine draws it later
            if ("ctrl+alt+shift+escape stops it" in shown(pilot)) is told:
                break
            await pilot.pause(0.05)
        assert ("ctrl+alt+shift+escape stops it" in shown(pilot)) is told


async def test_the_end_of_one_run_does_not_take_the_line_from_the_next(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), *bench.ends(1)) as pilot:
        await pilot.press("t", *"next", "enter")  # before the report of the first is written
        await bench.feed(pilot, RunClosed(), *bench.begins(), *bench.sees(1))
        await pilot.press("t", *"faster", "enter")
        assert bench.conductor.started == [INSTRUCTION, "next"]
        assert bench.run.steering.take_told() == ["faster"]


async def test_an_instruction_that_is_finished_while_a_run_goes_on_is_told_to_it(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1)) as pilot:
        run_screen(pilot).query_one(Prompt).open("instruct")
        await pilot.press(*"slower", "enter")
        assert bench.conductor.started == [INSTRUCTION]
        assert bench.run.steering.take_told() == ["slower"]


STATES: dict[str, tuple[str, bool, list[Any]]] = {
    "RUNNING": ("", False, []),
    "PAUSING": ("pause", False, []),
    "PAUSED": ("pause", False, [events.Paused(1, "you paused it")]),
    "STEP": ("step", False, []),
    "YOU HAVE IT": ("user_acted", False, [events.Paused(1, "you took over: moved the pointer")]),
    "DRY RUN": ("", True, []),
}


@pytest.mark.parametrize("name", STATES)
async def test_every_state_has_its_name_in_sight(bench: Bench, name: str) -> None:
    does, dry, reports = STATES[name]
    async with bench.app(dry_run=dry, sandbox=False).run_test(size=(60, 20)) as pilot:
        await bench.feed(pilot, RunBegan(INSTRUCTION, 50))
        pilot.app.report(replace(bench.begins()[1], dry_run=dry, sandbox=False))  # type: ignore[attr-defined]
        await bench.feed(pilot, *bench.sees(1))
        run = bench.run
        if does:
            getattr(run.steering, does)(*(["moved the pointer"] if does == "user_acted" else []))
        await bench.feed(pilot, *reports)
        run_screen(pilot).say("Press Esc once more to stop.")
        await pilot.pause()
        line = shown(pilot).splitlines()[-2]
        assert "Press Esc once more to stop." in line
        assert f" {name} " in line
        assert ("LIVE" in line) is not dry


@pytest.mark.parametrize(
    ("asker", "title", "state"),
    [
        ("rules", "A rule wants your yes", "ASKS YOU"),
        ("every action", "Every action needs your yes", "ASKS YOU"),
        ("service", "The model's service wants your yes", "ASKS YOU"),
        ("paused", "PAUSED before this action", "PAUSED"),
        ("step", "STEP by step", "STEP"),
    ],
)
async def test_the_title_of_a_question_says_why_it_stands_there(
    bench: Bench, asker: Any, title: str, state: str
) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK), size=(80, 24)) as pilot:
        run = bench.run
        run.steering.step() if asker == "step" else run.steering.pause()
        await bench.feed(pilot, *bench.asks(1, CLICK, "why it is asked", "", asker=asker))
        assert f"{title}: may it do this?" in shown(pilot)
        assert f" {state} " in shown(pilot).splitlines()[-2]


def test_instructions_are_remembered_the_newest_last_and_each_once(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    for text in ("open settings", "open files", "open settings"):
        memory.add_instruction(text)
    assert Memory(tmp_path).instructions == ["open files", "open settings"]
    assert (tmp_path / "instructions.jsonl").stat().st_mode & 0o777 == 0o600


def test_an_instruction_with_a_secret_is_remembered_until_the_end_only(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.add_instruction("log in with the password: hunter2xyz")
    memory.add_instruction("open files")
    assert memory.instructions == ["log in with the password: hunter2xyz", "open files"]
    assert Memory(tmp_path).instructions == ["open files"]
    assert "hunter2xyz" not in (tmp_path / "instructions.jsonl").read_text()
