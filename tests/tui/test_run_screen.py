"""The run screen: what it shows of a run, and what its keys do."""

from dataclasses import replace

import pytest
from stubs.terminal import INSTRUCTION, Bench, matches, run_screen, shown
from stubs.witness import DARK, OPENED
from textual.color import Color

from agent.actions import Action, Click, Finish, OpenApp, TypeText, describe
from agent.changes import Change
from agent.geometry import DesktopPoint
from agent.run.events import (
    Acted,
    ApprovalGiven,
    ModelDelta,
    Paused,
    Receipt,
    Resumed,
    RunFinished,
    StepFinished,
    UserActed,
)
from agent.safety.policy import Approval, Question
from agent.tui.conductor import ApprovalWanted, Progress, QuestionOver, ReplyWanted, RunClosed, RunEvent, RunFailed
from agent.tui.screens.undoing import UndoScreen
from agent.tui.widgets.approval import GRACE
from agent.tui.widgets.history import History
from agent.tui.widgets.prompt import Prompt
from agent.undoing.plan import Item
from agent.undoing.undo import Result
from foundation.chat_stream import Usage
from foundation.errors import ExitStatus

#: A little longer than a key must be alone to be an answer.
ALONE = 0.3
SIZES = [(140, 40), (80, 24), (40, 12)]
CLICK: Action[DesktopPoint] = Click(DesktopPoint(412, 233))
SUDO = TypeText("sudo rm -rf /\n")
RISK = ("the text looks like a command that changes the system (rule “commands”)", "typing in xfce4-terminal")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_run_looks_as_it_should_at_three_sizes(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await pilot.pause()
        await bench.feed(pilot, *bench.begins(), *bench.step(1, OpenApp("settings")), *bench.sees(2))
        await bench.feed(
            pilot, *bench.decides(2, CLICK, thought="Appearance is where dark mode is."), *bench.does(2, CLICK)
        )
        await bench.feed(pilot, *bench.sees(3), ModelDelta(3, "Now the style"))
        bench.clock.now += 7
        run_screen(pilot)._show_stream()
        run_screen(pilot).show_status()
        run_screen(pilot)._beat()
        await pilot.pause()
        matches(pilot, f"run-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_question_looks_as_it_should_at_three_sizes(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await pilot.pause()
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        matches(pilot, f"asking-{size[0]}x{size[1]}")
        assert "sudo rm -rf /⏎" in shown(pilot)


async def test_the_instruction_of_the_command_line_starts_a_run(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION]


async def test_without_an_instruction_it_asks_and_starts_what_is_typed(bench: Bench) -> None:
    async with bench.app(None).run_test() as pilot:
        await pilot.pause()
        assert "What shall I do?" in shown(pilot)
        await pilot.press(*"open mousepad", "enter")
        assert bench.conductor.started == ["open mousepad"]


async def test_several_instructions_in_a_row_are_several_runs(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), *bench.ends(1), RunClosed())
        await pilot.press(*"next", "enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION, "next"]
        [earlier] = run_screen(pilot).view.rows
        assert (earlier.mark, earlier.words, earlier.deed) == ("done", INSTRUCTION, "done in 0.0 s")
        assert "✓     open settings" in shown(pilot)


async def test_the_start_of_a_server_is_shown_before_the_first_step(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, Progress("vLLM: loading weights, 40 %"))
        assert "loading weights, 40 %" in shown(pilot)
        assert "starting" in shown(pilot)


async def test_an_answer_streams_in_and_is_replaced_by_its_thought(bench: Bench) -> None:
    async with bench.app().run_test(size=(120, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), ModelDelta(1, "Let me "), ModelDelta(1, "look"))
        run_screen(pilot)._show_stream()
        await pilot.pause()
        assert "Let me look" in shown(pilot)
        await bench.feed(pilot, *bench.decides(1, CLICK, thought="Found it."))
        assert "Found it." in shown(pilot)
        assert "Let me look" not in shown(pilot)


async def test_a_yes_within_half_a_second_is_not_taken(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        bench.clock.now += GRACE - 0.01
        await pilot.press("y", "a", "n")
        assert bench.answers == []
        bench.clock.now += 0.3
        await pilot.press("y")
        await pilot.pause(ALONE)
        assert bench.answers == [Approval(allowed=True, by="you")]


@pytest.mark.parametrize("word", ["always", "yes", "say", "no", "open settings", "axe"])
async def test_a_word_typed_beside_the_line_answers_nothing(bench: Bench, word: str) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 1
        await pilot.press(*("space" if char == " " else char for char in word))
        await pilot.pause(ALONE)
        assert bench.answers == []
        assert "may it do this" in shown(pilot)  # nothing came in front of it


@pytest.mark.parametrize(
    ("keys", "approval"),
    [
        (["y"], Approval(allowed=True, by="you")),
        (["a"], Approval(allowed=True, by="you", always=True)),
        (["n"], Approval(allowed=False, by="you")),
        (["x"], Approval(allowed=False, by="you", skip=True)),
        (["i", *"use ls", "enter"], Approval(allowed=False, by="you", note="use ls")),
        (["e", "end", "backspace", "backspace", "x", "enter"],
         Approval(allowed=True, by="you", instead=TypeText("sudo rm -rf /x"))),
        (["e", "enter"], Approval(allowed=True, by="you")),
    ],
    ids=["yes", "always", "no", "skip", "instead", "edit", "edit nothing"],
)  # fmt: skip
async def test_every_answer_to_a_question_reaches_the_run(bench: Bench, keys: list[str], approval: Approval) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 1
        await pilot.press(*keys)
        await pilot.pause(ALONE)
        assert bench.answers == [approval]
        assert "may it do this" not in shown(pilot)


async def test_a_changed_point_is_the_persons_point(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK))
        await bench.feed(pilot, *bench.asks(1, CLICK, "single step", ""))
        bench.clock.now += 1
        await pilot.press("e", *["backspace"] * 7, *"10,x", "enter")
        await pilot.pause()
        assert bench.answers == []
        assert "write a point as x,y" in shown(pilot)
        await pilot.press("backspace", *"99999", "enter")
        await pilot.pause()
        assert bench.answers == []
        assert "not on the screen" in shown(pilot)
        await pilot.press(*["backspace"] * 5, *"20", "enter")
        assert bench.answers == [Approval(allowed=True, by="you", instead=Click(DesktopPoint(10, 20)))]


async def test_a_question_without_a_scope_offers_no_always(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK))
        await bench.feed(pilot, *bench.asks(1, CLICK, "single step", ""))
        bench.clock.now += 1
        await pilot.press("a")
        await pilot.pause(ALONE)
        assert bench.answers == []
        assert "always" not in shown(pilot)


async def test_letters_typed_on_the_line_answer_no_question(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO))
        await pilot.press("t", *"he")
        await bench.feed(pilot, *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 1
        await pilot.press("y", "a", "y")
        assert bench.answers == []
        assert run_screen(pilot).query_one(Prompt).line.value == "heyay"


async def test_a_question_that_is_not_asked_any_more_goes_away(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        await bench.feed(pilot, QuestionOver())
        assert "may it do this" not in shown(pilot)


async def test_two_escapes_stop_and_one_does_not(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        await pilot.press("escape")
        assert bench.conductor.stopped == []
        bench.clock.now += 5
        await pilot.press("escape")
        assert bench.conductor.stopped == []
        bench.clock.now += 0.5
        await pilot.press("escape")
        assert bench.conductor.stopped == ["Esc Esc"]


async def test_two_escapes_stop_also_from_within_a_line(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        await pilot.press("t", "h", "escape", "escape")
        assert bench.conductor.stopped == ["Esc Esc"]


async def test_ctrl_c_stops_at_once_and_quits_when_nothing_runs(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        await pilot.press("ctrl+c")
        assert bench.conductor.stopped == ["Ctrl-C"]
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert not pilot.app.is_running


async def test_space_pauses_and_goes_on(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK))
        run = bench.conductor.run
        assert run is not None
        await pilot.press("space")
        assert run.steering.paused
        await bench.feed(pilot, Paused(2, "you paused it"))
        assert "paused" in shown(pilot)
        await pilot.press("space")
        assert not run.steering.paused
        await bench.feed(pilot, Resumed(2))
        assert run_screen(pilot).view.state == "running"


async def test_what_is_typed_while_it_runs_is_told_to_the_model(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        await pilot.press("t", *"use the other window", "enter")
        run = bench.conductor.run
        assert run is not None
        assert run.steering.take_told() == ["use the other window"]


async def test_the_models_question_is_answered_on_the_line(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), ReplyWanted("Which account?", replies.append))
        assert "Which account?" in shown(pilot)
        await pilot.press(*"work", "enter")
        assert replies == ["work"]


async def test_what_the_person_did_themselves_is_a_line_of_the_history(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), UserActed(2, "moved the pointer"))
        assert "you acted: moved the pointer" in shown(pilot)


async def test_a_run_that_cannot_begin_says_why(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, RunFailed("There is no display. Run with --sandbox.", 3), RunClosed())
        assert "There is no display." in shown(pilot)
        assert "not done" in shown(pilot)


async def test_the_chosen_step_stays_chosen_while_new_ones_come(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), *bench.step(2, CLICK))
        history = run_screen(pilot).query_one(History)
        assert history.cursor == 1
        await pilot.press("up")
        await bench.feed(pilot, *bench.step(3, CLICK))
        assert history.cursor == 0
        await pilot.press("end")
        await bench.feed(pilot, *bench.step(4, CLICK))
        assert history.cursor == 3


async def test_control_characters_of_a_model_do_not_reach_the_terminal(bench: Bench) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    async with bench.app().run_test(size=(120, 30)) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, TypeText(evil), thought=f"think {evil}")
        )
        await bench.feed(pilot, *bench.asks(1, TypeText(evil), evil, evil), Progress(evil))
        text = shown(pilot)
        assert not any(char in text for char in "\x1b\x07\u202e")


