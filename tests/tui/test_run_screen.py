"""The run screen: what it shows of a run, and what its keys do."""

import subprocess
import sys

import pytest
from stubs.terminal import CLICK, INSTRUCTION, RISK, SUDO, Bench, matches, run_screen, settled, shown
from textual.color import Color

from agent.conductor import Progress, QuestionOver, ReplyWanted, RunClosed
from agent.core.actions import OpenApp, TypeText, describe
from agent.events import run_events as events
from agent.options import RunOptions
from agent.tui.contrast import LEAST, contrast
from agent.tui.start_page import EXAMPLES, Here
from agent.tui.widgets.history import History

SIZES = [(140, 40), (80, 24), (40, 12)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_run_looks_as_it_should_at_three_sizes(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await pilot.pause()
        await bench.feed(pilot, *bench.begins(), *bench.step(1, OpenApp("settings")), *bench.sees(2))
        await bench.feed(
            pilot, *bench.decides(2, CLICK, thought="Appearance is where dark mode is."), *bench.does(2, CLICK)
        )
        await bench.feed(pilot, *bench.sees(3), events.ModelDelta(3, "Now the style"))
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
        await bench.feed(pilot, *bench.begins(), *bench.asked(1, SUDO, *RISK))
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
    async with bench.shows(*bench.step(1, CLICK), *bench.ends(1), RunClosed()) as pilot:
        await pilot.press(*"next", "enter")
        await pilot.pause()
        assert bench.conductor.started == [INSTRUCTION, "next"]
        earlier, starting = run_screen(pilot).view.rows
        assert (earlier.mark, earlier.words, earlier.deed) == ("done", INSTRUCTION, "done in 12.3 s")
        assert "✓     open settings" in shown(pilot)
        assert (starting.number, starting.words) == (None, "starting")


async def test_every_run_of_a_sitting_is_followed(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), *bench.ends(1), RunClosed()) as pilot:
        await pilot.press(*"next", "enter")
        await bench.feed(pilot, *bench.begins(), *bench.step(1, CLICK), *bench.sees(2), *bench.decides(2, SUDO))
        screen = run_screen(pilot)
        assert screen.history.cursor == len(screen.view.rows) - 1 == 2
        assert "type “sudo rm -rf" in str(screen.detail.query_one("#words").render())


async def test_the_start_of_a_server_is_shown_before_the_first_step(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot)
        assert "·     starting" in shown(pilot)
        await bench.feed(pilot, Progress("vLLM: loading weights, 40 %"))
        [row] = run_screen(pilot).view.rows
        assert (row.mark, row.words) == ("thinking", "vLLM: loading weights, 40 %")
        assert "·     vLLM: loading weights, 40 %" in shown(pilot)
        bench.clock.now += 7
        run_screen(pilot)._beat()
        await pilot.pause()
        assert "7s" in shown(pilot)
        await bench.feed(pilot, *bench.begins(), *bench.sees(1))
        assert "loading weights" not in shown(pilot)


async def test_a_question_before_the_start_leaves_it_starting(bench: Bench) -> None:
    async with bench.app().run_test() as pilot:
        await bench.feed(pilot, ReplyWanted("install vLLM?", bench.answers.append), QuestionOver())
        await bench.feed(pilot, Progress("installing vLLM"))
        assert [row.words for row in run_screen(pilot).view.rows] == ["installing vLLM"]


async def test_an_answer_streams_in_and_is_replaced_by_its_thought(bench: Bench) -> None:
    async with bench.app().run_test(size=(120, 40)) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *bench.sees(1), events.ModelDelta(1, "Let me "), events.ModelDelta(1, "look")
        )
        run_screen(pilot)._show_stream()
        await pilot.pause()
        assert "Let me look" in shown(pilot)
        await bench.feed(pilot, *bench.decides(1, CLICK, thought="Found it."))
        assert "Found it." in shown(pilot)
        assert "Let me look" not in shown(pilot)


async def test_what_the_person_did_themselves_is_a_line_of_the_history(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.UserActed(2, "moved the pointer")) as pilot:
        assert "you acted: moved the pointer" in shown(pilot)


