"""What stands there when a run has ended: how, what changed, and undoing it."""

from dataclasses import replace
from typing import ClassVar

import pytest
from stubs.terminal import CLICK, INSTRUCTION, Bench, run_screen, settled, shown
from stubs.witness import DARK, OPENED

from agent.conductor import RunClosed, RunFailed
from agent.core.actions import Finish
from agent.core.changes import Change
from agent.events import run_events as events
from agent.evidence.undo import Item, Result
from agent.tui.screens.steps import UndoScreen
from agent.tui.widgets.status import EndCard
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus

UNVERIFIED = events.RunFinished(
    "unverified", ExitStatus.NOT_DONE, "The model says so.", 1, 2.0, Usage(),
    ("check box “Dark mode” not checked",), False,
)  # fmt: skip
UNDOABLE = replace(DARK, undo={"store": "xfconf"})
OPENINGS = (replace(OPENED, kind="app"), OPENED)
CARRIED_OUT: list[Change] = []


class FakeUndoing:
    """What can be undone of a run, without a desktop."""

    def __init__(self, bundle: object) -> None:
        self.items = [Item(UNDOABLE, "undo", "set to Adwaita"), Item(OPENED, "cannot", "windows stay")]
        self.able = self.items[:1]

    def carry_out(self) -> list[Result]:
        CARRIED_OUT.append(self.able[0].change)
        return [Result(self.able[0], True, "put back")]


class LongUndoing:
    """More than there is room for."""

    able: ClassVar = [Item(replace(UNDOABLE, what=f"setting {index}"), "undo", "set back") for index in range(20)]
    items = able


async def test_a_run_that_cannot_begin_says_why(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, RunFailed("There is no display. Run with --sandbox.", 3), RunClosed())
        assert "There is no display." in shown(pilot)
        assert "not done" in shown(pilot)


async def test_giving_up_is_no_success(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        gave_up = Finish(False, "stuck")
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, gave_up))
        await bench.feed(pilot, events.StepFinished(1, None, None, None, {}))
        assert "✗   1 give up" in shown(pilot)


async def test_the_end_of_a_run_shows_what_changed(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.Receipt((UNDOABLE, *OPENINGS)), size=(100, 30)) as pilot:
        assert "changed " not in shown(pilot)
        message = f"{str(DARK).capitalize()}. All parts are done."
        ended = replace(bench.ends(1)[0], message=message, evidence=(str(DARK), "“Appearance” is in front"))
        await bench.feed(pilot, ended, RunClosed())
        screen = shown(pilot)
        assert "✓ done in 12.3 s  Dark mode: off -> on. All parts are done." in screen
        assert "changed Dark mode: off -> on  (xfconf xsettings /Net/ThemeName)" in screen
        assert "shows   “Appearance” is in front" in screen
        assert screen.count("/Net/ThemeName") == 1
        assert screen.count("xfce4-settings-manager") == screen.count("Settings") == 1
        assert "u undo  o runs" in screen
        await pilot.press(*"next", "enter")
        await pilot.pause()
        assert "changed " not in shown(pilot)


async def test_a_dry_run_that_is_over_is_neither_done_nor_green(bench: Bench) -> None:
    async with bench.app(dry_run=True).run_test(size=(80, 24)) as pilot:
        await bench.feed(pilot, replace(bench.begins()[1], dry_run=True), *bench.sees(1))
        nothing = events.Receipt(remarks=("Dry run: nothing was touched.",), watched=False)
        await bench.feed(pilot, nothing, *bench.ends(1, "As far as it can be known."), RunClosed())
        card = run_screen(pilot).query_one(EndCard)
        assert "○ dry run over after 12.3 s  As far as it can be known." in shown(pilot)
        assert " DRY RUN  OVER " in shown(pilot)
        assert card.has_class("-plain") and not card.has_class("-good")
        assert "✓" not in shown(pilot)


@pytest.mark.parametrize("busy", [True, False])
async def test_typed_words_never_become_keys_of_a_run_that_is_over(bench: Bench, busy: bool) -> None:
    """ "look for" and Enter opened the recorded runs and ran the last instruction again."""
    async with bench.shows(*bench.step(1, CLICK), *bench.step(2, CLICK), size=(100, 30)) as pilot:
        await pilot.press("k")
        bench.clock.now += 1 if busy else 60
        await bench.feed(pilot, *bench.ends(2), RunClosed())
        await pilot.press(*"look", "space", *"for")
        assert run_screen(pilot).prompt.line.value == "look for"
        assert pilot.app.screen is run_screen(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION, *([] if busy else ["look for"])]
        if busy:
            assert "The run is over" in shown(pilot)
            await pilot.press("enter")
            await pilot.pause()
            assert bench.conductor.started == [INSTRUCTION, "look for"]