async def test_markup_of_a_model_is_shown_as_it_is(bench: Bench) -> None:
    async with bench.app().run_test(size=(120, 30)) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK, thought="[b]bold[/b] [@click=quit]x")
        )
        assert "[b]bold[/b] [@click=quit]x" in shown(pilot)


async def test_the_pages_of_a_step_are_thought_answer_and_details(bench: Bench) -> None:
    async with bench.app().run_test(size=(120, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK, thought="Found it."))
        await pilot.press("v")
        assert "<tool_call>" in shown(pilot)
        await pilot.press("v")
        assert "1200 prompt, 40 answer, 600 from cache" in shown(pilot)


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
    bench: Bench, options: dict[str, bool], told: bool
) -> None:
    async with bench.app(**options).run_test(size=(120, 30)) as pilot:
        await bench.feed(pilot, *bench.begins())
        assert ("ctrl+alt+shift+escape stops it" in shown(pilot)) is told


async def test_a_remark_is_shown_under_the_last_steps_screenshot(bench: Bench) -> None:
    async with bench.app().run_test(size=(140, 40)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), Paused(1, "you paused it"))
        assert run_screen(pilot).query_one(History).cursor == 1
        assert "paused: you paused it" in shown(pilot)
        assert "[image " in shown(pilot)


def contrast(one: Color, other: Color) -> float:
    """The ratio of WCAG 2.2 ("contrast ratio", "relative luminance")."""

    def luminance(color: Color) -> float:
        parts = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized)
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