async def test_the_chosen_step_stays_chosen_while_new_ones_come(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), *bench.step(2, CLICK)) as pilot:
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
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK, thought="Found it."), size=(120, 40)) as pilot:
        await pilot.press("v")
        assert "<tool_call>" in shown(pilot)
        await pilot.press("v")
        assert "1200 prompt, 40 answer, 600 from cache" in shown(pilot)


async def test_a_remark_is_shown_under_the_last_steps_screenshot(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), events.Paused(1, "you paused it"), size=(140, 40)) as pilot:
        assert run_screen(pilot).query_one(History).cursor == 1
        assert "paused, because you paused it" in shown(pilot)
        assert "[image " in shown(pilot)


async def test_the_chosen_step_is_readable_in_every_theme(bench: Bench) -> None:
    unreadable: list[tuple[str, str, str, float]] = []
    async with bench.shows(*bench.step(1, CLICK), size=(120, 30)) as pilot:
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
            if contrast(words, ground) < LEAST:
                unreadable.append((theme, words.hex, ground.hex, contrast(words, ground)))
    assert unreadable == []


async def test_the_time_of_a_step_is_not_the_persons_time(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, SUDO), size=(100, 30)) as pilot:
        bench.clock.now += 1
        await bench.feed(pilot, *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 60
        await bench.feed(pilot, events.ApprovalGiven(1, allowed=True, by="you"))
        bench.clock.now += 2
        await bench.feed(pilot, *bench.does(1, SUDO))
        assert run_screen(pilot).view.rows[0].seconds == pytest.approx(3)


async def test_a_step_of_several_actions_shows_them_all_and_how_it_stands(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK, TypeText("hello")), size=(100, 30)) as pilot:
        row = run_screen(pilot).view.rows[0]
        assert row.words == "click …; type “hello”"
        await bench.feed(pilot, events.Acted(1, CLICK, True, False, "", None, 3.0))
        assert (row.mark, row.target) == ("acting", CLICK)
        await bench.feed(pilot, events.Acted(1, TypeText("hello"), True, False, "", None, 4.0, index=1))
        assert (row.mark, row.words) == ("done", f"{describe(CLICK)}; type “hello”")


async def test_the_page_before_the_first_run_says_what_there_is_and_offers_a_sandbox_where_no_desktop_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bool] = []

    def look(options: RunOptions) -> Here:
        looked.append(options.sandbox)
        return Here("built in", "none", "There is no display.", options.sandbox, [("done", "good", "write a letter")])

    monkeypatch.setattr("agent.tui.start_page.look", look)
    async with bench.app(None, sandbox=False).run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for words in ("built in", "There is no display.", "F2  works in a throw-away", "done          write a letter"):
            assert words in shown(pilot)
        await pilot.press("f2")
        await settled(pilot)
        assert looked == [False, True]
        assert "SANDBOX" in shown(pilot) and "F2" not in shown(pilot)
        await pilot.press("tab", "tab")
        assert run_screen(pilot).prompt.line.value == EXAMPLES[1]
        assert bench.conductor.started == []
        await pilot.press("enter")
        assert bench.conductor.started == [EXAMPLES[1]]


@pytest.mark.parametrize("size", [(60, 15), (80, 16), (100, 15)])
async def test_on_a_low_terminal_the_first_page_is_still_there(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app(None).run_test(size=size) as pilot:
        await settled(pilot)
        for words in (*EXAMPLES, "puts one of these there"):
            assert words[:40] in shown(pilot)


async def test_an_example_takes_no_written_line_away(bench: Bench) -> None:
    async with bench.app(None).run_test(size=(80, 24)) as pilot:
        await pilot.press(*"mine", "tab", "f2")
        assert run_screen(pilot).prompt.line.value == "mine"


def test_the_application_is_there_before_heavy_libraries_are_read() -> None:
    code = "import sys, agent.tui.app; print({'pydantic', 'openai', 'numpy', 'yaml', 'mcp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
