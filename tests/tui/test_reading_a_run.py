"""What a person reads of a run: names, what they did themselves, the thought as it comes, the end, and help."""

from dataclasses import replace
from typing import Any

import pytest
from stubs.terminal import INSTRUCTION, Bench, run_screen, shown
from textual.widgets import Static

from agent.conductor import RunClosed
from agent.core.actions import Click, TypeText
from agent.core.geometry import DesktopPoint
from agent.events.run_events import Acted, ApprovalGiven, Dropped, ModelDelta, StepFinished
from agent.safety.naming import aim_of
from agent.safety.situation import Place, Situation
from agent.tui.app import UNSOUGHT
from agent.tui.screens.steps import TASKS
from agent.tui.widgets.status import EndCard

CLICK = Click(DesktopPoint(412.3, 233.8))
SUDO = TypeText("sudo rm -rf /\n")
RISK = ("the text looks like a command (rule “commands”)", "typing in xfce4-terminal")
SETTINGS = Situation(under=Place("Xfce4-settings-manager", "Settings"), words="Appearance")


async def test_rows_tell_names_instead_of_coordinates(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK), size=(140, 30)) as pilot:
        assert "click …" in shown(pilot)
        await bench.feed(pilot, *bench.asks(1, CLICK, *RISK, situation=SETTINGS))
        assert "1 click “Appearance” · Settings" in shown(pilot)
        await bench.feed(pilot, Acted(1, CLICK, True, False, "", None, 1.0, aim=aim_of(CLICK, SETTINGS)))
        assert "1 click “Appearance” · Settings" in shown(pilot)
        x, y = CLICK.point.rounded()
        assert f"{x},{y}" not in shown(pilot)
        await pilot.press("v", "v")
        assert f"[{round(CLICK.point.x)}, {round(CLICK.point.y)}]" in shown(pilot)


@pytest.mark.parametrize(
    ("given", "sign", "deed"),
    [
        ({"allowed": True}, "✓", "you: yes"),
        ({"allowed": True, "instead": TypeText("ls"), "answer": "changed"}, "✓", "you: changed"),
        ({"allowed": False, "answer": "refused"}, "⊘", "you: no"),
        ({"allowed": False, "answer": "skipped"}, "–", "you: skipped"),
        ({"allowed": False, "answer": "told", "note": "go \x1b[2J"}, "↪", r"you: go \x1b[2J"),
        ({"allowed": True, "by": "you, before: typing in Thunar"}, "✓", "you: before"),
        ({"allowed": True, "by": "dry run"}, "✓", ""),
    ],
)
async def test_a_row_tells_what_the_person_did_about_it(
    bench: Bench, given: dict[str, Any], sign: str, deed: str
) -> None:
    async with bench.app().run_test(size=(180, 30)) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *bench.sees(1), *bench.decides(1, SUDO), *bench.asks(1, SUDO, *RISK)[:1]
        )
        event = ApprovalGiven(1, **({"by": "you"} | given))
        after = [Acted(1, event.instead or SUDO, True, False, "", None, 1.0)]
        if not event.allowed:
            after = [Dropped(1, SUDO, event.answer)]  # type: ignore[arg-type, list-item]
        await bench.feed(pilot, event, *after, StepFinished(1, None, None, None, {}))
        [line] = [line for line in shown(pilot).splitlines() if f"{sign}   1 type" in line]
        assert deed in line
        assert ("you" in line) is deed.startswith("you")


async def test_a_thought_streams_without_tags_and_without_its_call_and_is_followed_to_its_end(bench: Bench) -> None:
    long = "<thinking>\n" + "".join(f"This is thought number {number}.\n" for number in range(90))
    async with bench.app().run_test(size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.begins(), *bench.sees(1), ModelDelta(1, long), ModelDelta(1, "The end.</thin"))
        run_screen(pilot)._show_stream()
        await pilot.pause()
        await pilot.pause()
        assert "The end." in shown(pilot)
        assert not {"<", "thinking>"} & set(shown(pilot))
        await bench.feed(pilot, ModelDelta(1, 'king>\n<tool_call>\n{"name": "computer"'))
        run_screen(pilot)._show_stream()
        await pilot.pause()
        await pilot.pause()
        assert "The end." in shown(pilot)
        assert "computer" not in shown(pilot)


async def test_the_mark_moves_and_seconds_pass_while_the_model_thinks(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), size=(100, 30)) as pilot:
        marks = set()
        for _ in range(6):
            bench.clock.now += 0.2
            run_screen(pilot)._beat()
            await pilot.pause()
            marks.add(shown(pilot).splitlines()[1][1])
        assert len(marks) > 2
        bench.clock.now += 60
        run_screen(pilot)._beat()
        await pilot.pause()
        assert "61s" in shown(pilot).splitlines()[1]


async def test_a_run_that_is_done_says_so_in_green_and_how_long_it_took(bench: Bench) -> None:
    async with bench.shows(*bench.step(1, CLICK), size=(100, 30)) as pilot:
        await bench.feed(pilot, replace(bench.ends(1)[0], seconds=75.0), RunClosed())
        card = run_screen(pilot).query_one(EndCard).query_one(Static)
        assert "✓ done in 1 min 15 s  Dark mode is on." in shown(pilot)
        assert "$text-success" in str(card.content.spans)  # type: ignore[union-attr]
        assert "what is next" in shown(pilot)  # in other words once the line has the focus, within a second


@pytest.mark.parametrize("size", [(140, 40), (40, 12)])
async def test_an_empty_screen_says_how_to_begin(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app(None).run_test(size=size) as pilot:
        await pilot.pause()
        assert "does what you wrote" in " ".join(shown(pilot).replace("│", " ").split())


async def test_at_40x12_the_instruction_and_the_row_that_is_asked_about_are_in_sight(bench: Bench) -> None:
    async with bench.app().run_test(size=(40, 12)) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *(report for step in range(1, 20) for report in bench.step(step, CLICK))
        )
        await bench.feed(pilot, *bench.asked(20, SUDO, *RISK))
        assert INSTRUCTION in shown(pilot).splitlines()[0]
        assert "?  20 type “sudo" in shown(pilot)


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)])
async def test_there_is_no_bar_below_the_history(bench: Bench, size: tuple[int, int]) -> None:
    async with bench.app().run_test(size=size) as pilot:
        await bench.feed(
            pilot, *bench.begins(), *(report for step in range(1, 60) for report in bench.step(step, CLICK))
        )
        assert not run_screen(pilot).history.show_horizontal_scrollbar
        assert "  59 click" in shown(pilot)


async def test_past_instructions_can_be_searched_while_it_asks(bench: Bench) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK), size=(100, 30)) as pilot:
        await pilot.press("ctrl+r")
        await pilot.pause()
        assert "Search past instructions" in shown(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert "may it do this" in shown(pilot)


async def test_the_palette_holds_whatever_a_key_does(bench: Bench) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK), size=(100, 30)) as pilot:
        screen = run_screen(pilot)
        offered = {command.title for command in pilot.app.get_system_commands(screen)}
        bindings = [one.binding for one in screen.active_bindings.values()]
        does = {one.description for one in bindings if not one.system and one.action not in UNSOUGHT}
        assert does - {""} <= offered
        assert {"Yes, once", "Skip it", "Quit", "Tell", "Search past instructions"} <= offered


async def test_the_help_lists_the_keys_by_task(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), size=(100, 50)) as pilot:
        await pilot.press("question_mark")
        await pilot.pause()
        for task in TASKS:
            assert task in shown(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert "keys, by what you want" not in shown(pilot)