async def test_the_chosen_step_is_readable_in_every_theme(bench: Bench) -> None:
    unreadable: list[tuple[str, str, str, float]] = []
    async with bench.app().run_test(size=(120, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK))
        history = run_screen(pilot).query_one(History)
        history.focus()
        themes = (name for name in pilot.app.available_themes if not name.startswith("ansi"))  # the terminal's colours
        for theme in sorted(themes):
            pilot.app.theme = theme
            await pilot.pause()
            style = next(segment.style for segment in history.render_line(0) if "click" in segment.text)
            assert style is not None
            assert style.color is not None
            assert style.bgcolor is not None
            words, ground = (Color.from_rich_color(color) for color in (style.color, style.bgcolor))
            if contrast(words, ground) < 3:  # WCAG 2.2, 1.4.11
                unreadable.append((theme, words.hex, ground.hex, contrast(words, ground)))
    assert unreadable == []


@pytest.mark.parametrize("keys", [["s"], ["space", "space"], ["space", "s"]], ids="+".join)
async def test_what_a_rule_asks_about_is_not_approved_by_keys_that_steer(bench: Bench, keys: list[str]) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK))
        bench.clock.now += GRACE * 2
        await pilot.press(*keys)
        await pilot.pause(ALONE)
        assert bench.answers == []
        bench.clock.now += 1
        await pilot.press("y")
        await pilot.pause(ALONE)
        assert bench.answers == [Approval(allowed=True, by="you")]


async def test_what_only_the_pause_holds_is_let_go_by_going_on(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK))
        await pilot.press("space")
        held = ApprovalWanted(CLICK, Question("you paused it", "", held=True), bench.answers.append)
        await bench.feed(pilot, held)
        bench.clock.now += GRACE * 2
        await pilot.press("space")
        assert bench.answers == [Approval(allowed=True, by="you")]


async def test_the_end_of_one_run_does_not_take_the_line_from_the_next(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), *bench.ends(1))
        await pilot.press("t", *"next", "enter")  # before the report of the first is written
        await bench.feed(pilot, RunClosed(), *bench.begins(), *bench.sees(1))
        await pilot.press("t", *"faster", "enter")
        assert bench.conductor.started == [INSTRUCTION, "next"]
        assert bench.conductor.run is not None
        assert bench.conductor.run.steering.take_told() == ["faster"]