async def test_keys_act_on_a_run_that_is_over_after_escape(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), *bench.step(2, CLICK), size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.ends(2), RunClosed())
        await pilot.press("escape", "k", "z")
        assert run_screen(pilot).history.cursor == 0
        assert run_screen(pilot).prompt.line.value == ""


async def test_who_reads_the_history_when_a_run_ends_keeps_their_place(bench: Bench) -> None:
    """Their next keys, Enter among them, were an instruction that was carried out."""
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), *bench.step(2, CLICK), *bench.step(3, CLICK))
        await pilot.press("k")
        await bench.feed(pilot, *bench.ends(3), RunClosed())
        at = run_screen(pilot).history.cursor
        await pilot.press("k", "z", "z", "enter")
        await pilot.pause()
        assert run_screen(pilot).history.cursor == at < 2
        assert bench.conductor.started == [INSTRUCTION]
        bench.clock.now += 60
        await pilot.press("ctrl+u", *"more", "enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION, "more"]


async def test_words_for_a_run_that_ends_meanwhile_are_kept_and_are_no_instruction_at_once(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), size=(100, 30)) as pilot:
        await pilot.press("t", *"the other")
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        await pilot.press("enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION]
        assert run_screen(pilot).prompt.line.value == "the other"
        assert "The run is over" in shown(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION, "the other"]


async def test_a_run_that_is_not_verified_is_told_otherwise_than_one_that_is_done(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.Receipt(), UNVERIFIED, size=(100, 30)) as pilot:
        assert "nothing changed" in shown(pilot)
        assert "check box “Dark mode” not checked" in shown(pilot)
        assert "NOT CONFIRMED" in shown(pilot).splitlines()[-2]


@pytest.mark.parametrize(("key", "undone"), [("y", True), ("n", False), ("escape", False)])
async def test_undoing_is_shown_first_and_done_after_a_yes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, key: str, undone: bool
) -> None:
    monkeypatch.setattr("agent.record.undo_run.RunUndo", FakeUndoing)
    monkeypatch.setattr("agent.tui.screens.run._LOAD", 0.02)  # asking the server for it ended the undoing
    CARRIED_OUT.clear()
    (bench.bundle / "run.json").write_text("{}")
    async with bench.shows(*bench.step(1, CLICK), size=(100, 30)) as pilot:
        assert "u Undo" not in shown(pilot)
        await bench.feed(pilot, events.Receipt((UNDOABLE, OPENED)), *bench.ends(1))
        assert "u Undo" in shown(pilot)
        await pilot.press("u")
        for _ in range(50):
            await pilot.pause(0.02)
            if isinstance(pilot.app.screen, UndoScreen):
                break
        assert "set to Adwaita" in shown(pilot)
        assert "windows stay" in shown(pilot)
        await pilot.pause(0.2)
        await pilot.press(key)
        await settled(pilot)
        assert [UNDOABLE] * undone == CARRIED_OUT
        assert ("undone  xfconf xsettings /Net/ThemeName: put back" in shown(pilot)) is undone
        assert ("u Undo" in shown(pilot)) is not undone


async def test_what_changed_nothing_offers_no_undo(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.Receipt((OPENED,)), *bench.ends(1), size=(100, 30)) as pilot:
        assert "u Undo" not in shown(pilot)


async def test_on_a_low_terminal_the_end_names_its_keys_first(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.Receipt((UNDOABLE,)), size=(60, 15)) as pilot:
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        await pilot.press("escape")
        wanted = "✓ done in 12.3 s  t what is next  u undo  o runs"
        for _ in range(200):  # drawn again for the low terminal
            if wanted in shown(pilot):
                break
            await pilot.pause(0.02)
        assert wanted in shown(pilot)


async def test_a_long_list_of_what_would_be_undone_is_read_by_j_and_k(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.record.undo_run.RunUndo", lambda bundle: LongUndoing())
    (bench.bundle / "run.json").write_text("{}")
    async with bench.shows(events.Receipt((UNDOABLE,)), *bench.ends(1), RunClosed(), size=(60, 16)) as pilot:
        await pilot.press("escape")
        await pilot.press("u")
        while not isinstance(pilot.app.screen, UndoScreen):
            await pilot.pause(0.02)
        await pilot.pause()
        assert "setting 0" in shown(pilot)
        await pilot.press(*"jj")
        assert "setting 0" not in shown(pilot)
        assert "Undo this?" in shown(pilot)
        await pilot.press("G")
        assert "setting 19" in shown(pilot)
