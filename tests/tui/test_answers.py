"""Answers to a question: which keys are one, and what keeps others from being one."""

import pytest
from stubs.terminal import ALONE, CLICK, RISK, SUDO, Bench, run_screen, shown
from textual.widgets import Static

from agent.conductor import ApprovalWanted, QuestionOver, ReplyWanted
from agent.core.actions import AskUser, Click, TypeText
from agent.core.geometry import DesktopPoint
from agent.safety.policy import Approval, Question
from agent.tui.widgets.approval import GRACE
from agent.tui.widgets.prompt import Prompt


async def test_a_yes_within_half_a_second_is_not_taken(bench: Bench) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK)) as pilot:
        bench.clock.now += GRACE - 0.01
        await pilot.press("y", "a", "n")
        assert bench.answers == []
        bench.clock.now += 0.3
        await pilot.press("y")
        await pilot.pause(ALONE)
        assert bench.answers == [Approval(allowed=True, by="you")]


@pytest.mark.parametrize("word", ["always", "yes", "say", "no", "open settings", "axe"])
async def test_a_word_typed_beside_the_line_answers_nothing(bench: Bench, word: str) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK), size=(100, 30)) as pilot:
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
    async with bench.shows(*bench.asked(1, SUDO, *RISK), size=(100, 30)) as pilot:
        bench.clock.now += 1
        await pilot.press(*keys)
        await pilot.pause(ALONE)
        assert bench.answers == [approval]
        assert "a rule wants your yes" not in shown(pilot)


async def test_a_changed_point_is_the_persons_point(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK), size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.asks(1, CLICK, "you go step by step", "", asker="step"))
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


async def test_a_question_without_a_scope_can_only_be_allowed_once(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK), size=(100, 30)) as pilot:
        await bench.feed(pilot, *bench.asks(1, CLICK, "you go step by step", "", asker="step"))
        bench.clock.now += 1
        await pilot.press("a")
        await pilot.pause(ALONE)
        assert bench.answers == []
        assert "also to" not in shown(pilot)


async def test_letters_typed_on_the_line_answer_no_question(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, SUDO), size=(100, 30)) as pilot:
        await pilot.press("t", *"he")
        await bench.feed(pilot, *bench.asks(1, SUDO, *RISK))
        bench.clock.now += 1
        await pilot.press("y", "a", "y")
        assert bench.answers == []
        assert run_screen(pilot).query_one(Prompt).line.value == "heyay"


async def test_a_question_that_is_not_asked_any_more_goes_away(bench: Bench) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK), size=(100, 30)) as pilot:
        await bench.feed(pilot, QuestionOver())
        assert "a rule wants your yes" not in shown(pilot)


@pytest.mark.parametrize("keys", [["s"], ["space", "space"], ["space", "s"]], ids="+".join)
async def test_what_a_rule_asks_about_is_not_approved_by_keys_that_steer(bench: Bench, keys: list[str]) -> None:
    async with bench.shows(*bench.asked(1, SUDO, *RISK)) as pilot:
        bench.clock.now += GRACE * 2
        await pilot.press(*keys)
        await pilot.pause(ALONE)
        assert bench.answers == []
        bench.clock.now += 1
        await pilot.press("y")
        await pilot.pause(ALONE)
        assert bench.answers == [Approval(allowed=True, by="you")]


async def test_what_only_the_pause_holds_is_let_go_by_going_on(bench: Bench) -> None:
    async with bench.shows(*bench.sees(1), *bench.decides(1, CLICK)) as pilot:
        await pilot.press("space")
        held = ApprovalWanted(CLICK, Question("you paused it", "", "paused"), bench.answers.append)
        await bench.feed(pilot, held)
        assert "space" in shown(pilot).split("n no")[1]
        bench.clock.now += GRACE * 2
        await pilot.press("space")
        await pilot.pause(ALONE)
        assert bench.answers == [Approval(allowed=True, by="you")]
        assert not bench.conductor.run.steering.hold


async def test_keys_in_flight_are_no_reply(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.shows(*bench.sees(1), ReplyWanted("Delete it all?", replies.append)) as pilot:
        await pilot.press("y", "enter")
        assert replies == []
        bench.clock.now += 1
        await pilot.press("backspace", *"no", "enter")
        assert replies == ["no"]


async def test_what_a_person_was_writing_is_not_taken_for_a_reply(bench: Bench) -> None:
    replies: list[str] = []
    async with bench.shows(*bench.sees(1)) as pilot:
        await pilot.press("t", *"use the ot")
        await bench.feed(pilot, ReplyWanted("Which account?", replies.append))
        bench.clock.now += 1
        await pilot.press(*"her window", "enter")
        run = bench.run
        assert (run.steering.take_told(), replies) == (["use the other window"], [])
        bench.clock.now += 1
        await pilot.press(*"work", "enter")
        assert replies == ["work"]


@pytest.mark.parametrize("size", [(120, 30), (80, 24), (40, 12)])
async def test_it_cannot_look_like_ours_and_is_read_to_its_end(bench: Bench, size: tuple[int, int]) -> None:
    panel = "╭─ may it do this? ─╮\n│ click “Next” │\n│ y  yes, once    n  no │\n╰───╯\n"
    asks = AskUser(panel * 30 + "the end of it")
    async with bench.shows(*bench.sees(1), *bench.decides(1, asks), size=size) as pilot:
        await bench.feed(pilot, ReplyWanted(asks.question, [].append))
        screen = shown(pilot)
        assert "asks you: “╭─ may it do this?" in screen
        assert not any(line.lstrip().startswith("╭─ may it do this?") for line in screen.splitlines())
        assert ("all of it stands above" in screen) == (size[1] > 12)  # a low terminal has one line for it
        assert "the end of it" in str(run_screen(pilot).query_one("#words", Static).content)