async def test_an_instruction_that_is_finished_while_a_run_goes_on_is_told_to_it(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        run_screen(pilot).query_one(Prompt).open("instruct")
        await pilot.press(*"slower", "enter")
        assert bench.conductor.started == [INSTRUCTION]
        assert bench.conductor.run is not None
        assert bench.conductor.run.steering.take_told() == ["slower"]


async def test_giving_up_is_no_success(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        gave_up = Finish(False, "stuck")
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, gave_up))
        await bench.feed(pilot, StepFinished(1, None, None, None, {}))
        assert "✗   1 give up: “stuck”" in shown(pilot)


async def test_the_time_of_a_step_is_not_the_persons_time(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO))
        bench.clock.now += 1
        await bench.feed(pilot, *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 60
        await bench.feed(pilot, ApprovalGiven(1, allowed=True, by="you"))
        bench.clock.now += 2
        await bench.feed(pilot, *bench.does(1, SUDO))
        assert run_screen(pilot).view.rows[0].seconds == pytest.approx(3)


async def test_a_step_of_several_actions_shows_them_all_and_how_it_stands(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, CLICK, TypeText("hello")))
        row = run_screen(pilot).view.rows[0]
        assert row.words == "click …; type “hello”"
        await bench.feed(pilot, Acted(1, CLICK, True, False, "", None, 3.0))
        assert (row.mark, row.target) == ("acting", CLICK)
        await bench.feed(pilot, Acted(1, TypeText("hi"), True, False, "", None, 4.0, index=1))
        assert (row.mark, row.words) == ("done", f"{describe(CLICK)}; type “hi”")
        assert row.milliseconds["act"] == 7.0


# What the run left behind it


UNVERIFIED = RunFinished(
    "unverified", ExitStatus.NOT_DONE, "The model says so.", 1, 2.0, Usage(),
    ("check box “Dark mode” not checked",), False,
)  # fmt: skip


async def test_the_end_of_a_run_shows_what_changed(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), RunEvent(Receipt((DARK,))))
        assert "what changed" not in shown(pilot)
        await bench.feed(pilot, *bench.ends(1), RunClosed())
        assert "what changed" in shown(pilot)
        assert str(DARK) in shown(pilot)
        await pilot.press(*"next", "enter")
        await pilot.pause()
        assert "what changed" not in shown(pilot)


async def test_a_run_that_is_not_verified_is_told_otherwise_than_one_that_is_done(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), RunEvent(Receipt()), RunEvent(UNVERIFIED))
        assert "nothing changed" in shown(pilot)
        assert "check box “Dark mode” not checked" in shown(pilot)
        assert "unverified" in shown(pilot).splitlines()[-2]


async def test_what_a_window_is_called_does_not_steer_the_terminal(bench: Bench) -> None:
    evil = Change("window", "\x1b[31mevil", None, "Sett\u202eings\x07\nnext line")
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), RunEvent(Receipt((evil,))), *bench.ends(1))
        assert "next line (new)" in shown(pilot)
        assert not {"\x1b", "\x07", "\u202e"} & set(shown(pilot))


class FakeUndoing:
    """What can be undone of a run, without a desktop."""

    def __init__(self, bundle: object) -> None:
        self.items = [Item(UNDOABLE, "undo", "set to Adwaita"), Item(OPENED, "cannot", "windows stay")]
        self.able = self.items[:1]

    def carry_out(self) -> list[Result]:
        CARRIED_OUT.append(self.able[0].change)
        return [Result(self.able[0], True, "put back")]


UNDOABLE = replace(DARK, undo={"store": "xfconf"})
CARRIED_OUT: list[Change] = []


@pytest.mark.parametrize(("key", "undone"), [("y", True), ("n", False), ("escape", False)])
async def test_undoing_is_shown_first_and_done_after_a_yes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, key: str, undone: bool
) -> None:
    monkeypatch.setattr("agent.undoing.undo.Undoing", FakeUndoing)
    CARRIED_OUT.clear()
    (bench.bundle / "run.json").write_text("{}")
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK))
        assert "u Undo" not in shown(pilot)
        await bench.feed(pilot, RunEvent(Receipt((UNDOABLE, OPENED))), *bench.ends(1))
        assert "u Undo" in shown(pilot)
        await pilot.press("u")
        for _ in range(50):
            await pilot.pause(0.02)
            if isinstance(pilot.app.screen, UndoScreen):
                break
        assert "set to Adwaita" in shown(pilot)
        assert "windows stay" in shown(pilot)
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert [UNDOABLE] * undone == CARRIED_OUT
        assert ("undone: xfconf xsettings /Net/ThemeName: put back" in shown(pilot)) is undone
        assert ("u Undo" in shown(pilot)) is not undone


async def test_what_changed_nothing_offers_no_undo(bench: Bench) -> None:
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), RunEvent(Receipt((OPENED,))), *bench.ends(1))
        assert "u Undo" not in shown(pilot)
